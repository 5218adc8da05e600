// Share of its roofline that a machine's kernels reach, measured on small U-Nets, and the time that
// starting a kernel takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/machines/node_time.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

/// Seconds that a step of a plan takes when there is nothing to compute.
struct LaunchCost {
  double in_run = 0;    ///< among the other steps of a run
  double profiled = 0;  ///< when each step is timed alone
};
LaunchCost measure_launch(const training::DeviceSet& machine);

/// One node's time next to the roofline's.
struct KernelSample {
  std::string kernel;  ///< "Conv/winograd-4x4"
  double bound_s = 0;
  double flops_per_byte = 0;
  double seconds = 0;  ///< without the launch
};

/// The nodes of training steps and inferences of six U-Nets with layers that no preset has: medians
/// of several profiled runs on one machine of that configuration, while `busy` - 1 others run
/// concurrently. If `quick`, fewer runs of two of them.
std::vector<KernelSample> measure_kernels(const training::ExecutionConfig& config,
                                          const machines::NodeTimes& times, int busy, bool quick);

/// Points by kernel: points within a quarter of a factor of two in size and intensity are combined,
/// with the sum of the bounds over the sum of the times.
std::map<std::string, std::vector<machines::Efficiency>> points_of(
    const std::vector<KernelSample>& samples);

}  // namespace triptych::measure
