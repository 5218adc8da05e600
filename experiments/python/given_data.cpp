// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/given_data.h"

#include "experiments/python/arrays.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

segmentation::Sample sample_of(const py::handle& image, const py::handle& labels,
                               const std::string& name) {
  const auto x = view_array(image, name);
  const auto y = view_array(labels, "the mask of " + name);
  if (x.spec.dtype != DType::F32 || x.spec.shape.rank() != 3 || y.spec.dtype != DType::U8 ||
      y.spec.shape.rank() != 2) {
    throw InvalidArgument(name + " is " + to_string(x.spec) + " with a mask " + to_string(y.spec) +
                          "; a picture is f32[channels,height,width], its mask u8[height,width]");
  }
  segmentation::Sample sample;
  sample.name = name;
  sample.channels = x.spec.shape[0];
  sample.height = x.spec.shape[1];
  sample.width = x.spec.shape[2];
  if (y.spec.shape[0] != sample.height || y.spec.shape[1] != sample.width) {
    throw InvalidArgument(name + " is " + to_string(x.spec) + ", its mask " + to_string(y.spec) +
                          ": height and width must be the same");
  }
  sample.image.resize(x.spec.bytes() / sizeof(float));
  sample.labels.resize(y.spec.bytes());
  std::ranges::copy(x.bytes(), std::as_writable_bytes(std::span(sample.image)).begin());
  std::ranges::copy(y.bytes(), std::as_writable_bytes(std::span(sample.labels)).begin());
  return sample;
}

std::shared_ptr<segmentation::Dataset> dataset_of(const py::object& pair, const char* what) {
  if (pair.is_none()) return nullptr;
  const auto [images, labels] = pair.cast<std::pair<py::list, py::list>>();
  if (images.size() != labels.size()) {
    throw InvalidArgument("there are " + std::to_string(images.size()) + " pictures and " +
                          std::to_string(labels.size()) + " masks");
  }
  auto dataset = std::make_shared<segmentation::Dataset>();
  for (std::size_t i = 0; i < images.size(); ++i) {
    dataset->samples.push_back(sample_of(images[i], labels[i], what + std::to_string(i)));
    dataset->samples.back().place = i;
  }
  return dataset;
}

/// The pictures as a model of this configuration sees them.
segmentation::Dataset take(const std::shared_ptr<segmentation::Dataset>& pictures,
                           const ModelConfig& model, GivenData::Use use) {
  segmentation::Dataset dataset;
  if (pictures && use == GivenData::Use::Again) dataset = *pictures;
  if (pictures && use == GivenData::Use::Once) dataset = std::move(*pictures);
  dataset.channels = model.in_channels;
  dataset.classes = model.classes;
  return dataset;
}

}  // namespace

GivenData::GivenData(const py::object& training, const py::object& validation, std::int64_t steps)
    : validation_(dataset_of(validation, "validation picture ")), steps_(steps) {
  if (PyCallable_Check(training.ptr()) != 0) {
    next_ = training;
  } else {
    training_ = dataset_of(training, "picture ");
  }
}

training::LoadData GivenData::load(Use use) {
  if (empty()) return training::load_data;
  if (next_ && use == Use::Again) {
    throw InvalidArgument(
        "several machines must be given the same batches, and a loader may draw others each time; "
        "give pictures and masks");
  }
  return [this, use](const training::RunConfig& config, const std::function<void()>&) {
    auto validation = take(validation_, config.model, use);
    if (!next_) {
      return training::given_data(config, take(training_, config.model, use),
                                  std::move(validation));
    }
    training::TrainingData data;
    data.validation = std::move(validation);
    data.stream = [this, classes = config.model.classes](std::int64_t step) {
      return next(step, classes);
    };
    data.stream_steps = steps_;
    return data;
  };
}

segmentation::Batch GivenData::next(std::int64_t step, std::int64_t classes) {
  const py::gil_scoped_acquire gil;
  try {
    const auto [x, target] = next_(step).cast<std::pair<py::object, py::object>>();
    segmentation::Batch batch = {view_array(x, "x").copy(), view_array(target, "target").copy()};
    require_batch(batch, classes);
    return batch;
  } catch (const Error& error) {
    throw InvalidArgument("batch " + std::to_string(step) + ": " + error.what());
  } catch (const py::error_already_set&) {
    raised_ = std::current_exception();
    throw InvalidArgument("the batches cannot be had");
  }
}

void GivenData::rethrow() const {
  if (raised_) std::rethrow_exception(raised_);
}

}  // namespace triptych::python
