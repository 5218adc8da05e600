// `triptych compare`: one experiment on several backends, and one page of results.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "core/io/temporary_folder.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/progress.h"
#include "experiments/app/row_report.h"
#include "experiments/app/saved_run.h"
#include "experiments/app/train_options.h"
#include "experiments/compare/compare_page.h"
#include "experiments/compare/comparison.h"
#include "experiments/measure/processor_load.h"
#include "experiments/page/json.h"
#include "experiments/page/page.h"
#include "experiments/page/record.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;
using compare::Column;
using compare::Comparison;
using compare::MachineResult;
using training::EpochReport;

struct CompareOptions {
  TrainOptions train;  ///< the experiment
  std::string backends = "cpu,cuda,systolic";
  Contract contract = Contract::Bf16Exact;
  std::string machine;
  int threads = 0;
  std::string out = "report.html";
  std::string runs;
  std::string figures;
  std::string recorded;
  std::string energy{machines::kDefaultEnergyTable};
  bool require = false;
};

std::vector<machines::MachineFigures> figures_of(const std::string& text) {
  std::vector<machines::MachineFigures> list;
  for (const auto& name : split_list(text)) {
    if (!name.empty()) list.push_back(machines::find_figures(name));
  }
  return list;
}

training::ExecutionConfig common_config(const CompareOptions& options) {
  training::ExecutionConfig common;
  common.contract = options.contract;
  common.threads = options.threads;
  common.machine = options.machine;
  return common;
}

training::Observer observer_of(Progress& progress, const std::string& label, bool timed) {
  training::Observer observer;
  observer.on_note = say_note;
  observer.on_step = [&progress, label](const training::StepReport& step) {
    progress.update(step.step, step.total,
                    fmt::format("{}: epoch {} loss {:.4f}", label, step.epoch, step.loss));
  };
  observer.on_epoch = [&progress, label, timed](const EpochReport& report) {
    const auto score = page::format_score(report.scores.mean_dice);
    const auto time = timed ? fmt::format("  {:.1f} images/s ({})", report.images_per_second,
                                          to_string(report.train_time.kind))
                            : std::string();
    say(fmt::format("{}: epoch {:3}  loss {:.4f}  Dice {}{}", label, report.epoch, report.loss,
                    score, time));
  };
  return observer;
}

compare::Listener listener_of(Progress& progress) {
  compare::Listener listener;
  listener.observer = [&](const compare::MachineRequest& request) {
    say(fmt::format("{}: {}", request.label, to_string(request.config.contract)));
    return observer_of(progress, request.label, !request.stands_in());
  };
  listener.on_absence = [&](const Column& column) {
    say(with_dashes(to_string(column.request, column.absence)));
  };
  listener.on_difference = [&](const auto& first, const auto& second) {
    say(fmt::format("{} and {} differ; training both again to find the first node", first.label,
                    second.label));
  };
  return listener;
}

/// Its sentences as the command line says them.
void speak_of_options(Comparison& all) {
  for (auto& column : all.columns) column.absence.reason = with_dashes(column.absence.reason);
  all.no_difference = with_dashes(all.no_difference);
}

std::string time_cell(const compare::Timing& timing, bool says_nothing) {
  return says_nothing ? "-" : page::format_seconds(timing.seconds) + timing.spread();
}

/// "2.31 (measured / modelled)", or "(measured / modelled, target clock)".
std::string speedup_cell(const Comparison& all, const MachineResult& result) {
  const auto speedup = compare::speedup_of(all, result);
  if (!speedup) return "-";
  return fmt::format("{:.3g} ({} / {}{})", *speedup, to_string(all.baseline()->epoch.kind),
                     to_string(result.epoch.kind),
                     compare::target_clock_note(result.request).empty() ? "" : ", target clock");
}

void print_machines(const Comparison& all) {
  page::TextTable table({"machine", "contract", "last loss", "Dice", "IoU", "epoch", "step",
                         "inference", "images/s", "kind", "speedup", "weights", "masks"});
  for (const auto& column : all.columns) {
    if (!column.result) continue;
    const auto& result = *column.result;
    const bool bits_only = column.request.stands_in();
    const auto& scores = result.epochs.back().scores;
    table.add({column.request.label, std::string(to_string(column.request.config.contract)),
               fmt::format("{:.6f}", result.losses.back()), page::format_score(scores.mean_dice),
               page::format_score(scores.mean_iou), time_cell(result.epoch, bits_only),
               time_cell(result.step, bits_only), time_cell(result.inference, bits_only),
               bits_only ? "-" : fmt::format("{:.1f}", 1 / result.image_seconds()),
               bits_only ? "bits only" : std::string(to_string(result.epoch.kind)),
               speedup_cell(all, result), result.weights_sha256.substr(0, 12),
               result.masks_sha256.substr(0, 12)});
  }
  table.print();
}

/// Prints the scores of each class where there are more than two.
void print_classes(const Comparison& all) {
  page::TextTable table(
      page::heads({"machine", "class"}, page::values_of(segmentation::ClassScores())));
  bool several = false;
  const auto names = class_names_of(all.experiment.run);
  for (const auto& column : all.columns) {
    if (!column.result) continue;
    std::size_t label = 0;
    for (const auto& one : column.result->epochs.back().scores.classes) {
      several = several || label > 0;
      table.add(
          page::cells({column.request.label, class_text(names, ++label)}, page::values_of(one)));
    }
  }
  if (!several) return;
  table.print();
}

/// A line that is wrapped at the width of the terminal.
template <typename... Values>
void print_prose(fmt::format_string<Values...> format, Values&&... values) {
  print_text("{}", page::fitted(fmt::format(format, std::forward<Values>(values)...), 2));
}

void print_verdict(const Comparison& all) {
  const auto verdict = all.verdict();
  const auto names = fmt::format("{}", fmt::join(verdict.machines, ", "));
  if (verdict.machines.size() < 2) {
    print_prose("one machine alone: nothing to compare its bits with");
  } else if (verdict.identical()) {
    print_prose("identical to the bit: losses, weights and masks of {}", names);
  } else {
    print_prose("not identical: {}{}{}of {} differ from those of {}",
                verdict.losses ? "" : "losses ", verdict.weights ? "" : "weights ",
                verdict.masks ? "" : "masks ", fmt::join(verdict.different, ", "),
                verdict.machines.front());
    if (verdict.machines.size() - verdict.different.size() > 1) {
      std::vector<std::string> same;
      std::ranges::copy_if(verdict.machines, std::back_inserter(same), [&](const auto& name) {
        return std::ranges::count(verdict.different, name) == 0;
      });
      print_prose("identical to the bit: {}", fmt::join(same, ", "));
    }
  }
  if (!all.difference) return;
  const auto& d = *all.difference;
  if (d.node.empty()) {
    print_prose("no node differs when {} and {} train again; {}", d.first, d.second, d.why);
  } else {
    print_prose(
        "first difference: step {}, node \"{}\", output {}, element {}: {} on {}, {} on {}; "
        "{} of {} elements; {}",
        d.step + 1, d.node, d.output, d.element, d.values[0], d.first, d.values[1], d.second,
        d.different_elements, d.of, d.why);
  }
}

bool has_measured_times(const Comparison& all) {
  return std::ranges::any_of(all.columns, [](const Column& column) {
    return column.result && !column.request.stands_in() &&
           column.result->epoch.kind == TimeKind::Measured;
  });
}

void require_some(const Comparison& all, const CompareOptions& options) {
  const auto absent =
      std::ranges::find_if(all.columns, [](const Column& column) { return !column.result; });
  const bool none = std::ranges::none_of(
      all.columns, [](const Column& column) { return column.result.has_value(); });
  if (absent == all.columns.end() || (!none && !options.require)) return;
  throw DeviceError(to_string(absent->request, absent->absence));
}

/// Writes the page and its numbers, and prints the result.
void finish(const Comparison& all, const PageFiles& files, bool json) {
  const auto report = document("compare", to_json(all));
  write_own_file(files.numbers, report.dump(1) + "\n");
  write_own_file(files.page, compare::compare_page(report));
  if (json) {
    print_json(report);
    return;
  }
  print_machines(all);
  print_classes(all);
  print_verdict(all);
  for (const auto& note : report.at("results").at("notes"))
    print_prose("note: {}", note.get<std::string>());
  print_text("page: {}; its numbers: {}\n", files.page.string(), files.numbers.string());
}

void compare(const CompareOptions& options, const std::string& command, Context& context) {
  Comparison all;
  all.experiment.run = options.train.config();
  require_maps(all.experiment.run, "compare");
  options.train.print_unasked_data();
  all.experiment.mask_count = options.train.command.mask_pictures;
  all.experiment.figures = figures_of(options.figures);
  all.contract = options.contract;
  all.energy = machines::find_energy_table(options.energy);
  all.command = command;
  all.recorded = compare::load_recorded(options.recorded.empty() ? compare::recorded_folder()
                                                                 : fs::path(options.recorded));
  all.columns =
      compare::columns_of(compare::parse_machines(options.backends, common_config(options)));
  speak_of_options(all);
  const bool any = std::ranges::any_of(
      all.columns, [](const Column& column) { return column.absence.reason.empty(); });
  if (!any || options.require) {
    for (const auto& column : all.columns) {
      if (!column.absence.reason.empty())
        throw DeviceError(to_string(column.request, column.absence));
    }
  }
  require_outside(options.out, all.experiment.run.data);
  require_outside(options.runs, all.experiment.run.data);
  const auto files = page_files(options.out);
  const TemporaryFolder temporary("compare");
  all.experiment.folder = options.runs.empty() ? temporary.path() : fs::path(options.runs);
  for (const auto& column : all.columns) {
    const auto folder = compare::run_folder(all.experiment, column.request);
    if (training::holds_run(folder)) {
      throw InvalidArgument(
          fmt::format("\"{}\" holds a run already; choose another folder for "
                      "--runs",
                      folder.string()));
    }
    training::require_room(folder);
  }
  const InterruptGuard guard;
  Progress progress;
  const auto listener = listener_of(progress);
  const measure::ProcessorWatch watch;
  compare::run_all(all, listener, guard.interrupted());
  if (has_measured_times(all)) all.busy = watch.busy_note();
  if (!guard.interrupted()) {
    speak_of_options(all);
    require_some(all, options);
    compare::look_for_difference(all, temporary.path(), listener, guard.interrupted());
    speak_of_options(all);
  }
  if (guard.interrupted()) {
    context.exit_code = kStopped;
    say_note(fmt::format("stopped; nothing was written to {}", options.out));
    return;
  }
  finish(all, files, context.json);
}

/// The text as a shell takes it for one word.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_./:=,@%+-").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// Command as it was typed, so that it can be typed again.
std::string command_line(const Command& command) {
  std::string line = "triptych compare";
  for (const auto& option : command.given()) {
    if (option.name == "--json") continue;
    line += " " + option.name;
    if (option.text) line += " " + shell_word(*option.text);
  }
  return line;
}

}  // namespace

void describe_compare(Command& command, Context& context) {
  auto options = std::make_shared<CompareOptions>();
  options->train.add_experiment_to(command);
  command.add_option(
      "--backends", options->backends,
      "backends to compare: cpu,cuda,systolic:rtl,cpu=f32 (with its own contract), or all");
  add_contract_option(command, options->contract, "numeric contract: f32, bf16 or bf16-exact");
  add_run_option(command, "--machine", options->machine,
                 "systolic: mmu16-45nm (default), another of triptych machine list, or a JSON file")
      .only_with("--backends", {"systolic*", "all"});
  add_run_option(command, "--threads", options->threads);
  command
      .add_option("--out", options->out,
                  "HTML page. Its numbers go to a file of the same name with .json")
      .output_file();
  command
      .add_option("--runs", options->runs,
                  "folder that keeps the run folders (default: they are removed)")
      .output_folder();
  command.add_option("--figures", options->figures,
                     "device files or published devices, for peak rates in place of measured ones");
  add_energy_option(command, options->energy);
  command.add_option("--recorded", options->recorded,
                     "folder with sessions of gpu_session.sh (default: experiments/recorded of the "
                     "source tree)");
  command.add_flag("--require", options->require,
                   "fail if a backend is not available, instead of skipping it");
  command.add_flag("--json", context.json, "print JSON");
  command.callback(
      [options, command, &context] { compare(*options, command_line(command), context); });
}

}  // namespace triptych::app
