// The commands of the part "studies" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void describe_reproduce(Command& command, Context&) { describe_absent(command, "studies"); }

Command add_bandwidth_bench(Command& bench, Context&) {
  return add_absent_command(bench, kBandwidthBench, "studies");
}

Command add_strategies_bench(Command& bench, Context&) {
  return add_absent_command(bench, kStrategiesBench, "studies");
}

}  // namespace triptych::app
