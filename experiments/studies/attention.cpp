// Traffic of attention between a GPU's global memory and its chip: the claim "flash-attention".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "experiments/page/text_table.h"
#include "experiments/studies/examinations.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/page_parts.h"
#include "experiments/studies/rules.h"

namespace triptych::studies {
namespace {

constexpr double kHead = 64;  ///< columns of a head
constexpr double kTile = 64;  ///< queries of a block of the kernel `flash`
constexpr double kFloat = 4;  ///< bytes

measure::Problem attention(std::int64_t length, const std::string& kernel) {
  measure::BenchOptions options;
  options.machine.backend = "cuda-emulated";
  options.lengths = std::to_string(length);
  options.head_size = static_cast<std::int64_t>(kHead);
  options.kernels = kernel;
  const training::DeviceSet machine({.backend = "cuda-emulated"});
  return measure::attention_problems(options, machine.device(), 1).front();
}

/// Queries and results once, keys and values once for each tile of queries.
double flash_formula(double n) { return kFloat * kHead * n * (2 + 2 * n / kTile); }

/// The scores alone, each time one of the operations of the materialised form reads or writes them:
/// the product writes them, the scaling, the softmax and the second product take them on.
double score_passes(double n, double bytes) { return bytes / (kFloat * n * n); }

}  // namespace

Finding examine_attention(Laboratory&) {
  const std::vector<std::int64_t> lengths = {128, 256, 512};
  std::vector<std::vector<Json>> rows;
  Series of_flash = {.name = "flash, counted", .kind = TimeKind::Simulated, .points = {}};
  Series of_materialised = {
      .name = "materialised, counted", .kind = TimeKind::Simulated, .points = {}};
  Series formula = {.name = "flash, formula", .kind = TimeKind::Modelled, .points = {}};
  std::vector<Counted> flash, materialised;
  for (const auto length : lengths) {
    const auto n = static_cast<double>(length);
    flash.push_back({sector_bytes(count(attention(length, "flash"))), flash_formula(n)});
    materialised.push_back({sector_bytes(count(attention(length, "materialised"))), 0});
    of_flash.points.emplace_back(n, flash.back().bytes);
    of_materialised.points.emplace_back(n, materialised.back().bytes);
    formula.points.emplace_back(n, flash.back().formula);
    const auto bytes = [](double value, TimeKind kind) { return figure(value, "byte", kind); };
    rows.push_back({length, bytes(flash.back().bytes, TimeKind::Simulated),
                    bytes(flash.back().formula, TimeKind::Modelled),
                    bytes(materialised.back().bytes, TimeKind::Simulated),
                    ratio(materialised.back().bytes / flash.back().bytes, TimeKind::Simulated,
                          TimeKind::Simulated),
                    figure(score_passes(n, materialised.back().bytes), "1", TimeKind::Simulated)});
  }
  // The materialised form's law, a n^2 + b n, from the two shorter lengths, predicts the longest.
  const double n0 = static_cast<double>(lengths[0]), n1 = static_cast<double>(lengths[1]),
               n2 = static_cast<double>(lengths.back());
  const double slope0 = materialised[0].bytes / n0, slope1 = materialised[1].bytes / n1;
  const double square = (slope1 - slope0) / (n1 - n0), linear = slope0 - square * n0;
  materialised.back().formula = square * n2 * n2 + linear * n2;
  const auto &short_one = flash.back(), &long_one = materialised.back();
  Finding finding = {
      .verdict = judge_attention(short_one, long_one),
      .why = fmt::format("At {} queries of {} columns the materialised form moves {}, flash {}: "
                         "{:.1f} times less. The formula, 4 d n (2 + 2 n / {}) bytes, gives {}.",
                         lengths.back(), kHead, page::format_bytes(long_one.bytes),
                         page::format_bytes(short_one.bytes), long_one.bytes / short_one.bytes,
                         kTile, page::format_bytes(short_one.formula)),
      .commands = {fmt::format("triptych bench attention --backend cuda-emulated --lengths {}..{} "
                               "--kernel materialised,flash",
                               lengths.front(), lengths.back())}};
  finding.tables.push_back(table("Global memory of one head",
                                 {{"length", "1"},
                                  {"flash, counted", "byte"},
                                  {"flash, formula", "byte"},
                                  {"materialised, counted", "byte"},
                                  {"ratio", "x"},
                                  {"in passes over the scores", "1"}},
                                 std::move(rows)));
  finding.charts.push_back(line_chart("attention-bytes", "Bytes between HBM and the chip",
                                      {.label = "queries and keys", .unit = "1", .log = true},
                                      {.label = "moved", .unit = "byte", .log = true},
                                      {of_flash, formula, of_materialised}));
  return finding;
}

}  // namespace triptych::studies
