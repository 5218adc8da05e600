// The parts of one training step: its nodes with place, reason, time and work, the counters of the
// machine, and the machine's peak figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/runtime/executor.h"
#include "experiments/training/training_run.h"

namespace triptych::compare {

/// One node of the plan.
struct Layer {
  std::string node, op, pass, kernel, device, why;
  std::string stage;  ///< part of the network: the outermost scope of the forward node's name
  std::optional<Duration> time;  ///< nothing where it says nothing
  Cost cost;
  double macs = 0;  ///< multiply-adds of convolutions, their gradients and matrix products
  std::vector<LevelTraffic> traffic;  ///< of its kernel, where it is modelled
};

struct StepAnatomy {
  std::vector<Layer> layers;  ///< in order of the plan
  double model_flops = 0;     ///< need of the step with nothing recomputed
  /// By how much the device's counters grew in one step (Device::counters).
  std::map<std::string, double> counters;
  /// Time of the step on a simulated machine's host (modelled). 0: none.
  double host_seconds = 0;
  DeviceFacts facts;  ///< of the device
};

/// Takes the next step of `run` apart, which trains it on by a few steps. With `timed` false no
/// node is timed and nothing is run.
StepAnatomy dissect_step(const training::DeviceSet& machine, training::TrainingRun& run,
                         bool timed);

/// "forward", "backward" or "optimizer".
std::string_view to_string(Phase phase);

/// Multiply-adds that the node is made of. 0 where it is no convolution or matrix product.
double macs_of(const Graph& graph, const Node& node);

}  // namespace triptych::compare
