// `triptych train`: the same model, seed and data on one machine or on several, one after another.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <memory>
#include <span>

#include "backends/all_backends.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/progress.h"
#include "experiments/app/run_page.h"
#include "experiments/app/saved_run.h"
#include "experiments/app/train_options.h"
#include "experiments/measure/array_use.h"
#include "experiments/measure/statistics.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "experiments/training/best_epoch.h"
#include "experiments/training/training_run.h"
#include "parallel/strategies/communication_cost.h"

namespace triptych::app {
namespace {

using training::End;
using training::EpochReport;
using training::TrainingRun;

std::string default_folder(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const auto first = fmt::format("runs/{}-{}", model, stamp);
  auto folder = first;
  for (int copy = 2; std::filesystem::exists(folder); ++copy) {
    folder = fmt::format("{}-{}", first, copy);
  }
  return folder;
}

/// The backends asked for: a comma list, or "all" for every machine that is available here. What
/// only stands in for a machine takes long, its times say nothing, and it must be named.
std::vector<std::string> backend_names(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const Backend* backend : all_backends()) {
      if (backend->emulates().empty() && backend->availability().available) {
        names.emplace_back(backend->name());
      }
    }
    return names;
  }
  for (const auto& name : split_list(text)) {
    if (std::ranges::count(names, name) > 0) {
      throw InvalidArgument(fmt::format("--backend names {} twice", name));
    }
    names.push_back(name);
  }
  return names;
}

std::string score_text(const EpochReport& report, double score) {
  return report.scores.images == 0 ? "-" : fmt::format("{:.4f}", score);
}

void print_epoch(const EpochReport& report) {
  fmt::print(
      stderr, "epoch {:3}  loss {:.4f}  Dice {}  IoU {}  pixel error {}  {:.1f} images/s ({})\n",
      report.epoch, report.loss, score_text(report, report.scores.mean_dice),
      score_text(report, report.scores.mean_iou), score_text(report, report.scores.pixel_error),
      report.images_per_second, to_string(report.train_time.kind));
}

page::Json classes_json(const segmentation::Scores& scores) {
  page::Json list = page::Json::array();
  for (const auto& one : scores.classes) {
    list.push_back({{"images", one.images},
                    {"dice", one.dice},
                    {"iou", one.iou},
                    {"pooled_dice", one.pooled_dice},
                    {"pooled_iou", one.pooled_iou}});
  }
  return list;
}

page::Json epochs_json(const TrainingRun& run, const std::vector<EpochReport>& epochs) {
  page::Json list = page::Json::array();
  std::int64_t step = 0;
  for (const auto& report : epochs) {
    step += report.steps;
    // Without validation images there is no score; 0 would look like a bad one.
    const auto score = [&](double value) {
      return report.scores.images > 0 ? page::Json(value) : page::Json();
    };
    list.push_back({{"epoch", report.epoch},
                    {"steps", report.steps},
                    {"loss", report.loss},
                    {"dice", score(report.scores.mean_dice)},
                    {"iou", score(report.scores.mean_iou)},
                    {"pooled_dice", score(report.scores.pooled_dice)},
                    {"pixel_error", score(report.scores.pixel_error)},
                    {"validation_loss", score(report.validation_loss)},
                    {"classes", classes_json(report.scores)},
                    {"learning_rate", run.learning_rate(std::max<std::int64_t>(1, step) - 1)},
                    {"validation_images", report.scores.images},
                    {"train_time", page::time_json(report.train_time)},
                    {"evaluate_time", page::time_json(report.evaluate_time)},
                    {"images_per_second", report.images_per_second}});
  }
  return list;
}

Duration total_time(std::span<const EpochReport> epochs) {
  Duration total;
  for (const auto& report : epochs) {
    total.seconds += report.train_time.seconds;
    total.kind = report.train_time.kind;
  }
  return total;
}

/// As the table says it.
std::string kind_of_time(const DeviceSet& machine, TimeKind kind) {
  const bool stands_in = !find_backend(machine.config().backend).emulates().empty();
  return fmt::format("{}{}", to_string(kind), stands_in ? ", of the emulation" : "");
}

/// The outcomes on the machines so far.
struct Report {
  page::Json results = page::Json::array();
  std::vector<std::vector<std::string>> rows;
  bool interrupted = false;
};

void describe(TrainingRun& run, const DeviceSet& machine, const std::vector<EpochReport>& epochs,
              Report& report) {
  const auto& config = run.config();
  const auto time = total_time(epochs);
  const auto contract = to_string(machine.config().contract);
  const auto hash = run.trainer().weights_sha256();
  const auto best = training::best_epoch(epochs, config.keep);
  report.results.push_back(
      {{"backend", machine.config().backend},
       {"device", machine.device().info().description},
       {"contract", contract},
       {"threads", machine.threads()},
       {"ranks", machine.config().parallel.ranks},
       {"transport", name_of(machine.config().parallel.transport)},
       {"model", page::Json::parse(training::to_json(config.model))},
       {"config", page::Json::parse(training::to_json(config))},
       {"seed", config.training.seed},
       {"batch", config.training.batch},
       {"optimizer", name_of(config.training.optimizer.kind)},
       {"learning_rate", config.learning_rate},
       {"parameters", run.trainer().parameter_count()},
       {"steps", run.losses().size()},
       {"losses", run.losses()},
       {"epochs", epochs_json(run, epochs)},
       {"best_epoch", best ? page::Json(epochs[*best].epoch) : page::Json()},
       {"time", page::time_json(time)},
       {"weights_sha256", hash},
       {"finished", !report.interrupted},
       {"folder", run.folder().string()},
       {"host", measure::host_json(machine.host_share(run.trainer().plan()))},
       {"plan_memory_mib", static_cast<double>(run.trainer().plan().total_bytes(0)) / 1048576},
       {"peak_memory_mib", measure::peak_memory_mib()}});
  const auto last = epochs.empty() ? EpochReport{} : epochs.back();
  report.rows.push_back(
      {machine.config().backend, std::string(contract), fmt::format("{}", run.losses().size()),
       fmt::format("{:.4f}", run.losses().empty() ? 0.0F : run.losses().front()),
       fmt::format("{:.4f}", run.losses().empty() ? 0.0F : run.losses().back()),
       score_text(last, last.scores.mean_dice), score_text(last, last.scores.mean_iou),
       score_text(last, last.scores.pixel_error), page::format_seconds(time.seconds),
       kind_of_time(machine, time.kind), hash.substr(0, 12)});
}

training::Observer observer_of(Progress& progress, std::vector<EpochReport>& epochs, bool speaks) {
  training::Observer observer;
  if (speaks) observer.on_note = print_note;
  observer.on_step = [&](const training::StepReport& step) {
    progress.update(step.step, step.total,
                    fmt::format("epoch {} loss {:.4f}", step.epoch, step.loss));
  };
  observer.on_image = [&](std::int64_t judged, std::int64_t images) {
    progress.update(judged, images, "images judged");
  };
  observer.on_epoch = [&, speaks](const EpochReport& report) {
    progress.clear();
    if (speaks) print_epoch(report);
    epochs.push_back(report);
  };
  observer.on_bad_loss = [&](std::int64_t step) {
    progress.clear();
    fmt::print(stderr, "the loss of step {} is not finite; looking for the first bad node\n", step);
  };
  return observer;
}

std::string images_text(const segmentation::Dataset& dataset) {
  if (dataset.samples.empty()) return "no images";
  const auto& first = dataset.samples.front();
  const bool alike = std::ranges::all_of(dataset.samples, [&](const auto& sample) {
    return sample.width == first.width && sample.height == first.height;
  });
  return fmt::format("{} images of {}", dataset.samples.size(),
                     alike ? fmt::format("{} x {}", first.width, first.height) : "several sizes");
}

/// Prints what is trained on what, where, and for how long.
void print_opening(const DeviceSet& machine, TrainingRun& run) {
  const auto& config = run.config();
  const auto& data = run.data();
  fmt::print(
      stderr,
      "{} ({} channels, {} classes) to train on, {} to validate; {}, {} parameters; {} steps "
      "of batch {} on {} in {}\n",
      images_text(data.train), config.model.in_channels,
      std::max<std::int64_t>(2, config.model.classes), images_text(data.validation),
      config.model.name, run.trainer().parameter_count(), run.total_steps(), config.training.batch,
      machine.config().backend, to_string(machine.config().contract));
}

void print_one_rank(const training::ParallelConfig& config) {
  const training::ParallelConfig usual;
  if (config.transport == usual.transport && config.overlap == usual.overlap &&
      config.timeout_s == usual.timeout_s)
    return;
  fmt::print(stderr,
             "one rank sends nothing: --transport, --overlap and --comm-timeout change nothing "
             "without --ranks 2 or more\n");
}

/// Prints what the ranks will exchange, before they do.
void print_ranks(const DeviceSet& machine, const training::Trainer& trainer) {
  const auto& config = machine.config().parallel;
  if (config.ranks == 1) return print_one_rank(config);
  const auto memory = static_cast<double>(trainer.plan().total_bytes(0)) / 1048576;
  if (trainer.asynchronous()) {
    fmt::print(stderr,
               "a server and {} workers of {} threads, {} over {}: each worker sends and gets "
               "{:.2f} MiB per step; {:.0f} MiB of memory on the server\n",
               config.ranks - 1, machine.threads(), to_string(config.strategy),
               name_of(config.transport), static_cast<double>(trainer.bytes_per_step()) / 1048576,
               memory);
    return;
  }
  const auto cost =
      parallel::communication_cost(trainer.plan().graph, config.ranks, config.strategy.mesh);
  fmt::print(stderr,
             "{} ranks of {} threads, {} over {}, added {}: {} collectives and {:.2f} MiB sent per "
             "rank and "
             "step; {:.0f} MiB of memory per rank\n",
             config.ranks, machine.threads(), to_string(config.strategy), name_of(config.transport),
             name_of(config.order), cost.collectives,
             static_cast<double>(cost.bytes_sent) / 1048576, memory);
  if (!trainer.without_rule().empty()) {
    fmt::print(stderr, "on every rank whole, having no rule to share them: {}\n",
               fmt::join(trainer.without_rule(), ", "));
  }
  if (!trainer.cut().empty()) {
    fmt::print(stderr, "cut into stages of {} forward nodes, and so again when it is resumed\n",
               fmt::join(trainer.cut(), ", "));
  }
}

/// Prints what the ranks exchanged.
void print_communication(const DeviceSet& machine, const training::Trainer& trainer,
                         std::span<const EpochReport> epochs) {
  const auto whole = total_time(epochs);
  if (trainer.ranks() == 1 || whole.seconds <= 0) return;
  if (const auto* clocks = trainer.simulated_time()) {
    const auto& parallel = machine.config().parallel;
    const auto slowest = std::ranges::max(clocks->ranks(), {}, &parallel::RankTime::total_s);
    fmt::print(stderr,
               "on the simulated interconnect: {} for the training, {} of it exposed communication "
               "({:.1f} %); simulated: {}, links of {:g} s and {:g} bytes/s, computation by {}\n",
               page::format_seconds(slowest.total_s), page::format_seconds(slowest.exposed_s()),
               100 * slowest.exposed_s() / slowest.total_s, parallel.interconnect,
               parallel.link_latency_s, parallel.link_bytes_per_s,
               whole.kind == TimeKind::Simulated ? "the device's cycles"
                                                 : "the processor time of each rank's thread");
    return;
  }
  if (trainer.asynchronous()) {
    const auto& staleness = trainer.staleness();
    const auto count = static_cast<double>(std::max<std::int64_t>(1, staleness.contributions));
    fmt::print(stderr,
               "{} contributions; between a worker's reading and its own came {:.2f} others on "
               "average, {} at most\n",
               staleness.contributions, staleness.sum / count, staleness.most);
    return;
  }
  const auto time = trainer.communication_time(), exposed = trainer.exposed_time();
  fmt::print(stderr, "communication: {} on rank 0, {} of it exposed ({})",
             page::format_seconds(time.seconds), page::format_seconds(exposed.seconds),
             to_string(time.kind));
  if (whole.kind == time.kind)
    fmt::print(stderr, ", {:.1f} % of the training", 100 * exposed.seconds / whole.seconds);
  fmt::print(stderr, "\n");
}

/// Which evaluation was kept, and whether waiting for a better one has ended the run.
void print_best(const TrainingRun& run) {
  const auto& config = run.config();
  const auto best = training::best_epoch(run.epochs(), config.keep);
  if (!best) return;
  const auto& report = run.epochs()[*best];
  if (run.stopped_early()) {
    fmt::print(stderr,
               "stopped after epoch {}: {} epochs were no better; go on by --resume with a larger "
               "--patience\n",
               run.epochs().size(), config.patience);
  }
  fmt::print(stderr, "best by {}: epoch {}, Dice {:.4f}, validation loss {:.4f}, kept in {}\n",
             name_of(config.keep), report.epoch, report.scores.mean_dice, report.validation_loss,
             (run.folder() / training::kBestFolder).string());
}

void train_on(const DeviceSet& machine, TrainingRun& run, const TrainOptions& options,
              Report& report) {
  const bool speaks = training::leads(machine.config().parallel);
  if (speaks && std::ssize(run.losses()) >= run.total_steps()) {
    fmt::print(stderr, "all {} steps are done; train on with a larger --epochs or --steps\n",
               run.losses().size());
  }
  if (speaks) {
    print_opening(machine, run);
    measure::print_host(machine, run.trainer().plan(), stderr);
    print_ranks(machine, run.trainer());
  }
  Progress progress(!speaks);
  std::vector<EpochReport> epochs = run.epochs();
  const auto before = epochs.size();
  const InterruptGuard guard(speaks);
  End end = End::Finished;
  try {
    end = run.train(observer_of(progress, epochs, speaks), guard.interrupted());
    if (end == End::Interrupted) leave_closed_outputs();
    if (end == End::Finished) run.write_masks(options.mask_count);
  } catch (const IoError& error) {
    progress.clear();
    throw IoError(fmt::format("{}; when that is mended, go on with: triptych train --resume {}",
                              with_dashes(error.what()), run.folder().string()));
  }
  progress.clear();
  if (speaks) print_communication(machine, run.trainer(), std::span(epochs).subspan(before));
  if (speaks) print_best(run);
  if (speaks && end == End::Interrupted) {
    fmt::print(stderr, "stopped after step {}; go on with: triptych train --resume {}\n",
               run.losses().size(), run.folder().string());
  }
  report.interrupted = end == End::Interrupted;
  describe(run, machine, epochs, report);
}

/// Writes and returns the document of what was trained so far.
page::Json write_report(const std::filesystem::path& folder, const Report& report) {
  auto json = document("train", report.results);
  write_run_report(folder, json);
  return json;
}

void resume(const TrainOptions& options, Report& report) {
  using enum CheckpointAge;
  auto saved = training::load_run(options.resume, options.previous ? Previous : Newest);
  options.apply_to(saved);
  if (training::leads(saved.machine.parallel)) print_notes(saved);
  const DeviceSet machine(saved.machine);
  TrainingRun run(machine, std::move(saved), options.resume);
  if (!options.replay.empty()) run.replay(training::load_updates(options.replay));
  train_on(machine, run, options, report);
}

/// Trains on one machine after another. All are opened first, so that a wrong name costs no
/// training; when a later one fails the report of those before is kept.
void train_new(const TrainOptions& options, const std::filesystem::path& folder, Report& report) {
  const auto config = options.config();
  const bool leads = training::leads(options.parallel);
  if (leads) require_outside(folder, config.data);
  if (leads) training::require_room(folder);
  if (training::leads(options.parallel)) options.print_unasked_data();
  std::vector<std::unique_ptr<DeviceSet>> machines;
  const auto backends = backend_names(options.machine.backend);
  const auto count = backends.size();
  for (const auto& backend : backends) {
    auto machine = options.machine_config();
    machine.backend = backend;
    // Options for several machines reach the ones that take them.
    const auto known = find_backend(backend).options();
    const auto takes = [&](const char* option) { return std::ranges::count(known, option) > 0; };
    if (count > 1 && !takes("machine")) machine.machine.clear();
    if (count > 1 && !takes("simulate")) machine.simulate.reset();
    if (count > 1 && !takes("graph")) machine.graph.clear();
    machines.push_back(std::make_unique<DeviceSet>(machine));
  }
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
      if (!options.replay.empty()) run.replay(training::load_updates(options.replay));
      train_on(*machine, run, options, report);
    } catch (const Error& error) {
      // Not every machine can do everything that all of them are asked for.
      const bool left_out = options.machine.backend == "all" &&
                            dynamic_cast<const UnsupportedError*>(&error) != nullptr;
      if (!left_out) {
        if (!report.rows.empty()) write_report(folder, report);
        throw;
      }
      fmt::print(stderr, "{} is left out: {}\n", machine->config().backend,
                 with_dashes(error.what()));
    }
    if (report.interrupted) break;
  }
}

void train(const TrainOptions& options, Context& context) {
  const bool goes_on = !options.resume.empty();
  const std::filesystem::path folder = goes_on               ? options.resume
                                       : options.out.empty() ? default_folder(options.model.model)
                                                             : options.out;
  Report report;
  if (goes_on) {
    resume(options, report);
  } else {
    train_new(options, folder, report);
  }
  if (report.interrupted) context.exit_code = 128 + SIGINT;
  // Over MPI, rank 0 speaks for all.
  if (options.parallel.transport == training::Transport::Mpi && !training::leads(options.parallel))
    return;
  const auto json = write_report(folder, report);
  if (context.json) {
    fmt::print("{}\n", json.dump(2));
    return;
  }
  page::TextTable table({"machine", "contract", "steps", "first loss", "last loss", "Dice", "IoU",
                         "pixel error", "time", "kind", "weights"});
  for (const auto& row : report.rows) table.add(row);
  table.print();
  fmt::print("losses, checkpoint, masks (input, truth, prediction) and report: {}\n",
             folder.string());
}

}  // namespace

void add_train_command(Command& app, Context& context) {
  auto options = std::make_shared<TrainOptions>();
  auto command = app.add_subcommand("train", "Train a model on images and masks");
  options->add_to(command);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { train(*options, context); });
}

}  // namespace triptych::app
