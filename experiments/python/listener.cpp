// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/listener.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace triptych::python {

py::dict epoch_dict(const training::EpochReport& report) {
  using namespace py::literals;
  const segmentation::MapScores scores(report.scores);
  return py::dict(
      "epoch"_a = report.epoch, "steps"_a = report.steps, "loss"_a = report.loss,
      "dice"_a = scores.dice, "iou"_a = scores.iou, "pixel_error"_a = scores.pixel_error,
      "validation_loss"_a = report.scores.if_scored(report.validation_loss),
      "seconds"_a = report.train_time.seconds, "time_kind"_a = to_string(report.train_time.kind),
      "images_per_second"_a = report.images_per_second);
}

training::Observer Listener::observer() {
  training::Observer observer;
  observer.on_note = [this](const std::string& note) { call("on_note", note); };
  observer.on_step = [this](const training::StepReport& step) {
    call("on_step", step.step, step.total, step.epoch, step.loss);
  };
  observer.on_image = [this](std::int64_t judged, std::int64_t images) {
    call("on_image", judged, images);
  };
  observer.on_epoch = [this](const training::EpochReport& report) {
    const py::gil_scoped_acquire gil;
    call("on_epoch", epoch_dict(report));
  };
  return observer;
}

}  // namespace triptych::python
