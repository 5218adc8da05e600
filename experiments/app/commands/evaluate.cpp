// `triptych evaluate`: scores of a trained model on images with known masks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <map>
#include <memory>
#include <string_view>

#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "core/io/folder_lock.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/evaluation_report.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/prediction_options.h"
#include "experiments/app/progress.h"
#include "experiments/app/row_report.h"
#include "experiments/app/saved_run.h"
#include "experiments/machines/array_machine.h"
#include "experiments/page/text_table.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/panels.h"
#include "experiments/training/evaluation.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImages = "images.csv";
constexpr const char* kExamples = "examples.csv";
constexpr const char* kConfusion = "confusion.csv";
constexpr const char* kReport = "evaluation.json";
const fs::path kWorst = "worst";

struct EvaluateOptions {
  PredictionOptions prediction;
  OtherImages images;
  std::string split;
  std::string out;
  std::int64_t worst = 5;
  std::optional<std::int64_t> regions;
  double tolerance = segmentation::kBoundaryTolerance;
};

/// Without a folder and a split the images that validated the run.
segmentation::Dataset load_images(const training::RunConfig& config,
                                  const EvaluateOptions& options) {
  const bool own = !options.images.any_folder() && options.split.empty();
  return own ? training::load_data(config).validation : training::load_split(config, options.split);
}

void require_examples(const EvaluateOptions& options, const segmentation::Dataset& data) {
  if (!data.samples.empty()) return;
  throw InvalidArgument(fmt::format("the run in \"{}\" has no validation data; give other by {}",
                                    options.prediction.weights,
                                    data.arrays ? "--data or --input" : "--data"));
}

/// Refuses to overwrite files of other programs, before the work. Keeps other commands from writing
/// there until the result is complete, since the files are one report.
std::unique_ptr<FolderLock> take_room_for_report(const EvaluateOptions& options,
                                                 const training::RunConfig& config) {
  if (options.out.empty()) return nullptr;
  require_outside(options.out, config.data);
  auto lock = std::make_unique<FolderLock>(options.out);
  const OutputLedger own(options.out);
  for (const auto* name : {config.model.maps ? kImages : kExamples, kConfusion, kReport})
    own.require(name);
  own.require_all_of(kWorst, [](const std::string&) { return false; });
  return lock;
}

/// Tells how many images are far from those of the training, and how far the first is.
void warn_of_ranges(const training::SavedRun& run, const segmentation::Dataset& images) {
  const auto how = run.config.data.normalization();
  if (how.by_itself()) return;
  std::string first;
  std::int64_t far = 0;
  for (std::size_t i = 0; i < images.samples.size(); ++i) {
    const auto sample = images.whole(i);
    const auto warning =
        segmentation::range_warning(segmentation::values_of(*sample, how), run.normalization);
    if (warning.empty()) continue;
    if (first.empty()) first = fmt::format("\"{}\": {}", sample->name, warning);
    ++far;
  }
  if (far == 0) return;
  say_note(far == 1 ? first : fmt::format("{} (and {})", first, counted(far - 1, "more image")));
}

class Judge {
 public:
  /// Makes judge() and write() throw Interrupted when `interrupted` is set.
  Judge(const DeviceSet& machine, const training::SavedRun& run, const EvaluateOptions& options,
        const std::atomic<bool>& interrupted)
      : run_(run),
        predictor_(machine, run.config.model, run.states, options.prediction.tiles),
        segmenter_(predictor_, run, options.prediction.segmenter()) {
    predictor_.stop_at(interrupted);
  }

  training::Evaluation judge(const segmentation::Dataset& images,
                             const training::EvaluationOptions& options) {
    training::Evaluation evaluation(run_.config.model.classes, options);
    warn_of_ranges(run_, images);
    Progress progress;
    for (std::size_t i = 0; i < images.samples.size(); ++i) {
      const auto sample = images.whole(i);
      progress.update(std::ssize(evaluation.images()), std::ssize(images.samples), sample->name);
      evaluation.add(*sample, segmenter_.segment(*sample));
      const auto& judged = evaluation.images().back();
      say_detail(fmt::format("{}: Dice {}, pixel accuracy {:.4f}", judged.name,
                             page::format_score(judged.mean_dice()), judged.pixel_accuracy));
    }
    return evaluation;
  }

  void write(const segmentation::Dataset& images, const training::Evaluation& evaluation,
             const EvaluateOptions& options, const Json& report) {
    const auto pictures =
        worst_pictures(images, evaluation.worst(static_cast<std::size_t>(options.worst)));
    OutputLedger own(options.out);
    own.remove_own_of(kWorst);
    own.write(kImages, images_csv(evaluation));
    own.write(kConfusion, confusion_csv(evaluation.confusion()));
    for (const auto& [name, content] : pictures) own.write(kWorst / name, content);
    own.write(kReport, report.dump(2) + '\n');
  }

 private:
  /// Files of the images at these positions, by name. Complete before the first write, so that an
  /// interruption leaves existing files unchanged.
  std::map<std::string, std::string> worst_pictures(const segmentation::Dataset& images,
                                                    const std::vector<std::size_t>& positions) {
    std::map<std::string, std::string> files;
    for (const auto i : positions) {
      const auto sample = images.whole(i);
      files[sample->name + ".png"] = encode_png(
          segmentation::truth_and_prediction(*sample, segmenter_.segment(*sample).classes,
                                             std::max<std::int64_t>(2, run_.config.model.classes)));
    }
    return files;
  }

  const training::SavedRun& run_;
  training::Predictor predictor_;
  training::Segmenter segmenter_;
};

/// Names of the data and the backend, with the scores in `judged`.
Json report_json(const EvaluateOptions& options, const training::RunConfig& config,
                 const DeviceSet& machine, const segmentation::Dataset& images,
                 const Json& judged) {
  const auto& data = config.data;
  Json result = {
      {"weights", options.prediction.weights},
      {"data", !data.target.empty()  ? data.target
               : data.images.empty() ? data.source
                                     : data.images},
      {"split", options.split.empty() ? Json() : Json(options.split)},
      {"labels", images.labels},
      {"backend", machine.config().backend},
      {"contract", to_string(machine.config().contract)},
      {"threshold", options.prediction.threshold ? Json(*options.prediction.threshold) : Json()},
      {"tta", name_of(options.prediction.test_time)},
      {"tolerance", options.tolerance},
      {"folder", options.out.empty() ? Json() : Json(options.out)}};
  result.update(judged);
  return document("evaluate", Json::array({std::move(result)}));
}

/// Prints the report if --json is set.
bool said_as_json(const Context& context, const Json& report) {
  if (context.json) print_json(report);
  return context.json;
}

/// Prints the number of scored examples and the backend.
void print_subject(std::string_view noun, const DeviceSet& machine,
                   const segmentation::Dataset& data) {
  print_text("{} on {} ({}){}{}\n\n", counted(std::ssize(data.samples), noun),
             machine.config().backend, to_string(machine.config().contract),
             data.labelling.empty() ? "" : "; ", data.labelling);
}

training::RowEvaluation judge_rows(const training::SavedRun& run, const DeviceSet& machine,
                                   const segmentation::Dataset& data) {
  const InterruptGuard guard;
  training::Predictor predictor(machine, run.config.model, run.states);
  predictor.stop_at(guard.interrupted());
  if (run.config.data.inputs.empty()) warn_of_ranges(run, data);
  training::RowEvaluation evaluation(run.config);
  Progress progress;
  for (std::size_t i = 0; i < data.samples.size(); ++i) {
    const auto& name = data.samples[i].name;
    progress.update(static_cast<std::int64_t>(i), std::ssize(data.samples), name);
    const auto example = segmentation::batch_of(data, i, run.normalization, run.config.model.size);
    evaluation.add(name, predictor.row(example), example.y);
  }
  return evaluation;
}

/// A model that makes a row of each example.
void evaluate_rows(const EvaluateOptions& options, const training::SavedRun& run,
                   const training::RunConfig& config, const Context& context) {
  const DeviceSet machine(options.prediction.machine_for(run));
  say_note(machines::clock_note(machine.config()));
  const auto data = load_images(config, options);
  require_examples(options, data);
  say_note(with_dashes(data.note));
  const auto evaluation = judge_rows(run, machine, data);
  const auto report = report_json(options, config, machine, data, rows_json(config, evaluation));
  if (!options.out.empty()) {
    OutputLedger own(options.out);
    own.write(kExamples, rows_csv(config, evaluation));
    if (training::has_classes(config)) own.write(kConfusion, confusion_csv(config, evaluation));
    own.write(kReport, report.dump(2) + '\n');
  }
  if (said_as_json(context, report)) return;
  print_subject("example", machine, data);
  print_rows(config, evaluation);
  if (!options.out.empty())
    print_text("\n{0}/{1}, {2} and {3} are written\n", options.out, kExamples, kConfusion, kReport);
}

/// Options for scores of masks.
constexpr std::array<std::string_view, 9> kOfMapScores = {"--worst",     "--regions", "--tolerance",
                                                          "--threshold", "--tta",     "--tile",
                                                          "--margin",    "--labels",  "--invert"};

void evaluate(const EvaluateOptions& options, const Command& command, const Context& context) {
  const auto run = options.prediction.load();
  const auto config = with_images(run, options.images);
  if (!config.model.maps) {
    command.refuse(kOfMapScores, "a model that makes one row of an example");
    const auto lock = take_room_for_report(options, config);
    return evaluate_rows(options, run, config, context);
  }
  const training::EvaluationOptions scored = {options.tolerance, options.regions};
  const training::Evaluation refused_before_the_work(run.config.model.classes, scored);
  const auto lock = take_room_for_report(options, config);
  const DeviceSet machine(options.prediction.machine_for(run));
  say_note(machines::clock_note(machine.config()));
  const auto images = load_images(config, options);
  require_examples(options, images);
  say_note(with_dashes(images.note));
  say_note(with_dashes(segmentation::share_warning(images.shares, run.config.data.shares)));
  const InterruptGuard guard;
  Judge judge(machine, run, options, guard.interrupted());
  const auto evaluation = judge.judge(images, scored);
  const auto names = class_names_of(config);
  const auto report =
      report_json(options, config, machine, images, evaluation_json(evaluation, names));
  if (!options.out.empty()) judge.write(images, evaluation, options, report);
  if (said_as_json(context, report)) return;
  print_subject("image", machine, images);
  print_evaluation(evaluation, names);
  if (!options.out.empty()) {
    print_text("\n{0}/{1}, {2}, {3} and pictures of the worst images in {0}/{4} are written\n",
               options.out, kImages, kConfusion, kReport, kWorst.string());
  }
}

}  // namespace

void describe_evaluate(Command& command, Context& context) {
  auto options = std::make_shared<EvaluateOptions>();
  options->prediction.add_run_to(command);
  command.add_option("--data", options->images.data,
                     "folder with images/ and masks/ (default: the validation images of the run)");
  command.add_option("--images", options->images.images,
                     "folder of images, instead of DATA/images");
  command.add_option("--masks", options->images.masks, "folder of masks, instead of DATA/masks");
  command.add_option("--mask-pattern", options->images.mask_pattern,
                     "names of masks, such as {name}_mask.tif (default: the names of the images)");
  command.add_option("--labels", options->images.labels,
                     "mask value of each class, such as 0,128,255, or above-half, below-half, "
                     "instances (default: those of the run)");
  command
      .add_flag("--invert", options->images.invert,
                "use the other one of two classes as the target")
      .not_with("--labels");
  command.add_option(
      "--list", options->images.list,
      "CSV of the images to use (default: the list of the run, for its own folders)");
  command
      .add_option("--input", options->images.inputs,
                  "NPY file for each input of the network, for a run on arrays")
      .not_with("--data");
  command.add_option("--target", options->images.target, "NPY file with the target of each row")
      .only_with("--input");
  command.add_option("--split", options->split, "use only the images of this split of the list");
  command.add_option("--out", options->out, "folder for images.csv, confusion.csv and pictures")
      .output_folder();
  command
      .add_option("--worst", options->worst,
                  "number of pictures of the images with the lowest Dice")
      .check(whole_from(0, 100000))
      .only_with("--out");
  command
      .add_option("--regions", options->regions,
                  "class of the regions for V-Rand and V-Info, such as the cells between membranes")
      .check(whole_from(0, 254));
  command.add_option("--tolerance", options->tolerance, "tolerance of boundary F1 in pixels")
      .check(number_from(0, 1000));
  options->prediction.add_to(command);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    options->prediction.read(command);
    try {
      evaluate(*options, command, context);
    } catch (const Interrupted&) {
      say_note("stopped; nothing was written");
      context.exit_code = kStopped;
    }
  });
}

}  // namespace triptych::app
