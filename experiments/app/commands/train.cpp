// `triptych train`: the same model, seed and data on one machine or on several, one after another.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "experiments/app/commands.h"
#include "experiments/app/evaluation_report.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/progress.h"
#include "experiments/app/run_page.h"
#include "experiments/app/saved_run.h"
#include "experiments/app/train_options.h"
#include "experiments/app/training_report.h"
#include "experiments/measure/statistics.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "experiments/training/training_run.h"
#include "parallel/strategies/communication_cost.h"

namespace triptych::app {
namespace {

using training::End;
using training::EpochReport;
using training::TrainingRun;

constexpr std::string_view kAll = "all";

bool all_asked(const TrainOptions& options) {
  return std::ranges::equal(options.command.backends, std::array{kAll});
}

/// The backend of --backend, or those of --backends. "all" means every available device. Emulated
/// devices are slow and have no meaningful times, so a user must request them explicitly.
std::vector<std::string> backend_names(const TrainOptions& options) {
  std::vector<std::string> names;
  if (all_asked(options)) {
    for (const Backend* backend : all_backends()) {
      if (backend->emulates().empty() && backend->availability().available) {
        names.emplace_back(backend->name());
      }
    }
    return names;
  }
  for (const auto& name : options.command.backends) {
    if (std::ranges::count(names, name) > 0) {
      throw InvalidArgument(fmt::format("--backends names {} twice", name));
    }
    names.push_back(name);
  }
  const auto& one = options.machine.backend;
  if (one == kAll || one.find(',') != one.npos) {
    throw InvalidArgument(
        fmt::format("--backend takes one backend; for several: --backends {}", one));
  }
  if (names.empty()) names.push_back(one);
  return names;
}

/// As the table says it.
std::string kind_of_time(const DeviceSet& machine, TimeKind kind) {
  const bool stands_in = !find_backend(machine.config().backend).emulates().empty();
  return fmt::format("{}{}", to_string(kind), stands_in ? ", of the emulation" : "");
}

/// The outcomes on the machines so far.
struct Report {
  page::Json results = page::Json::array();
  std::vector<std::string> heads;  ///< of the rows' scores
  std::vector<std::vector<std::string>> rows;
  bool interrupted = false;
  bool unchanged = false;  ///< nothing was left to do
};

void describe(TrainingRun& run, const DeviceSet& machine, const std::vector<EpochReport>& epochs,
              Report& report) {
  const auto time = total_time(epochs);
  const auto contract = to_string(machine.config().contract);
  report.results.push_back(run_json(run, machine, epochs, !report.interrupted));
  const auto hash = report.results.back().at("weights_sha256").get<std::string>();
  const auto last = epochs.empty() ? EpochReport{} : epochs.back();
  auto& row = report.rows.emplace_back(std::vector<std::string>{
      machine.config().backend, std::string(contract), fmt::format("{}", run.losses().size()),
      fmt::format("{:.4f}", run.losses().empty() ? 0.0F : run.losses().front()),
      fmt::format("{:.4f}", run.losses().empty() ? 0.0F : run.losses().back())});
  report.heads = quality_heads(run.config());
  const auto scores = quality_of(run.config(), last);
  row.insert(row.end(), scores.begin(), scores.end());
  row.insert(row.end(), {page::format_seconds(time.seconds), kind_of_time(machine, time.kind),
                         hash.substr(0, 12)});
}

void print_one_rank(const training::ParallelConfig& config) {
  const training::ParallelConfig usual;
  if (config.transport == usual.transport && config.overlap == usual.overlap &&
      config.timeout_s == usual.timeout_s)
    return;
  say("one rank sends nothing: --transport, --overlap and --comm-timeout change nothing "
      "without --ranks 2 or more");
}

/// Prints the planned communication of the ranks.
void print_ranks(const DeviceSet& machine, const training::Trainer& trainer) {
  const auto& config = machine.config().parallel;
  if (config.ranks == 1) return print_one_rank(config);
  const auto memory = static_cast<double>(trainer.plan().total_bytes(0)) / 1048576;
  if (trainer.asynchronous()) {
    say(
        fmt::format("a server and {} of {}, {} over {}: each worker sends and gets "
                    "{:.2f} MiB per step; {:.0f} MiB of memory planned on the server",
                    counted(config.ranks - 1, "worker"), counted(machine.threads(), "thread"),
                    to_string(config.strategy), name_of(config.transport),
                    static_cast<double>(trainer.bytes_per_step()) / 1048576, memory));
    return;
  }
  const auto cost =
      parallel::communication_cost(trainer.plan().graph, config.ranks, config.strategy.mesh);
  std::string average;
  if (const int steps = trainer.steps_to_average(); steps > 0) {
    const auto bytes = static_cast<double>(trainer.average_bytes()) / 1048576;
    average = fmt::format(
        ", and {:.2f} MiB for an average of the states every {}, {:.2f} "
        "per step",
        bytes, counted(steps, "step"), bytes / steps);
  }
  say(fmt::format(
      "{} ranks of {}, {} over {}, added {}: {} and {:.2f} MiB sent per rank and "
      "step{}; {:.0f} MiB of memory planned per rank",
      config.ranks, counted(machine.threads(), "thread"), to_string(config.strategy),
      name_of(config.transport), name_of(config.order), counted(cost.collectives, "collective"),
      static_cast<double>(cost.bytes_sent) / 1048576, average, memory));
  if (!trainer.without_rule().empty()) {
    say(fmt::format("on every rank whole, having no rule to share them: {}",
                    fmt::join(trainer.without_rule(), ", ")));
  }
  if (!trainer.cut().empty()) {
    say(fmt::format("cut into stages of {} forward nodes, and so again when it is resumed",
                    fmt::join(trainer.cut(), ", ")));
  }
}

/// Prints the communication of the ranks.
void print_communication(const DeviceSet& machine, const training::Trainer& trainer,
                         std::span<const EpochReport> epochs) {
  const auto whole = total_time(epochs);
  if (trainer.ranks() == 1 || whole.seconds <= 0) return;
  if (const auto* clocks = trainer.simulated_time()) {
    const auto& parallel = machine.config().parallel;
    const auto slowest = std::ranges::max(clocks->ranks(), {}, &parallel::RankTime::total_s);
    say(fmt::format(
        "on the simulated interconnect: {} for the training, {} of it exposed communication "
        "({:.1f} %); simulated: {}, links of {:g} s and {:g} bytes/s, computation by {}",
        page::format_seconds(slowest.total_s), page::format_seconds(slowest.exposed_s()),
        100 * slowest.exposed_s() / slowest.total_s, parallel.interconnect, parallel.link_latency_s,
        parallel.link_bytes_per_s,
        whole.kind == TimeKind::Simulated ? "the device's cycles"
                                          : "the processor time of each rank's thread"));
    return;
  }
  if (trainer.asynchronous()) {
    const auto& staleness = trainer.staleness();
    const auto count = static_cast<double>(std::max<std::int64_t>(1, staleness.contributions));
    say(fmt::format(
        "{}; between a worker's read and its own update came {:.2f} others on average, {} at "
        "most",
        counted(staleness.contributions, "contribution"), staleness.sum / count, staleness.most));
    return;
  }
  const auto time = trainer.communication_time(), exposed = trainer.exposed_time();
  const auto share = whole.kind == time.kind ? fmt::format(", {:.1f} % of the training",
                                                           100 * exposed.seconds / whole.seconds)
                                             : std::string();
  say(fmt::format("communication: {} on rank 0, {} of it exposed ({}){}",
                  page::format_seconds(time.seconds), page::format_seconds(exposed.seconds),
                  to_string(time.kind), share));
}

/// Prints the planned memory of rank 0 and the peak of its process, which holds all ranks that are
/// threads.
void print_memory(const training::Trainer& trainer) {
  if (trainer.ranks() == 1) return;
  say(fmt::format("memory: {:.0f} MiB planned for rank 0; its process took {:.0f} MiB at most",
                  static_cast<double>(trainer.plan().total_bytes(0)) / 1048576,
                  measure::peak_memory_mib()));
}

void train_on(const DeviceSet& machine, TrainingRun& run, const TrainOptions& options,
              Report& report) {
  const bool speaks = training::leads(machine.config().parallel);
  if (speaks && std::ssize(run.losses()) >= run.total_steps()) {
    say(fmt::format("all {} steps are done; train on with a larger --epochs or --steps",
                    run.losses().size()));
  }
  if (speaks) {
    say_opening(machine, run);
    if (const auto host = machine.host_share(run.trainer().plan()))
      say(fmt::format("{} per run", to_string(*host)));
    print_ranks(machine, run.trainer());
    if (const auto& reasons = run.trainer().inexact(); !reasons.empty()) {
      say(fmt::format("a step is not exactly that of one rank with the whole batch: {}",
                      fmt::join(reasons, "; ")));
    }
  }
  Progress progress(!speaks);
  std::vector<EpochReport> epochs = run.epochs();
  const auto before = epochs.size();
  const InterruptGuard guard(speaks);
  End end = End::Finished;
  page::Json evaluation;
  try {
    end = run.train(observer_of(run.config(), progress, epochs, speaks), guard.interrupted());
    if (end == End::Interrupted) leave_closed_outputs();
    if (end == End::Finished)
      evaluation = judge_run(run, options.command.mask_pictures, guard.interrupted());
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}; when that is mended, go on with: triptych train --resume {}",
                              with_dashes(error.what()), run.folder().string()));
  }
  if (speaks) print_communication(machine, run.trainer(), std::span(epochs).subspan(before));
  if (speaks) print_memory(run.trainer());
  if (speaks) say_best(run);
  if (speaks && end == End::Interrupted) {
    say_note(fmt::format("stopped after step {}; go on with: triptych train --resume {}",
                         run.losses().size(), run.folder().string()));
  }
  report.interrupted = end == End::Interrupted;
  describe(run, machine, epochs, report);
  report.results.back()["evaluation"] = std::move(evaluation);
}

/// Writes and returns the document of the completed runs.
page::Json write_report(const std::filesystem::path& folder, const Report& report) {
  auto json = document("train", report.results);
  write_run_report(folder, json);
  return json;
}

/// A run that is already longer than requested keeps all its files.
void leave_unchanged(const DeviceSet& machine, const TrainingRun& run, Report& report) {
  report.unchanged = true;
  if (!training::leads(machine.config().parallel)) return;
  say_note(
      fmt::format("nothing is left to do: the run has {}, more than the {} asked for; its files "
                  "stay as they are",
                  counted(std::ssize(run.losses()), "step"), run.total_steps()));
}

void resume(const TrainOptions& options, Report& report) {
  using enum CheckpointAge;
  auto saved =
      training::load_run(options.command.resume, options.command.previous ? Previous : Newest);
  options.apply_to(saved);
  if (training::leads(saved.machine.parallel)) say_notes(saved);
  const DeviceSet machine(saved.machine);
  TrainingRun run(machine, std::move(saved), options.command.resume);
  if (!options.command.replay.empty()) run.replay(training::load_updates(options.command.replay));
  if (std::ssize(run.losses()) > run.total_steps()) {
    leave_unchanged(machine, run, report);
    return describe(run, machine, run.epochs(), report);
  }
  train_on(machine, run, options, report);
}

/// Trains on one machine after another. All are opened first, so that a wrong name costs no
/// training. If a later run fails, the report of the earlier ones remains.
void train_new(const TrainOptions& options, const std::filesystem::path& folder, Report& report) {
  const auto config = options.config();
  const bool leads = training::leads(options.machine.parallel);
  if (leads) require_outside(folder, config.data);
  if (leads) training::require_room(folder);
  std::vector<std::unique_ptr<DeviceSet>> machines;
  const auto backends = backend_names(options);
  const auto count = backends.size();
  for (const auto& backend : backends) {
    auto machine = options.machine_config();
    machine.backend = backend;
    // Options for several machines reach the ones that take them.
    const auto known = find_backend(backend).options();
    const auto takes = [&](const char* option) { return std::ranges::count(known, option) > 0; };
    if (count > 1 && !takes("machine")) machine.machine.clear();
    if (count > 1 && !takes("simulate")) machine.simulate.reset();
    if (count > 1 && !takes("graph")) machine.graph = true;
    machines.push_back(std::make_unique<DeviceSet>(machine));
  }
  if (leads) options.print_unasked_data();
  const auto own_folder = [&](const DeviceSet& machine) {
    return count == 1 ? folder : folder / machine.config().backend;
  };
  for (const auto& machine : machines) {
    if (leads) training::require_room(own_folder(*machine));
  }
  for (const auto& machine : machines) {
    const auto own = own_folder(*machine);
    try {
      TrainingRun run(*machine, config, own);
      if (!options.command.replay.empty())
        run.replay(training::load_updates(options.command.replay));
      train_on(*machine, run, options, report);
    } catch (const Error& error) {
      // Not every backend supports all options.
      const bool left_out =
          all_asked(options) && dynamic_cast<const UnsupportedError*>(&error) != nullptr;
      if (!left_out) {
        if (!report.rows.empty()) write_report(folder, report);
        throw;
      }
      say_note(
          fmt::format("{} is left out: {}", machine->config().backend, with_dashes(error.what())));
    }
    if (report.interrupted) break;
  }
}

void train(const TrainOptions& options, Context& context) {
  const bool goes_on = !options.command.resume.empty();
  // Ranks that lead nothing write nothing.
  std::optional<NewRunFolder> made;
  const bool unnamed = !goes_on && options.command.out.empty();
  if (unnamed && training::leads(options.machine.parallel)) made.emplace(options.model.name());
  const std::filesystem::path folder =
      made ? made->path()
           : std::filesystem::path(goes_on ? options.command.resume : options.command.out);
  Report report;
  if (goes_on) {
    resume(options, report);
  } else {
    train_new(options, folder, report);
  }
  if (report.interrupted) context.exit_code = kStopped;
  // Over MPI, rank 0 speaks for all.
  if (options.machine.parallel.transport == training::Transport::Mpi &&
      !training::leads(options.machine.parallel))
    return;
  const auto json =
      report.unchanged ? document("train", report.results) : write_report(folder, report);
  if (context.json) {
    print_json(json);
    return;
  }
  std::vector<std::string> heads = {"machine", "contract", "steps", "first loss", "last loss"};
  heads.insert(heads.end(), report.heads.begin(), report.heads.end());
  heads.insert(heads.end(), {"time", "kind", "weights"});
  page::TextTable table(heads);
  for (const auto& row : report.rows) table.add(row);
  table.print();
  print_text("losses, checkpoint{} and report: {}\n",
             report.heads.size() > 1 ? ", masks (input, truth, prediction)" : "", folder.string());
}

}  // namespace

void describe_train(Command& command, Context& context) {
  auto options = std::make_shared<TrainOptions>();
  options->add_to(command);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { train(*options, context); });
}

}  // namespace triptych::app
