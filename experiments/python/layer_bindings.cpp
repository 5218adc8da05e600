// Layers, losses, and the batches of pictures that a run draws.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "core/nn/layers.h"
#include "core/nn/losses.h"
#include "experiments/python/arrays.h"
#include "experiments/python/gate.h"
#include "experiments/python/graphs.h"
#include "experiments/python/module.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/data/picture_set.h"
#include "experiments/training/run_config.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

/// Mode of the new layers: the state of NetworkBuilder without its graph.
struct Mode {
  std::uint64_t seed = 0;
  bool training = true;

  NetworkBuilder builder(const GraphValue& x) const {
    return {.graph = *x.graph, .seed = seed, .training = training};
  }
};

void require_rank(const GraphValue& x, std::int64_t rank, const std::string& layer) {
  if (x.spec().shape.rank() == rank) return;
  throw InvalidArgument("the layer \"" + layer + "\" takes a value of " + std::to_string(rank) +
                        " axes, got " + to_string(x.spec()));
}

using Layer = ValueId (*)(NetworkBuilder&, std::string_view, ValueId, std::int64_t);

/// A layer that has parameters for its channels, classes or features.
template <Layer function, std::int64_t rank>
GraphValue add_layer(const Mode& mode, const std::string& name, const GraphValue& x,
                     std::int64_t channels) {
  require_rank(x, rank, name);
  if (channels < 1) {
    throw InvalidArgument("the layer \"" + name + "\" has at least 1 channel, got " +
                          std::to_string(channels));
  }
  auto net = mode.builder(x);
  return {x.graph, function(net, name, x.id, channels)};
}

GraphValue add_batch_norm(const Mode& mode, const std::string& name, const GraphValue& x) {
  require_rank(x, 4, name);
  auto net = mode.builder(x);
  return {x.graph, batch_norm(net, name, x.id)};
}

GraphValue add_loss(const GraphValue& logits, const GraphValue& target, const std::string& kind) {
  if (logits.graph != target.graph) {
    throw InvalidArgument("logits and target are values of different graphs");
  }
  require_rank(logits, 4, "loss");
  return {logits.graph,
          training_loss(*logits.graph, value_of<LossKind>(kind), logits.id, target.id, false)};
}

/// The training pictures of a run, and its order of them.
class Pictures {
 public:
  explicit Pictures(const training::RunConfig& config)
      : data_(training::load_data(config)),
        batcher_(data_.train, data_.normalization, training::batcher_options(config)) {}

  segmentation::Batch draw(std::int64_t first, std::int64_t count) const {
    if (first < 0 || count < 1) {
      throw InvalidArgument("pictures are drawn from 0 on and at least 1, got " +
                            std::to_string(first) + " and " + std::to_string(count));
    }
    return batcher_.draw(first, count);
  }
  std::size_t size() const { return data_.train.samples.size(); }

 private:
  training::TrainingData data_;
  segmentation::Batcher batcher_;
};

std::unique_ptr<Pictures> load_pictures(const std::string& json) {
  const auto config = training::run_config_from_json(json);
  training::validate(config);
  const OutsidePython others_may_run;
  return std::make_unique<Pictures>(config);
}

/// The conflict between images of these forms (channels, bits, floating or signed), or an empty
/// text.
std::string image_conflict(const std::vector<std::tuple<std::int64_t, int, bool>>& forms) {
  segmentation::ImageSet set(false);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const auto& [channels, bits, floating] = forms[i];
    const PictureForm form = {.channels = channels, .bits = bits, .floating = floating};
    auto conflict = set.add("picture " + std::to_string(i), form, kAsStored);
    if (!conflict.empty()) return conflict;
  }
  return {};
}

py::tuple draw_pictures(const Pictures& pictures, std::int64_t first, std::int64_t count) {
  auto batch = [&] {
    const OutsidePython others_may_run;
    return pictures.draw(first, count);
  }();
  return py::make_tuple(to_array(std::move(batch.x)), to_array(std::move(batch.y)));
}

}  // namespace

void add_layers(py::module_& module) {
  py::class_<Mode>(module, "Mode")
      .def(py::init([](std::uint64_t seed, bool training) {
        return Mode{seed, training};
      }))
      .def("conv3x3", &add_layer<conv3x3, 4>)
      .def("up_conv2x2", &add_layer<up_conv2x2, 4>)
      .def("logits_head", &add_layer<logits_head, 4>)
      .def("linear", &add_layer<linear, 2>)
      .def("batch_norm", &add_batch_norm);
  module.def("segmentation_loss", &add_loss);
  module.def("run_config", [](const std::string& model) {
    return training::to_json(training::RunConfig{.model = model_preset(model)});
  });
  module.def("image_conflict", &image_conflict);
  py::class_<Pictures>(module, "Pictures")
      .def(py::init(&load_pictures))
      .def("draw", &draw_pictures)
      .def("__len__", &Pictures::size);
}

}  // namespace triptych::python
