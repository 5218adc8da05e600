// `triptych find-lr`: a short training with a rising learning rate, and the suggested rates.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/progress.h"
#include "experiments/app/train_options.h"
#include "experiments/page/text_table.h"
#include "experiments/training/learning_rate_finder.h"

namespace triptych::app {
namespace {

using training::RateFinding;
using training::RateTrial;

constexpr std::size_t kRows = 20;  // of the table

struct FindLrOptions {
  TrainOptions train;
  training::RateRange range;
  std::string out;
};

std::string csv_of(const RateFinding& finding) {
  std::string text = "rate,loss,smoothed\n";
  for (const auto& trial : finding.trials)
    text += fmt::format("{},{},{}\n", trial.rate, trial.loss, trial.smoothed);
  return text;
}

page::Json finding_json(const RateFinding& finding) {
  page::Json trials = page::Json::array();
  for (const auto& trial : finding.trials) {
    trials.push_back({{"rate", trial.rate}, {"loss", trial.loss}, {"smoothed", trial.smoothed}});
  }
  const auto advice = advise(finding.trials);
  return {{"trials", std::move(trials)},
          {"diverged", finding.diverged},
          {"steepest", advice ? page::Json(advice->steepest) : page::Json()},
          {"tenth_of_lowest", advice ? page::Json(advice->tenth_of_lowest) : page::Json()}};
}

void print(const RateFinding& finding) {
  page::TextTable table({"learning rate", "loss", "smoothed loss"});
  const auto& trials = finding.trials;
  const auto stride = (trials.size() + kRows - 1) / kRows;
  for (std::size_t i = 0; i < trials.size(); i += stride) {
    table.add({fmt::format("{:.2e}", trials[i].rate), fmt::format("{:.4f}", trials[i].loss),
               fmt::format("{:.4f}", trials[i].smoothed)});
  }
  table.print();
  const auto advice = advise(trials);
  if (!advice) {
    print_text(
        "no suggestion: the loss does not fall; give another range by --from and --to, or more "
        "--trials\n");
    return;
  }
  print_text(
      "suggested: --lr {:.1e}; the loss falls fastest at {:.1e}, a tenth of where it is "
      "lowest is {:.1e}\n",
      std::min(advice->steepest, advice->tenth_of_lowest), advice->steepest,
      advice->tenth_of_lowest);
}

void find_lr(const FindLrOptions& options, Context& context) {
  const auto config = options.train.config();
  require_outside(options.out, config.data);
  if (!options.out.empty()) require_writable(options.out);
  options.train.print_unasked_data();
  const DeviceSet machine(options.train.machine_config());
  const InterruptGuard guard;
  RateFinding finding;
  {
    Progress progress;
    std::int64_t done = 0;
    finding = training::try_learning_rates(
        machine, config, options.range,
        [&](const RateTrial& trial) {
          progress.update(++done, options.range.steps,
                          fmt::format("lr {:.2e} loss {:.4f}", trial.rate, trial.loss));
        },
        [&] { return !guard.interrupted(); });
  }
  if (guard.interrupted()) {
    say_note("stopped; nothing was written");
    context.exit_code = kStopped;
    return;
  }
  if (!options.out.empty()) write_own_file(options.out, csv_of(finding));
  if (context.json) return print_document("find-lr", page::Json::array({finding_json(finding)}));
  print(finding);
}

}  // namespace

void describe_find_lr(Command& command, Context& context) {
  auto options = std::make_shared<FindLrOptions>();
  const auto rate = allowed_for("--lr");
  command.add_option("--from", options->range.low, "learning rate of the first step").check(rate);
  command.add_option("--to", options->range.high, "learning rate of the last step").check(rate);
  command.add_option("--trials", options->range.steps, "number of steps, each with a higher rate")
      .check(whole_from(10, 100000));
  command.add_option("--out", options->out, "CSV file of all trials").output_file();
  options->train.model.takes_arrays = true;
  options->train.add_trial_to(command);
  add_machine_options(command, options->train.machine);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { find_lr(*options, context); });
}

}  // namespace triptych::app
