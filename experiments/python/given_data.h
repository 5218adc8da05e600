// Pictures and batches that Python gives to a training run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <memory>

#include "experiments/training/run_config.h"

namespace triptych::python {

/// Data of a run instead of files. To be made with the GIL, and to outlive the run.
class GivenData {
 public:
  /// Without given data the run reads the data of its configuration.
  GivenData() = default;
  /// Training: a pair of lists, images (f32 [channels, height, width]) and labels (u8 [height,
  /// width]), or a callable that gives the batch (x, target) of a step, `steps` for an epoch.
  /// Validation: such a pair. None: none of it.
  GivenData(const pybind11::object& training, const pybind11::object& validation,
            std::int64_t steps);

  bool empty() const { return !training_ && !next_; }
  enum class Use : std::uint8_t {
    Once,   ///< the run takes the pictures away
    Again,  ///< each run gets a copy. A callable cannot restart
  };
  /// Throws InvalidArgument for a callable that is to be used again.
  training::LoadData load(Use use);
  /// Rethrows the exception of the callable, if there was one.
  void rethrow() const;

 private:
  segmentation::Batch next(std::int64_t step, std::int64_t classes);

  std::shared_ptr<segmentation::Dataset> training_, validation_;
  pybind11::object next_;
  std::int64_t steps_ = 0;
  std::exception_ptr raised_;
};

}  // namespace triptych::python
