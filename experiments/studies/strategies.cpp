// Two GPUs in several ways: the claim "strategies".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "experiments/machines/links.h"
#include "experiments/studies/examinations.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/page_parts.h"
#include "experiments/studies/rules.h"
#include "experiments/studies/strategy_bench.h"

namespace triptych::studies {
namespace {

constexpr const char* kDevice = "rtx2070super";
constexpr const char* kPcie = "pcie3x8";

StrategyWork work_of(bool quick) {
  StrategyWork work;
  work.model = model_preset(quick ? "unet-m" : "unet-l");
  work.training.batch = 8;
  using Kind = parallel::Strategy::Kind;
  work.strategies = {{}, {.kind = Kind::Pipeline}, {.kind = Kind::Pipeline, .micro_batches = 2}};
  work.ranks = {1, 2};
  return work;
}

/// As `triptych bench strategies --device` has it.
ModelledCluster cluster() {
  ModelledCluster cluster;
  cluster.figures = machines::find_figures(kDevice);
  const auto link = machines::link_of(kPcie, cluster.figures);
  cluster.link = {link.alpha.value + 20e-6, link.beta.value * 0.76};
  return cluster;
}

/// T1 / T2 - 1 of the row.
double gain(const std::vector<StrategyRow>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &StrategyRow::name);
  return found == rows.end() ? 0 : speedup_percent(rows.front(), *found) / 100;
}

/// The survey does not say how it cut the model. The better of the two ways counts.
TwoRanks gains(const std::vector<StrategyRow>& rows) {
  return {gain(rows, "dp"), std::max(gain(rows, "layers"), gain(rows, "pipeline:2"))};
}

Json survey_of(const StrategyRow& row) {
  const auto seconds = survey_seconds(row.strategy, row.ranks);
  return seconds ? figure(*seconds, "s", TimeKind::Recorded) : Json(nullptr);
}

}  // namespace

Finding examine_strategies(Laboratory& laboratory) {
  const auto work = work_of(laboratory.quick());
  const EpochModel whole = {.epoch_s = kSurveySingle};
  const auto tables = model_strategies(work, cluster(), std::array{whole, kSurveyFit});
  const auto &plain = tables[0], &fitted = tables[1];
  const TwoRanks table_2 = {kSurveySingle / kSurveyData - 1, kSurveySingle / kSurveyModel - 1};
  const auto of_plain = gains(plain), of_fit = gains(fitted);
  std::vector<std::vector<Json>> rows;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto name = plain[i].name();
    rows.push_back({name, survey_of(plain[i]), figure(plain[i].time()), figure(fitted[i].time()),
                    figure(gain(plain, name), "%", TimeKind::Modelled),
                    figure(gain(fitted, name), "%", TimeKind::Modelled)});
  }
  Finding finding = {
      .verdict = judge_strategies(table_2, of_plain, of_fit),
      .why = fmt::format(
          "The table says {:+.1f} % and {:+.1f} %. Data sheets of its GPUs and their link give "
          "{:+.1f} % to data parallelism and at most {:+.1f} % to a cut of the model. With a fit, "
          "{} s of the epoch that do not scale and two micro-batches at {} of their efficiency, "
          "the model gives {:+.1f} % and {:+.1f} %; the survey states neither.",
          100 * table_2.data, 100 * table_2.model, 100 * of_plain.data, 100 * of_plain.model,
          kSurveyFit.fixed_s, kSurveyFit.micro_batch_efficiency, 100 * of_fit.data,
          100 * of_fit.model),
      .commands = {fmt::format("triptych bench strategies --model {} --batch {} --device {} --link "
                               "{}",
                               work.model.name, work.training.batch, kDevice, kPcie)}};
  finding.tables.push_back(table("An epoch on two RTX 2070 SUPER (table 2)",
                                 {{"strategy", ""},
                                  {"survey", "s"},
                                  {"from data sheets", "s"},
                                  {"with the fit", "s"},
                                  {"gain from data sheets", "%"},
                                  {"gain with the fit", "%"}},
                                 std::move(rows)));
  return finding;
}

}  // namespace triptych::studies
