// A machine's figures: measured on a real one, from its description on a simulated one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/machines/machine_figures.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

/// Peaks of a device's processors by format, without the efficiency of its kernels: its measured
/// multiply-adds, or the product of its clock and units (modelled). Throws UnsupportedError for a
/// device that says neither.
std::map<std::string, machines::Figure> peaks_of(const Device& device);

/// Value of MachineFigures::kind for a device: "cpu", "gpu" or "array".
std::string kind_of(const Device& device);

/// The levels of a device's memory as figures.
std::vector<machines::MemoryLevel> levels_of(Device& device);

struct CalibrationOptions {
  std::string name = "this-machine";  ///< of the figures
  /// Numbers of machines side by side for which kernels are measured. Those that are more than the
  /// processors are left out.
  std::vector<int> ranks = {1, 2};
  bool quick = false;  ///< kernels by few runs of the smaller models. Predictions are coarser
  /// Receives the name of the next measurement.
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// All figures of the machine of that configuration. For a simulated one only peaks and levels.
/// Throws DeviceError when it is not available here.
machines::MachineFigures calibrate(const training::ExecutionConfig& config,
                                   const CalibrationOptions& options);

}  // namespace triptych::measure
