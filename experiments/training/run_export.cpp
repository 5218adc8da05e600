// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/nn/training_graph.h"
#include "core/onnx/export_graph.h"
#include "core/onnx/model_reader.h"
#include "core/onnx/model_writer.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/inference_graph.h"
#include "experiments/training/saved_fields.h"

namespace triptych::training {
namespace {

using onnx::Model;
using onnx::ModelNode;

constexpr std::int64_t kDefaultOpset = 17;
constexpr std::int64_t kOneFloat = 1;      // ONNX's number of float32
constexpr std::int64_t kAxesAsInput = 18;  // of ReduceMean, since this operator set
constexpr std::int64_t kOldestOpset = 11;  // Equal compares floats since
const std::string kImage = "image", kLogits = "logits";

/// Nodes that are put before a network, one reading the other.
class Preparation {
 public:
  explicit Preparation(Model& model) : model_(model) {}

  /// Appends a node that reads the last and, as its second input, a number.
  void apply(const std::string& op, float number) { apply(op, scalar_tensor(number)); }
  /// The same with a number for each channel.
  void apply(const std::string& op, const std::vector<float>& numbers) {
    if (numbers.size() == 1) return apply(op, numbers.front());
    apply(op, Tensor(Shape{1, std::ssize(numbers), 1, 1}, numbers));
  }
  void add(const std::string& op, std::vector<std::string> inputs,
           std::vector<onnx::NodeAttribute> attributes = {}) {
    last_ = fmt::format("{}{}", kPrefix, nodes_.size());
    nodes_.push_back({.name = last_,
                      .op = op,
                      .domain = {},
                      .inputs = std::move(inputs),
                      .outputs = {last_},
                      .attributes = std::move(attributes)});
  }
  /// The mean of each image over its pixels, of each channel or of all together.
  void mean(segmentation::NormalizeChannels channels) {
    std::vector<std::int64_t> axes = {2, 3};
    if (channels == segmentation::NormalizeChannels::Together) axes = {1, 2, 3};
    if (model_.opset < kAxesAsInput) return add("ReduceMean", {last_}, {{"axes", axes}});
    const auto operand = fmt::format("{}{}.axes", kPrefix, nodes_.size());
    model_.initializers.emplace(operand,
                                std::make_shared<const Tensor>(Shape{std::ssize(axes)}, axes));
    add("ReduceMean", {last_, operand});
  }
  const std::string& last() const { return last_; }

  /// Puts them before the network's nodes, which read their result as the input `name`.
  void finish(const std::string& name) {
    for (auto& node : model_.nodes) std::ranges::replace(node.inputs, name, last_);
    model_.nodes.insert(model_.nodes.begin(), nodes_.begin(), nodes_.end());
  }

 private:
  void apply(const std::string& op, Tensor operand) {
    const auto name = fmt::format("{}{}.operand", kPrefix, nodes_.size());
    model_.initializers.emplace(name, std::make_shared<const Tensor>(std::move(operand)));
    add(op, {last_, name});
  }

  static constexpr const char* kPrefix = "preparation.";
  Model& model_;
  std::vector<ModelNode> nodes_;
  std::string last_ = kImage;
};

/// The deviation is 1 where an image has only one value, as normalisation here has it.
void normalize_each(Preparation& steps, segmentation::NormalizeChannels channels) {
  const auto image = steps.last();
  steps.mean(channels);
  steps.add("Sub", {image, steps.last()});
  const auto centered = steps.last();
  steps.add("Mul", {centered, centered});
  steps.mean(channels);
  steps.add("Sqrt", {steps.last()});
  const auto deviation = steps.last();
  steps.apply("Equal", 0);
  steps.add("Cast", {steps.last()}, {{"to", kOneFloat}});
  steps.add("Add", {deviation, steps.last()});
  steps.add("Div", {centered, steps.last()});
}

void prepend_preparation(Model& model, const SavedRun& run, Pixels pixels) {
  auto& input = model.inputs.front();
  const auto name = std::exchange(input.name, kImage);
  Preparation steps(model);
  if (pixels == Pixels::Bytes) {
    input.dtype = DType::U8;
    steps.add("Cast", {kImage}, {{"to", kOneFloat}});
    steps.apply("Div", 255);
  }
  if (pixels != Pixels::Normalized) {
    const auto how = run.config.data.normalization();
    if (how.by == segmentation::NormalizeBy::Percentiles) {
      throw UnsupportedError(
          "the run normalises each image by its percentiles, for which ONNX has no operator; give "
          "the option pixels normalized, and normalise the images before the model");
    }
    if (how.by == segmentation::NormalizeBy::Image) {
      normalize_each(steps, how.channels);
    } else {
      steps.apply("Sub", run.normalization.mean);
      steps.apply("Div", run.normalization.deviation);
    }
  }
  steps.finish(name);
}

/// The network of a run from somebody's file, with its weights of now.
Model imported(const ImportedNetwork& network, const SavedRun& run,
               const std::optional<std::int64_t>& opset) {
  auto model = network.trained(run.states);
  if (opset && *opset != model.opset) {
    throw UnsupportedError(fmt::format(
        "the network is from a file of operator set {}, and keeps it; leave out the option opset",
        model.opset));
  }
  if (model.opset >= kOldestOpset) return model;
  throw UnsupportedError(
      fmt::format("the network is from a file of operator set {}; {} is the "
                  "first that can be exported",
                  model.opset, kOldestOpset));
}

Model preset(const SavedRun& run, std::int64_t opset) {
  const auto& config = run.config.model;
  const auto graph = loaded_graph(config, {config.size, config.size}, run.states);
  return onnx::export_graph(graph, {.opset = opset, .open_sizes = !config.fixed_size()});
}

/// Metadata of the images that it takes.
std::map<std::string, std::string> image_metadata(const SavedRun& run, Pixels pixels) {
  const auto& data = run.config.data;
  const bool each = data.normalization().by_itself();
  nlohmann::ordered_json normalization = {{"by", name_of(data.normalize)}};
  if (!each) {
    normalization["mean"] = run.normalization.mean;
    normalization["deviation"] = run.normalization.deviation;
  }
  normalization["inside"] = pixels != Pixels::Normalized;
  return {{"triptych.pixels", std::string(name_of(pixels))},
          {"triptych.normalization", normalization.dump()},
          {"triptych.size_multiple", std::to_string(run.config.model.size_multiple())}};
}

std::map<std::string, std::string> metadata_of(const SavedRun& run, Pixels pixels) {
  const auto& data = run.config.data;
  std::map<std::string, std::string> metadata;
  if (!is_on_arrays(run)) metadata = image_metadata(run, pixels);
  metadata.emplace("triptych.activation", !has_classes(run.config)        ? "none"
                                          : run.config.model.classes == 1 ? "sigmoid"
                                                                          : "softmax");
  const auto& names =
      data.class_names.empty() && !run.config.model.maps ? data.labels : data.class_names;
  if (!names.empty()) metadata.emplace("triptych.classes", names);
  return metadata;
}

}  // namespace

TensorMap named_weights(const SavedRun& run, const NameMap& names) {
  const auto& model = run.config.model;
  const auto graph = build_inference_graph(model, std::max<std::int64_t>(1, model.fixed_batch()),
                                           model.size, model.size, std::nullopt);
  std::vector<std::string> own;
  TensorMap weights;
  for (const auto id : graph.values_of(ValueKind::State)) {
    own.push_back(graph.value(id).name);
    const auto there = names.there(own.back());
    if (weights.emplace(there, run.states.at(own.back()).clone()).second) continue;
    throw InvalidArgument(fmt::format("the option names calls two weights \"{}\"", there));
  }
  const auto wrong = names.unused(own);
  if (wrong.empty()) return weights;
  throw InvalidArgument(fmt::format("the option names: \"{}\" fits no parameter of the model",
                                    fmt::join(wrong, "\", \"")));
}

bool is_on_arrays(const SavedRun& run) {
  const auto* network = imported_network(run.config.model);
  return network != nullptr && !network->rows().empty();
}

std::string encode_run(const SavedRun& run, const RunExportOptions& options) {
  if (run.machine.contract == Contract::Int8) {
    throw UnsupportedError(
        "the weights are int8, which is not exported; export the run that they come from");
  }
  const auto* network = imported_network(run.config.model);
  auto model = network != nullptr ? imported(*network, run, options.opset)
                                  : preset(run, options.opset.value_or(kDefaultOpset));
  if (!is_on_arrays(run)) prepend_preparation(model, run, options.pixels);
  auto& output = model.outputs.front();
  if (output.name != kLogits) {
    model.nodes.push_back({.name = "output",
                           .op = "Identity",
                           .domain = {},
                           .inputs = {std::exchange(output.name, kLogits)},
                           .outputs = {kLogits},
                           .attributes = {}});
  }
  model.producer = "triptych";
  return onnx::encode_model(model, metadata_of(run, options.pixels));
}

}  // namespace triptych::training
