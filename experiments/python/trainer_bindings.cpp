// Trainer: a training run as the command line's, told and asked from Python.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <mutex>

#include "experiments/python/arrays.h"
#include "experiments/python/gate.h"
#include "experiments/python/given_data.h"
#include "experiments/python/listener.h"
#include "experiments/python/module.h"
#include "experiments/training/training_run.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

using training::TrainingRun;

/// Any thread may call. One call waits for the other, except of a callback, which is on the thread
/// that trains.
class PythonTrainer {
 public:
  PythonTrainer(const training::ExecutionConfig& machine, training::RunConfig config,
                const std::string& folder, GivenData given)
      : given_(std::move(given)) {
    const OutsidePython others_may_run;
    machine_ = std::make_unique<training::DeviceSet>(machine);
    run_ = std::make_unique<TrainingRun>(*machine_, std::move(config), folder,
                                         given_.load(GivenData::Use::Once));
  }
  PythonTrainer(training::SavedRun saved, const std::string& folder, GivenData given)
      : given_(std::move(given)) {
    const OutsidePython others_may_run;
    machine_ = std::make_unique<training::DeviceSet>(saved.machine);
    run_ = std::make_unique<TrainingRun>(*machine_, std::move(saved), folder,
                                         given_.load(GivenData::Use::Once));
  }
  ~PythonTrainer() {
    const py::gil_scoped_release others_may_run;  // a batch may be on its way, which takes the GIL
    run_.reset();
    machine_.reset();
  }
  PythonTrainer(const PythonTrainer&) = delete;
  PythonTrainer& operator=(const PythonTrainer&) = delete;

  /// Calls `work`, alone, while others may have the interpreter.
  template <class Work>
  auto locked(const Work& work) {
    const OutsidePython others_may_run;
    const std::lock_guard lock(busy_);
    return work();
  }
  /// True when it has finished, false when it was stopped. Raises the exception of a callback,
  /// after the checkpoint is saved.
  bool train(const py::object& told) {
    Listener listener(told, interrupted_);
    auto end = training::End::Interrupted;
    try {
      end = locked([&] {
        interrupted_ = false;
        return run_->train(listener.observer(), interrupted_);
      });
    } catch (const Error&) {
      given_.rethrow();
      throw;
    }
    listener.rethrow();
    return end == training::End::Finished;
  }
  void stop() { interrupted_ = true; }

  TrainingRun& run() { return *run_; }
  const training::DeviceSet& machine() const { return *machine_; }

 private:
  GivenData given_;
  std::unique_ptr<training::DeviceSet> machine_;
  std::unique_ptr<TrainingRun> run_;
  std::atomic<bool> interrupted_ = false;
  std::recursive_mutex busy_;
};

training::RunConfig config_of(const std::string& json) {
  auto config = training::run_config_from_json(json);
  if (config.epochs == 0 && config.steps == 0)
    throw InvalidArgument("a run needs epochs or steps above 0");
  return config;
}

GivenData given_of(const py::object& data, const py::object& validation, std::int64_t steps) {
  return data.is_none() ? GivenData() : GivenData(data, validation, steps);
}

std::unique_ptr<PythonTrainer> begin(const std::string& json, const py::dict& options,
                                     const std::string& folder, const py::object& data,
                                     const py::object& validation, std::int64_t steps) {
  training::ExecutionConfig machine;
  set_options(machine, options, true);
  return std::make_unique<PythonTrainer>(machine, config_of(json), folder,
                                         given_of(data, validation, steps));
}

std::unique_ptr<PythonTrainer> resume(const std::string& json, const py::dict& options,
                                      const std::string& folder, const py::object& data,
                                      const py::object& validation, std::int64_t steps) {
  auto saved = training::load_run(folder);
  set_options_on_resume(saved, options);
  saved.config = config_of(json);
  return std::make_unique<PythonTrainer>(std::move(saved), folder,
                                         given_of(data, validation, steps));
}

py::dict states(PythonTrainer& trainer) {
  const auto tensors = trainer.locked([&] {
    TensorMap read;
    for (const auto& [name, source] : trainer.run().trainer().state_sources())
      read.emplace(name, source.read());
    return read;
  });
  py::dict named;
  for (const auto& [name, tensor] : tensors) named[name.c_str()] = to_array(tensor.clone());
  return named;
}

/// Classes of the pixels of pictures f32 [channels, height, width].
py::list predict(PythonTrainer& trainer, const py::list& pictures) {
  std::vector<segmentation::Sample> samples;
  const auto channels = trainer.run().config().model.in_channels;
  for (const auto& picture : pictures) {
    const auto view = view_array(picture, "a picture");
    const auto& shape = view.spec.shape;
    if (view.spec.dtype != DType::F32 || shape.rank() != 3 || shape[0] != channels) {
      throw InvalidArgument("a picture is f32[" + std::to_string(channels) +
                            ",height,width], got " + to_string(view.spec));
    }
    auto& sample = samples.emplace_back();
    sample.channels = channels;
    sample.height = shape[1];
    sample.width = shape[2];
    sample.image.resize(view.spec.bytes() / sizeof(float));
    std::ranges::copy(view.bytes(), std::as_writable_bytes(std::span(sample.image)).begin());
  }
  const auto classes = trainer.locked([&] {
    std::vector<Tensor> all;
    const auto in_place = trainer.run().for_evaluation();
    for (const auto& sample : samples) {
      const auto labels = trainer.run().predict(sample);
      Tensor& tensor = all.emplace_back(TensorSpec{DType::U8, {sample.height, sample.width}});
      std::ranges::copy(labels, tensor.as<std::uint8_t>().begin());
    }
    return all;
  });
  py::list arrays;
  for (const auto& tensor : classes) arrays.append(to_array(tensor.clone()));
  return arrays;
}

}  // namespace

void add_trainer(py::module_& module) {
  module.def("saved_config", [](const std::string& folder) {
    return training::to_json(training::load_run(folder).config);
  });
  py::class_<PythonTrainer>(module, "Trainer")
      .def_static("begin", &begin)
      .def_static("resume", &resume)
      .def("train", &PythonTrainer::train)
      .def("stop", &PythonTrainer::stop)
      .def("losses",
           [](PythonTrainer& trainer) {
             const auto losses = trainer.locked([&] { return trainer.run().losses(); });
             return to_array(Tensor(Shape{std::ssize(losses)}, losses));
           })
      .def("epochs",
           [](PythonTrainer& trainer) {
             py::list list;
             for (const auto& epoch : trainer.locked([&] { return trainer.run().epochs(); }))
               list.append(epoch_dict(epoch));
             return list;
           })
      .def("config",
           [](PythonTrainer& trainer) {
             return trainer.locked([&] { return training::to_json(trainer.run().config()); });
           })
      .def("folder", [](PythonTrainer& trainer) { return trainer.run().folder().string(); })
      .def("total_steps",
           [](PythonTrainer& trainer) {
             return trainer.locked([&] { return trainer.run().total_steps(); });
           })
      .def("device", [](PythonTrainer& trainer) { return trainer.machine().device().info().name; })
      .def("ranks", [](PythonTrainer& trainer) { return trainer.run().trainer().ranks(); })
      .def("weights_sha256",
           [](PythonTrainer& trainer) {
             return trainer.locked([&] { return trainer.run().trainer().weights_sha256(); });
           })
      .def("states", &states)
      .def("predict", &predict);
}

}  // namespace triptych::python
