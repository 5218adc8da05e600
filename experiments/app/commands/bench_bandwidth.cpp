// `triptych bench bandwidth`: copy and triad in each memory level of each backend, and the ratio of
// on-chip to off-chip bandwidth.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/parts.h"
#include "experiments/machines/machine_figures.h"
#include "experiments/measure/array_bandwidth.h"
#include "experiments/measure/calibrate.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "systolic/driver/watcher.h"

namespace triptych::app {
namespace {

using machines::Figure;
using machines::MemoryLevel;

struct BandwidthOptions {
  std::string backends = "cpu";
  std::string devices;  ///< published machines or device files, as a comma list
  std::string machine;  ///< of a systolic machine
  int threads = 0;
};

/// One machine.
struct BandwidthRow {
  machines::MachineFigures figures;  ///< its name ("systolic:mmu16"), and without a reason the rest
  std::string reason = {}, remedy = {};  ///< why it has no levels
};

/// Figures of the survey: 19 TB/s of SRAM, 1.5 to 2.0 TB/s of HBM.
constexpr double kSurveySram = 19e12, kSurveyHbmLow = 1.5e12, kSurveyHbmHigh = 2.0e12;

/// A level's best over the main memory's. Nothing where one of them is not known.
struct LevelRatio {
  double value = 0;
  TimeKind level = TimeKind::Measured, memory = TimeKind::Measured;
};
/// The better of copy and triad, nothing where neither is known.
std::optional<Figure> best_of(const MemoryLevel& level) {
  if (!level.copy || !level.triad) return level.copy ? level.copy : level.triad;
  return level.triad->value > level.copy->value ? level.triad : level.copy;
}

std::optional<LevelRatio> ratio_to_memory(const BandwidthRow& row, std::size_t level) {
  if (row.figures.levels.empty()) return std::nullopt;
  const auto near = best_of(row.figures.levels.at(level)), far = best_of(row.figures.levels.back());
  if (!near || !far || far->value <= 0) return std::nullopt;
  return LevelRatio{near->value / far->value, near->kind, far->kind};
}

/// Levels of an array as its programs reach them, and of others as measured or stated.
std::vector<MemoryLevel> levels_of(Device& device) {
  if (auto* array = dynamic_cast<mmu::Watched*>(&device))
    return measure::array_bandwidths(array->machine());
  return measure::levels_of(device);
}

/// Nothing for a device that neither measures nor states its peaks.
std::map<std::string, Figure> peaks_of(const Device& device) {
  try {
    return measure::peaks_of(device);
  } catch (const UnsupportedError&) {
    return {};
  }
}

BandwidthRow row_of(const std::string& name, const BandwidthOptions& options) {
  const Backend& backend = find_backend(name);
  BandwidthRow row;
  row.figures.name = name;
  const auto here = backend.availability();
  if (!here.available) {
    row.reason = here.reason;
    row.remedy = here.remedy;
    return row;
  }
  if (!backend.emulates().empty()) {
    row.reason = fmt::format("an emulation has no memory of {}'s", backend.emulates());
    row.remedy = "bench on " + name + " counts what kernels ask of it";
    return row;
  }
  training::ExecutionConfig config = {.backend = name, .threads = options.threads};
  const auto takes = backend.options();
  if (std::ranges::count(takes, "machine") > 0) config.machine = options.machine;
  const training::DeviceSet machine(config);
  auto& device = machine.device();
  row.figures = {.name = device.info().name,
                 .description = device.info().description,
                 .kind = measure::kind_of(device),
                 .peaks = peaks_of(device),
                 .levels = levels_of(device)};
  return row;
}

Json figure_json(const std::optional<Figure>& figure, const char* unit) {
  if (!figure) return nullptr;
  return page::figure_json(figure->value, unit, figure->kind, figure->source);
}

Json ratio_json(const std::optional<LevelRatio>& ratio) {
  if (!ratio) return nullptr;
  return {{"value", ratio->value}, {"kinds", {to_string(ratio->level), to_string(ratio->memory)}}};
}

Json row_json(const BandwidthRow& row) {
  const auto& figures = row.figures;
  Json json = {{"machine", figures.name}, {"available", row.reason.empty()}};
  if (!row.reason.empty()) {
    json["reason"] = row.reason;
    json["remedy"] = row.remedy;
    return json;
  }
  const auto file = Json::parse(machines::to_json(figures));
  for (const auto* field : {"description", "kind", "peaks"}) json[field] = file.at(field);
  json["links"] = file.value("links", Json::object());
  for (std::size_t i = 0; i < figures.levels.size(); ++i) {
    const auto& level = figures.levels[i];
    json["levels"].push_back({{"level", level.name},
                              {"capacity", figure_json(level.capacity, "byte")},
                              {"copy", figure_json(level.copy, "byte/s")},
                              {"triad", figure_json(level.triad, "byte/s")},
                              {"over_memory", ratio_json(ratio_to_memory(row, i))}});
  }
  json["on_chip_over_off_chip"] = ratio_json(ratio_to_memory(row, 0));
  return json;
}

Json survey_json() {
  const auto figure = [](double value) -> Json {
    return page::figure_json(value, "byte/s", TimeKind::Recorded, "the survey");
  };
  return {{"machine", "survey"},
          {"available", true},
          {"description", "what the survey says of a GPU"},
          {"sram", figure(kSurveySram)},
          {"hbm", {figure(kSurveyHbmLow), figure(kSurveyHbmHigh)}},
          {"on_chip_over_off_chip", {kSurveySram / kSurveyHbmHigh, kSurveySram / kSurveyHbmLow}}};
}

std::string rate_text(const std::optional<Figure>& figure) {
  return figure ? fmt::format("{:.4g}", figure->value * 1e-9) : "-";
}

std::string kind_text(const MemoryLevel& level) {
  const auto best = best_of(level);
  return best ? std::string(to_string(best->kind)) : "-";
}

/// Measures, simulates and looks up. Backends that are not here get a reason. Throws
/// InvalidArgument for unknown ones.
std::vector<BandwidthRow> bandwidths_of(const BandwidthOptions& options) {
  std::vector<BandwidthRow> rows;
  for (const auto& name : split_list(options.backends))
    if (!name.empty()) rows.push_back(row_of(name, options));
  for (const auto& name : split_list(options.devices))
    if (!name.empty()) rows.push_back({machines::find_figures(name)});
  return rows;
}

/// One result per machine, and one of the survey's figures.
Json to_json(const std::vector<BandwidthRow>& rows) {
  Json results = Json::array();
  for (const auto& row : rows) results.push_back(row_json(row));
  results.push_back(survey_json());
  return results;
}

void print_bandwidths(const std::vector<BandwidthRow>& rows) {
  page::TextTable table(
      {"machine", "level", "size", "copy GB/s", "triad GB/s", "kind", "over memory"});
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.figures.levels.size(); ++i) {
      const auto& level = row.figures.levels[i];
      const auto ratio = ratio_to_memory(row, i);
      table.add({row.figures.name, level.name,
                 level.capacity ? page::format_bytes(level.capacity->value) : "-",
                 rate_text(level.copy), rate_text(level.triad), kind_text(level),
                 ratio ? fmt::format("{:.3g}", ratio->value) : "-"});
    }
  }
  table.add(
      {"survey", "SRAM", "-", fmt::format("{:.4g}", kSurveySram * 1e-9), "-", "recorded",
       fmt::format("{:.3g} to {:.3g}", kSurveySram / kSurveyHbmHigh, kSurveySram / kSurveyHbmLow)});
  table.add({"survey", "HBM", "-",
             fmt::format("{:.4g} to {:.4g}", kSurveyHbmLow * 1e-9, kSurveyHbmHigh * 1e-9), "-",
             "recorded", "1"});
  print_text("bytes read and written, all copies of a level on the machine together\n");
  table.print();
  for (const auto& row : rows) {
    if (row.reason.empty()) continue;
    print_text("{}: not here, {}{}\n", row.figures.name, row.reason,
               row.remedy.empty() ? "" : "; " + row.remedy);
  }
}

}  // namespace

Command add_bandwidth_bench(Command& bench, Context& context) {
  auto options = std::make_shared<BandwidthOptions>();
  auto command = bench.add_subcommand(kBandwidthBench.name, kBandwidthBench.help);
  command.add_option("--backends", options->backends, "backends to measure, such as cpu,systolic");
  command.add_option("--device", options->devices,
                     "published devices to compare, such as h200,a100, or device files");
  add_run_option(command, "--machine", options->machine).only_with("--backends", {"systolic*"});
  add_run_option(command, "--threads", options->threads);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    const auto rows = bandwidths_of(*options);
    if (context.json) {
      print_document("bench bandwidth", to_json(rows));
    } else {
      print_bandwidths(rows);
    }
  });
  return command;
}

}  // namespace triptych::app
