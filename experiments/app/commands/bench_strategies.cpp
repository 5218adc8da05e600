// `triptych bench strategies`: one training step with several strategies, measured on local ranks
// or modelled from data sheets, with the source survey's table.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/parts.h"
#include "experiments/machines/links.h"
#include "experiments/measure/statistics.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "experiments/studies/strategy_bench.h"

namespace triptych::app {
namespace {

struct StrategiesOptions {
  ModelOptions model;
  training::ExecutionConfig machine;
  OptimizerKind optimizer = OptimizerKind::Adam;
  std::string ranks = "1,2";
  std::string strategies = "dp,layers,pipeline:2,pipeline:4";
  std::int64_t batch = 4;
  int steps = 4, epochs = 3;
  std::string calibration;
  // With --device.
  std::string device, link = "rank", interconnect = "ring";
  double link_latency_s = 20e-6, link_efficiency = 0.76;
  bool no_overlap = false;
  machines::Assumptions assumptions;
  studies::EpochModel epoch = {.epoch_s = studies::kSurveySingle};
};

/// Rows with the same assumptions.
struct StrategySet {
  std::string name;  ///< "measured", "plain" or "fitted"
  std::vector<studies::StrategyRow> rows;
  std::optional<studies::EpochModel> epoch = {};  ///< of the latter two
};

/// Throws InvalidArgument unless all that the strategy's ranks exchange is part of each step.
void require_common_step(const parallel::Strategy& strategy) {
  const bool averages = strategy.kind == parallel::Strategy::Kind::LocalSgd;
  if (!averages && !parallel::asynchronous(strategy)) return;
  throw InvalidArgument(fmt::format(
      "the ranks of \"{}\" exchange states outside their steps, and this table is one of steps; "
      "compare its runs by triptych train",
      to_string(strategy)));
}

studies::StrategyWork work_of(const StrategiesOptions& options) {
  studies::StrategyWork work;
  work.model = options.model.config();
  work.training.batch = options.batch;
  work.training.optimizer.kind = options.optimizer;
  work.machine = options.machine;
  for (const auto& text : split_list(options.strategies)) {
    work.strategies.push_back(parallel::strategy_from_string(text));
    require_common_step(work.strategies.back());
  }
  work.ranks = parse_numbers(options.ranks);
  work.steps = options.steps;
  return work;
}

studies::ModelledCluster cluster_of(const StrategiesOptions& options) {
  studies::ModelledCluster cluster;
  cluster.figures = machines::find_figures(options.device);
  cluster.assumptions = options.assumptions;
  cluster.assumptions.format = machines::format_of(options.machine.contract);
  const auto link = machines::link_of(options.link, cluster.figures);
  cluster.link = {link.alpha.value + options.link_latency_s,
                  link.beta.value * options.link_efficiency};
  cluster.interconnect = options.interconnect;
  cluster.overlap = !options.no_overlap;
  return cluster;
}

/// With the options as they are, and with the survey's fit.
std::vector<StrategySet> modelled_sets(const StrategiesOptions& options) {
  const auto work = work_of(options);
  const auto cluster = cluster_of(options);
  const auto tables =
      studies::model_strategies(work, cluster, std::array{options.epoch, studies::kSurveyFit});
  std::vector<StrategySet> sets = {{"plain", tables[0], options.epoch},
                                   {"fitted", tables[1], studies::kSurveyFit}};
  for (auto& row : sets[0].rows) row.survey_s = studies::survey_seconds(row.strategy, row.ranks);
  for (auto& row : sets[1].rows) {
    // The fit is one of data parallel and of a pipeline of two.
    if (row.micro_batches == 2 || row.strategy.kind == parallel::Strategy::Kind::Replicated)
      row.survey_s = studies::survey_seconds(row.strategy, row.ranks);
  }
  return sets;
}

page::Json row_json(const StrategySet& set, const studies::StrategyRow& row,
                    const StrategiesOptions& options) {
  page::Json json = {{"assumptions", set.name}, {"strategy", row.name()}, {"ranks", row.ranks},
                     {"threads", row.threads},  {"batch", options.batch}, {"steps", options.steps}};
  if (row.epoch.samples > 0) {
    json.update(measure::times_json(row.epoch, TimeKind::Measured));
    json["communication"] = page::time_json({row.communication_s, TimeKind::Measured});
  }
  if (row.modelled) {
    json["modelled"] = page::time_json(*row.modelled);
    json["modelled_communication"] =
        page::time_json({row.modelled_communication_s, TimeKind::Modelled});
  }
  json["speedup_percent"] = {{"value", studies::speedup_percent(set.rows.front(), row)},
                             {"of", to_string(set.rows.front().time().kind)},
                             {"over", to_string(row.time().kind)}};
  json["bytes_sent"] = row.bytes_sent;
  json["memory_bytes"] = row.memory_bytes;
  json["elements_summed"] = row.elements_summed;
  json["elements_passed"] = row.elements_passed;
  if (set.epoch) {
    json["epoch_model"] = {{"fixed", page::time_json({set.epoch->fixed_s, TimeKind::Modelled})},
                           {"micro_batch_efficiency", set.epoch->micro_batch_efficiency}};
  }
  if (row.epoch.samples > 0) json["peak_memory_mib"] = measure::peak_memory_mib();
  if (row.survey_s) json["survey"] = page::time_json({*row.survey_s, TimeKind::Recorded});
  return json;
}

std::string list_of_memory(const studies::StrategyRow& row) {
  std::string text;
  for (const auto bytes : row.memory_bytes)
    text += (text.empty() ? "" : ", ") + fmt::format("{:.0f}", bytes / 1048576);
  return text;
}

void print_measured(const StrategySet& set, const StrategiesOptions& options) {
  print_text(
      "{}, batch {} of all ranks together, epochs of {} steps on {} (median, measured; data are "
      "there already); speedup measured over measured\n",
      options.model.name(), options.batch, options.steps, options.machine.backend);
  const bool predicted = set.rows.front().modelled.has_value();
  std::vector<std::string> header = {
      "strategy", "ranks",     "threads",       "epoch",    "min",
      "max",      "speedup %", "communication", "sent MiB", "planned MiB a rank"};
  if (predicted) header.insert(header.end(), {"calibration says (modelled)", "off by %"});
  page::TextTable table(header);
  for (const auto& row : set.rows) {
    std::vector<std::string> cells = {
        row.name(),
        fmt::format("{}", row.ranks),
        fmt::format("{}", row.threads),
        page::format_seconds(row.epoch.median),
        page::format_seconds(row.epoch.min),
        page::format_seconds(row.epoch.max),
        fmt::format("{:+.1f}", studies::speedup_percent(set.rows.front(), row)),
        page::format_seconds(row.communication_s),
        fmt::format("{:.2f}", static_cast<double>(row.bytes_sent) / 1048576),
        list_of_memory(row)};
    if (predicted) {
      cells.push_back(page::format_seconds(row.modelled->seconds));
      cells.push_back(fmt::format("{:+.1f}", 100 * (row.modelled->seconds / row.epoch.median - 1)));
    }
    table.add(std::move(cells));
  }
  table.print();
  print_text(
      "communication: rank 0's in an epoch, waiting for others included; sent: per step, by the "
      "rank that sends most; planned MiB of each rank; peak memory of the process with all ranks "
      "{:.0f} MiB\n",
      measure::peak_memory_mib());
}

void print_set(const StrategySet& set) {
  page::TextTable table({"strategy", "ranks", "epoch (modelled)", "speedup %", "communication",
                         "sent MiB", "planned MiB a rank", "survey (recorded)", "off by %"});
  for (const auto& row : set.rows) {
    const double seconds = row.time().seconds;
    table.add({row.name(), fmt::format("{}", row.ranks), fmt::format("{:.2f} s", seconds),
               fmt::format("{:+.1f}", studies::speedup_percent(set.rows.front(), row)),
               fmt::format("{:.2f} s", row.modelled_communication_s),
               fmt::format("{:.1f}", static_cast<double>(row.bytes_sent) / 1048576),
               list_of_memory(row), row.survey_s ? fmt::format("{:.2f} s", *row.survey_s) : "-",
               row.survey_s ? fmt::format("{:+.1f}", 100 * (seconds / *row.survey_s - 1)) : "-"});
  }
  table.print();
}

void print_modelled(const std::vector<StrategySet>& sets, const StrategiesOptions& options) {
  const auto& model = options.epoch;
  print_text(
      "{}, batch {} of all ranks together, on {} over {}: modelled, nothing ran. Nodes by the "
      "roofline (products reach {:.0f} % of it, other operators {:.0f} %) and a launch each, "
      "messages by {:.0f} us + bytes at {:.0f} % of the link, collectives {} the computation.\n\n",
      options.model.name(), options.batch, options.device, options.link,
      100 * options.assumptions.product_fraction, 100 * options.assumptions.other_fraction,
      options.link_latency_s * 1e6, 100 * options.link_efficiency,
      options.no_overlap ? "after" : "beside");
  print_text(
      "the plain model ({:.2f} s of an epoch of {:.2f} s do not scale, micro-batches at "
      "{:.0f} % of the rate):\n",
      model.fixed_s, model.epoch_s, 100 * model.micro_batch_efficiency);
  print_set(sets[0]);
  const auto& fit = studies::kSurveyFit;
  print_text(
      "\na fit to the survey, no prediction: these assumptions were chosen because they give its "
      "numbers ({} s of the epoch of {} s do not scale; micro-batches run at {:.0f} % of the "
      "rate):\n",
      fit.fixed_s, fit.epoch_s, 100 * fit.micro_batch_efficiency);
  print_set(sets[1]);
  print_text(
      "the survey states neither image size, batch, data set nor split, so its table does not tell "
      "its cause: a loader's ceiling, no overlap, a tiny batch or a slow path fit its first number "
      "as well. Change what is assumed by --fixed-seconds, --micro-batch-efficiency, --efficiency, "
      "--link, --link-efficiency, --no-overlap, --batch, --strategies\n");
}

void run(const StrategiesOptions& options, const Context& context) {
  const bool modelled = !options.device.empty();
  std::vector<StrategySet> sets;
  if (modelled) {
    sets = modelled_sets(options);
  } else {
    std::optional<machines::MachineFigures> calibration;
    if (!options.calibration.empty()) calibration = machines::find_figures(options.calibration);
    sets.push_back(
        {"measured", studies::measure_strategies(work_of(options), options.epochs,
                                                 calibration ? &*calibration : nullptr)});
  }
  if (context.json) {
    page::Json results = page::Json::array();
    for (const auto& set : sets)
      for (const auto& row : set.rows) results.push_back(row_json(set, row, options));
    print_document("bench strategies", std::move(results));
  } else if (modelled) {
    print_modelled(sets, options);
  } else {
    print_measured(sets.front(), options);
  }
}

void add_modelled_options(Command& command, StrategiesOptions& options) {
  const auto number = [&](const char* name, double& value, const Validator& range,
                          const char* help) {
    command.add_option(name, value, help).check(range).only_with("--device");
  };
  command.add_option("--device", options.device,
                     "model the table on such devices instead of measuring: a published one "
                     "(rtx2070super) or a file of triptych calibrate");
  command
      .add_option("--link", options.link,
                  "connection of the devices: pcie3x8, or a link of the device file")
      .only_with("--device");
  command
      .add_option("--interconnect", options.interconnect,
                  "shape of the links: ring, torus:4x2, switch or pcie:2 (slots to a bridge)")
      .only_with("--device");
  number("--link-latency", options.link_latency_s, number_from(0, 1e9),
         "seconds per message, in addition to the link's own latency");
  number("--link-efficiency", options.link_efficiency, number_from(0.01, 1.0),
         "fraction of the link's rate that messages reach, staged through the "
         "host");
  command
      .add_flag("--no-overlap", options.no_overlap,
                "run collectives after the computation, without overlap")
      .only_with("--device");
  number("--efficiency", options.assumptions.product_fraction, number_from(0.01, 4.0),
         "fraction of the roofline that products and convolutions reach, where "
         "its file has none");
  number("--other-efficiency", options.assumptions.other_fraction, number_from(0.01, 4.0),
         "fraction of the roofline that all other operators reach");
  number("--launch", options.assumptions.launch_s, number_from(0, 1e9),
         "seconds to start a GPU kernel, where the device file has none");
  number("--epoch-seconds", options.epoch.epoch_s, number_from(0, 1e9),
         "epoch of one device, which scales the table (0: --steps times "
         "the modelled step)");
  number("--fixed-seconds", options.epoch.fixed_s, number_from(0, 1e9),
         "part of the epoch that no strategy shortens");
  number("--micro-batch-efficiency", options.epoch.micro_batch_efficiency, number_from(0.01, 1.0),
         "rate on micro-batches, relative to whole batches");
}

}  // namespace

Command add_strategies_bench(Command& bench, Context& context) {
  auto options = std::make_shared<StrategiesOptions>();
  auto command = bench.add_subcommand(kStrategiesBench.name, kStrategiesBench.help);
  options->model.asked.name = "unet-m";
  options->model.add_to(command);
  add_machine_options(command, options->machine);
  add_run_option(command, "--optimizer", options->optimizer, "rule that updates the weights");
  command.add_option("--ranks", options->ranks, "numbers of ranks, such as 1,2")
      .check(numbers_to(training::most_of("--ranks")));
  command.add_option("--strategies", options->strategies,
                     "strategies to compare, as in train --strategy");
  add_run_option(command, "--batch", options->batch, "images per step of all ranks together");
  command.add_option("--steps", options->steps, "steps of an epoch").check(whole_from(1, 1000000));
  command.add_option("--epochs", options->epochs, "measured epochs per strategy, in turns")
      .check(whole_from(1, 100000))
      .not_with("--device");
  command
      .add_option("--calibration", options->calibration,
                  "device file that triptych calibrate wrote here: adds its predictions")
      .not_with("--device");
  add_modelled_options(command, *options);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    if (!options->device.empty()) {
      // The survey's network is the classic U-Net. No other was requested.
      if (command.count("--model") == 0) {
        options->model.asked.name = "unet-l";
        if (command.count("--batch") == 0) options->batch = 8;
      }
    }
    run(*options, context);
  });
  return command;
}

}  // namespace triptych::app
