// The rows of `triptych bench`, as tables and JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/runtime/executor.h"
#include "core/runtime/kernel_counters.h"
#include "experiments/measure/array_ranks.h"
#include "experiments/measure/array_use.h"
#include "experiments/measure/dataflows.h"
#include "experiments/measure/statistics.h"
#include "experiments/page/json.h"

namespace triptych::app {

/// Time of a problem on a machine that is known by its figures.
struct ModelledTime {
  std::string device;
  Duration time;
  double bound_s = 0;  ///< of it at the machine's roofline
};

/// One problem on one machine: timed, or on a machine that counts, counted.
struct BenchRow {
  std::string name;
  std::string kernel;  ///< the only node, or the requested node, otherwise empty
  std::int64_t batch = 1;
  std::int64_t threads = 0;
  measure::Statistics time;  ///< no samples: it was counted
  TimeKind kind = TimeKind::Measured;
  double flops = 0;
  double plan_bytes = 0;
  double peak_memory_mib = 0;  ///< of the process, up to the end of this row
  std::optional<double> roof;  ///< FLOP/s that the device can reach at most (modelled), if it tells
  std::optional<double> peak;  ///< FLOP/s of the processors' multiply-adds (measured), if it tells
  std::vector<LevelTraffic> traffic;  ///< of the only node's kernel, if it is modelled
  std::optional<ModelledTime> modelled;
  std::vector<StepProfile> layers;
  std::vector<std::pair<std::string, Cost>> layer_work;
  /// Seconds of each layer at this device's own roofline (modelled). Empty: it is not known.
  std::vector<double> layer_bounds;
  std::optional<training::HostShare> host;
  std::optional<measure::ArrayRanks> ranks;  ///< that share the batch, with an array each
  std::vector<measure::ArrayUse> array;
  std::vector<measure::DataflowCounts> dataflows;
  KernelCounterTable counters;
};

/// Facts that all rows have in common.
struct BenchHeader {
  std::string backend, contract;
  bool ladder = false;  ///< compare the kernels of a problem
  bool source = false;  ///< counters by line of source
  machines::EnergyTable energy;
};

page::Json to_json(const std::vector<BenchRow>& rows, const BenchHeader& header);
void print_rows(const std::vector<BenchRow>& rows, const BenchHeader& header);

}  // namespace triptych::app
