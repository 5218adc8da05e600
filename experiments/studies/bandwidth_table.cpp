// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/bandwidth_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/measure/array_bandwidth.h"
#include "experiments/measure/calibrate.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "experiments/studies/page_parts.h"
#include "systolic/driver/watcher.h"

namespace triptych::studies {
namespace {

using machines::Figure;
using machines::MemoryLevel;

/// Levels of an array as its programs reach them, and of others as measured or stated.
std::vector<MemoryLevel> levels_of(Device& device) {
  if (auto* array = dynamic_cast<mmu::Watched*>(&device))
    return measure::array_bandwidths(array->machine());
  return measure::levels_of(device);
}

BandwidthRow row_of(const std::string& name, const BandwidthOptions& options) {
  const Backend& backend = find_backend(name);
  BandwidthRow row = {.name = name, .description = {}, .reason = {}, .remedy = {}, .levels = {}};
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
  row.name = machine.device().info().name;
  row.description = machine.device().info().description;
  row.levels = levels_of(machine.device());
  return row;
}

BandwidthRow published_row(const std::string& name) {
  const auto figures = machines::find_figures(name);
  return {.name = figures.name,
          .description = figures.description,
          .reason = {},
          .remedy = {},
          .levels = figures.levels};
}

page::Json figure_json(const std::optional<Figure>& figure, const char* unit) {
  return figure ? studies::figure(*figure, unit) : nullptr;
}

page::Json ratio_json(const std::optional<LevelRatio>& ratio) {
  if (!ratio) return nullptr;
  return {{"value", ratio->value}, {"kinds", {to_string(ratio->level), to_string(ratio->memory)}}};
}

page::Json row_json(const BandwidthRow& row) {
  page::Json json = {{"machine", row.name}, {"available", row.reason.empty()}};
  if (!row.reason.empty()) {
    json["reason"] = row.reason;
    json["remedy"] = row.remedy;
    return json;
  }
  json["description"] = row.description;
  for (std::size_t i = 0; i < row.levels.size(); ++i) {
    const auto& level = row.levels[i];
    json["levels"].push_back({{"level", level.name},
                              {"capacity", figure_json(level.capacity, "byte")},
                              {"copy", figure_json(level.copy, "byte/s")},
                              {"triad", figure_json(level.triad, "byte/s")},
                              {"over_memory", ratio_json(ratio_to_memory(row, i))}});
  }
  json["on_chip_over_off_chip"] = ratio_json(ratio_to_memory(row, 0));
  return json;
}

page::Json survey_json() {
  const auto figure = [](double value) -> page::Json {
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

}  // namespace

std::optional<Figure> best_of(const MemoryLevel& level) {
  if (!level.copy || !level.triad) return level.copy ? level.copy : level.triad;
  return level.triad->value > level.copy->value ? level.triad : level.copy;
}

std::optional<LevelRatio> ratio_to_memory(const BandwidthRow& row, std::size_t level) {
  if (row.levels.empty()) return std::nullopt;
  const auto near = best_of(row.levels.at(level)), far = best_of(row.levels.back());
  if (!near || !far || far->value <= 0) return std::nullopt;
  return LevelRatio{near->value / far->value, near->kind, far->kind};
}

std::vector<BandwidthRow> bandwidths_of(const BandwidthOptions& options) {
  std::vector<BandwidthRow> rows;
  for (const auto& name : split_list(options.backends))
    if (!name.empty()) rows.push_back(row_of(name, options));
  for (const auto& name : split_list(options.devices))
    if (!name.empty()) rows.push_back(published_row(name));
  return rows;
}

page::Json to_json(const std::vector<BandwidthRow>& rows) {
  page::Json results = page::Json::array();
  for (const auto& row : rows) results.push_back(row_json(row));
  results.push_back(survey_json());
  return results;
}

void print_bandwidths(const std::vector<BandwidthRow>& rows) {
  page::TextTable table(
      {"machine", "level", "size", "copy GB/s", "triad GB/s", "kind", "over memory"});
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.levels.size(); ++i) {
      const auto& level = row.levels[i];
      const auto ratio = ratio_to_memory(row, i);
      table.add({row.name, level.name,
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
    print_text("{}: not here, {}{}\n", row.name, row.reason,
               row.remedy.empty() ? "" : "; " + row.remedy);
  }
}

}  // namespace triptych::studies
