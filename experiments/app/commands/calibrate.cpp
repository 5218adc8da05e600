// `triptych calibrate`: the measured ceilings of this machine as a device file. For a simulated
// machine, from its description.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/calibrate.h"
#include "core/base/console.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

using machines::Figure;

struct CalibrateOptions {
  training::ExecutionConfig machine;
  std::string name = "this-machine";
  std::string out;
  std::string ranks = "1,2";
  bool quick = false;
};

std::string giga(const std::optional<Figure>& figure) {
  return figure ? fmt::format("{:.2f}", figure->value * 1e-9) : "-";
}

void print_efficiencies(const machines::EfficiencyTable& table) {
  print_text("\nwhat kernels reach of a {} of the roofline, {} at work ({}):\n",
             table.ranks == 1 ? "whole" : fmt::format("{}th", table.ranks), table.busy,
             to_string(table.kind));
  page::TextTable rows({"kernel", "roofline from", "to", "% least", "most"});
  for (const auto& [kernel, points] : table.classes) {
    const auto [least, most] = std::ranges::minmax(points, {}, &machines::Efficiency::fraction);
    const auto [small, large] = std::ranges::minmax(points, {}, &machines::Efficiency::bound_s);
    rows.add({kernel, page::format_seconds(small.bound_s), page::format_seconds(large.bound_s),
              fmt::format("{:.1f}", 100 * least.fraction),
              fmt::format("{:.1f}", 100 * most.fraction)});
  }
  rows.print();
}

void print_figures(const machines::MachineFigures& figures) {
  print_text("{}: {}\n\n", figures.name, figures.description);
  page::TextTable peaks({"format", "peak GFLOP/s", "kind"});
  for (const auto& [format, peak] : figures.peaks)
    peaks.add({format, giga(peak), std::string(to_string(peak.kind))});
  peaks.print();
  print_text("\n");
  page::TextTable levels({"level", "capacity", "copy GB/s", "triad GB/s", "kind"});
  for (const auto& level : figures.levels) {
    const auto& known = level.copy ? level.copy : level.triad;
    levels.add({level.name, level.capacity ? page::format_bytes(level.capacity->value) : "-",
                giga(level.copy), giga(level.triad),
                known ? std::string(to_string(known->kind)) : "-"});
  }
  levels.print();
  if (figures.launch) {
    print_text("\nstarting a kernel: {} ({})\n", page::format_seconds(figures.launch->value),
               to_string(figures.launch->kind));
  }
  for (const auto& [name, link] : figures.links) {
    print_text("link \"{}\" ({}): {} + bytes / {} GB/s{}\n", name, to_string(link.beta.kind),
               page::format_seconds(link.alpha.value), giga(link.beta),
               link.add ? fmt::format("; sums at {} GB/s", giga(link.add)) : "");
  }
  for (const auto& table : figures.efficiencies) print_efficiencies(table);
}

machines::MachineFigures measure(const CalibrateOptions& options) {
  measure::CalibrationOptions calibration;
  calibration.name = options.name;
  calibration.quick = options.quick;
  calibration.ranks.clear();
  for (const auto ranks : parse_numbers(options.ranks)) {
    calibration.ranks.push_back(static_cast<int>(ranks));
  }
  if (isatty(STDERR_FILENO) != 0) {
    calibration.progress = [](const std::string& what) {
      say(fmt::format("measuring {} ...", what));
    };
  }
  return measure::calibrate(options.machine, calibration);
}

}  // namespace

void describe_calibrate(Command& command, Context& context) {
  auto options = std::make_shared<CalibrateOptions>();
  add_machine_options(command, options->machine);
  command
      .add_option("--ranks", options->ranks,
                  "numbers of ranks that divide the threads, for which kernels are measured")
      .check(numbers_to(training::most_of("--ranks")));
  command.add_flag("--quick", options->quick,
                   "measure only two of the six models: seconds, and coarser predictions");
  command.add_option("--name", options->name, "name of the machine in its file");
  command.add_option("--out", options->out, "device file (JSON)").output_file();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    if (!options->out.empty()) require_writable(options->out);
    const auto figures = measure(*options);
    if (!options->out.empty()) write_own_file(options->out, to_json(figures));
    if (context.json) {
      print_document("calibrate", page::Json::array({page::Json::parse(to_json(figures))}));
      return;
    }
    print_figures(figures);
    if (!options->out.empty()) print_text("\nwritten: {}\n", options->out);
  });
}

}  // namespace triptych::app
