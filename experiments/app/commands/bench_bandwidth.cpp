// `triptych bench bandwidth`: copy and triad in each memory level of each backend, and the ratio of
// on-chip to off-chip bandwidth.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/parts.h"
#include "experiments/studies/bandwidth_table.h"

namespace triptych::app {

Command add_bandwidth_bench(Command& bench, Context& context) {
  auto options = std::make_shared<studies::BandwidthOptions>();
  auto command = bench.add_subcommand(kBandwidthBench.name, kBandwidthBench.help);
  command.add_option("--backends", options->backends, "backends to measure, such as cpu,systolic")
      .capture_default_str();
  command.add_option("--device", options->devices,
                     "published devices to compare, such as h200,a100, or device files");
  add_run_option(command, "--machine", options->machine).only_with("--backends", {"systolic*"});
  add_run_option(command, "--threads", options->threads);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    const auto rows = studies::bandwidths_of(*options);
    if (context.json) {
      print_document("bench bandwidth", to_json(rows));
    } else {
      studies::print_bandwidths(rows);
    }
  });
  return command;
}

}  // namespace triptych::app
