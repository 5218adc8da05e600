// `triptych run`: applies a trained model to images and folders. Writes masks and other
// predictions. For an ONNX file: run_onnx.h.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "core/io/image.h"
#include "core/io/output_ledger.h"
#include "core/io/picture.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/prediction_options.h"
#include "experiments/app/progress.h"
#include "experiments/app/run_classes.h"
#include "experiments/app/run_jobs.h"
#include "experiments/app/run_onnx.h"
#include "experiments/app/saved_run.h"
#include "experiments/machines/array_machine.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "experiments/training/data/picture_files.h"
#include "experiments/training/data/picture_set.h"
#include "experiments/training/prediction_files.h"
#include "experiments/training/run_folder.h"
#include "experiments/training/segmenter.h"
#include "experiments/training/stacked_prediction.h"
#include "experiments/training/streamed_prediction.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;
using training::PredictionFile;

struct RunOptions {
  RunOnnxOptions onnx;
  PredictionOptions prediction;
  std::vector<std::string> inputs;
  std::string out;
  std::string save = "mask";
  training::PredictionFileOptions files;
  double seed = files.seed;
  std::string instances_of;
  bool stack = false;
  std::int64_t stream_above = training::kStreamedPixels;
};

/// The model on one image after another.
class Runner {
 public:
  /// Throws Interrupted from run() when `interrupted` is set.
  Runner(const RunOptions& options, const DeviceSet& machine, const training::SavedRun& model,
         const std::atomic<bool>& interrupted)
      : options_(options),
        kinds_(kinds_in(options.save)),
        machine_(machine),
        model_(model),
        predictor_(machine, model.config.model, model.states, options.prediction.tiles),
        segmenter_(predictor_, model, options.prediction.segmenter()) {
    options_.files.seed = static_cast<float>(options.seed);
    if (!options.instances_of.empty()) {
      options_.files.object_classes =
          training::parse_object_classes(options.instances_of, model.config);
    }
    predictor_.stop_at(interrupted);
  }

  /// A note on all images so far for the user, or an empty text.
  std::string note() const { return set_.note(); }
  /// Writes the files of `job`. Nothing, with a note, of an image that cannot be read or shown.
  std::optional<page::Json> run(const Job& job, OutputLedger& own) {
    const auto opened = or_note(job, [&] { return &images_.of(job.input); });
    if (!opened) return std::nullopt;
    auto& file = **opened;
    options_.files.notes = file.notes();
    const auto& form = file.form(job.page);
    set_.add(job.input.string(), form, file.orientation());
    const auto large = or_note(job, [&] {
      return !job.whole_stack && form.pixels() > options_.stream_above && streams(job, file);
    });
    if (!large) return std::nullopt;
    const auto time = job.whole_stack ? stack(job, file, own)
                      : *large        ? stream(job, file, own)
                                      : whole(job, file, own);
    if (!time) return std::nullopt;
    say_detail(fmt::format("{}: {} x {} pixels in {} ({})", job.name(), form.width, form.height,
                           page::format_seconds(time->seconds), to_string(time->kind)));
    page::Json files = page::Json::object();
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      files[std::string(name_of(kinds_[i]))] = job.outputs[i].string();
    return page::Json{{"input", job.input.string()},
                      {"section", job.section() ? page::Json(job.page) : page::Json()},
                      {"sections", job.whole_stack ? job.pages : 1},
                      {"output", job.outputs.front().string()},
                      {"files", std::move(files)},
                      {"width", form.width},
                      {"height", form.height},
                      {"time", page::time_json(*time)}};
  }

 private:
  std::vector<training::PredictionTarget> targets_of(const Job& job) const {
    std::vector<training::PredictionTarget> targets;
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      targets.push_back({kinds_[i], job.outputs[i].filename()});
    return targets;
  }

  /// True when the large picture can go through in bands. Throws IoError when it must and cannot.
  bool streams(const Job& job, PictureFile& file) {
    const training::StreamedPrediction streamed(segmenter_, model_, file, job.page);
    const auto obstacle =
        streamed.obstacle(targets_of(job), options_.files, options_.prediction.test_time);
    const auto& form = file.form(job.page);
    if (obstacle.empty() || form.pixels() <= PictureLimits().image.max_pixels)
      return obstacle.empty();
    throw IoError(fmt::format("it has {} x {} pixels, too many to be held whole, and {}",
                              form.width, form.height, obstacle));
  }

  template <class Work>
  Duration timed(const Work& work) {
    auto& device = machine_.device();
    const double start = device.elapsed().seconds;
    work();
    return {device.elapsed().seconds - start, device.info().time_kind};
  }

  std::optional<Duration> stream(const Job& job, PictureFile& file, OutputLedger& own) {
    training::StreamedPrediction streamed(segmenter_, model_, file, job.page);
    const auto& form = file.form(job.page);
    const auto targets = targets_of(job);
    say_note(fmt::format(
        "\"{}\": {} x {} pixels go through in bands; {:.0f} MiB of memory at most, besides the "
        "network's",
        job.name(), form.width, form.height,
        static_cast<double>(streamed.bytes(targets.size())) / (1 << 20)));
    return or_note(job, [&] {
      const auto warning = streamed.prepare();
      if (!warning.empty()) say_note(fmt::format("\"{}\": {}", job.name(), warning));
      return timed([&] { streamed.write(targets, options_.files, own); });
    });
  }

  std::optional<Duration> whole(const Job& job, PictureFile& file, OutputLedger& own) {
    const auto sample = or_note(job, [&] {
      return segmentation::load_sample(file, job.page, model_.config.model.in_channels);
    });
    if (!sample) return std::nullopt;
    const auto shown = as_trained(job, *sample);
    training::Segmentation predicted;
    const auto time = timed([&] { predicted = segmenter_.segment(shown); });
    bool complete = true;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const auto content = or_note(job, [&] { return encoded(kinds_[i], *sample, predicted); });
      complete = complete && content;
      if (content) own.write(job.outputs[i].filename(), *content);
    }
    if (!complete) return std::nullopt;
    return time;
  }

  /// Writes all sections of the stack to one file of each kind, or no file if one of them fails.
  std::optional<Duration> stack(const Job& job, PictureFile& file, OutputLedger& own) {
    return or_note(job, [&] {
      training::StackedPrediction stacked(targets_of(job), model_.config, file, options_.files,
                                          own);
      Duration total = {0, machine_.device().info().time_kind};
      for (std::int64_t page = 0; page < job.pages; ++page) {
        const Job section = {job.input, page, job.pages};
        set_.add(job.input.string(), file.form(page), file.orientation());
        const auto sample = segmentation::load_sample(file, page, model_.config.model.in_channels);
        const auto shown = as_trained(section, sample);
        training::Segmentation predicted;
        total.seconds += timed([&] { predicted = segmenter_.segment(shown); }).seconds;
        stacked.add(sample, predicted);
      }
      stacked.finish();
      return total;
    });
  }

  /// Result of `make`. A note when it throws.
  template <class Make>
  static auto or_note(const Job& job, const Make& make) -> std::optional<decltype(make())> {
    try {
      return make();
    } catch (const Error& error) {
      auto why = with_dashes(error.what());
      const auto file = fmt::format("\"{}\": ", job.input.string());
      if (why.starts_with(file)) why.erase(0, file.size());
      say_note(fmt::format("left out \"{}\": {}", job.name(), why));
      return std::nullopt;
    }
  }

  /// The image normalised by itself where the training's were. Else a note when it is far from
  /// them.
  segmentation::Sample as_trained(const Job& job, segmentation::Sample sample) const {
    const auto warning = segmentation::prepare_as_trained(
        sample, model_.config.data.normalization(), model_.normalization);
    if (!warning.empty()) say_note(fmt::format("\"{}\": {}", job.name(), warning));
    return sample;
  }

  std::string encoded(PredictionFile kind, const segmentation::Sample& sample,
                      const training::Segmentation& predicted) const {
    return training::encode(kind, sample, predicted, model_.config, options_.files);
  }

  RunOptions options_;
  std::vector<PredictionFile> kinds_;
  const DeviceSet& machine_;
  const training::SavedRun& model_;
  training::Predictor predictor_;
  training::Segmenter segmenter_;
  segmentation::OpenPicture images_{Palette::Colours};  ///< a stack stays open for its sections
  segmentation::ImageSet set_{true};
};

struct Outcome {
  page::Json results = page::Json::array();
  std::vector<std::string> left_out = {};
  bool stopped = false;
};

Outcome run_all(Runner& runner, const std::vector<Job>& jobs, OutputLedger& own) {
  Outcome outcome;
  Progress progress;
  try {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto name = jobs[i].name();
      progress.update(static_cast<std::int64_t>(i), std::ssize(jobs), name);
      if (auto result = runner.run(jobs[i], own)) {
        outcome.results.push_back(std::move(*result));
      } else {
        outcome.left_out.push_back(name);
      }
    }
  } catch (const Interrupted&) {
    outcome.stopped = true;
  }
  return outcome;
}

/// The folder, or of a single image the files.
std::string written_to(const Outcome& outcome, const std::string& out) {
  if (!format_named(out) || outcome.results.empty()) return out;
  std::vector<std::string> files;
  for (const auto& [kind, file] : outcome.results.front().at("files").items())
    files.push_back(file.get<std::string>());
  return fmt::format("{}", fmt::join(files, ", "));
}

void report(Outcome outcome, std::size_t images, const RunOptions& options, Context& context) {
  const auto written = outcome.results.size();
  const auto where = written_to(outcome, options.out);
  const auto& left_out = outcome.left_out;
  if (context.json) {
    print_document("run", std::move(outcome.results));
  } else {
    const auto count = static_cast<std::int64_t>(written);
    print_text("{} written to {}\n",
               options.save == "mask"
                   ? counted(count, "mask")
                   : fmt::format("{}: {}", counted(count, "image"), options.save),
               where);
  }
  if (!left_out.empty()) {
    say_note(fmt::format("{} of {} images could not be done: {}", left_out.size(),
                         written + left_out.size(), fmt::join(left_out, ", ")));
    context.exit_code = kUsage;
  }
  if (outcome.stopped) {
    say_note(fmt::format("stopped after {} of {} images; nothing is written of the others",
                         written + left_out.size(), images));
    context.exit_code = kStopped;
  }
}

/// Options of models that make masks. One that makes a class of an image writes classes.csv.
constexpr std::array<std::string_view, 12> kOfMasks = {
    "--save",         "--format", "--values", "--objects", "--instances-of", "--seed-probability",
    "--stream-above", "--stack",  "--tta",    "--tile",    "--margin",       "--threshold"};

void run(const RunOptions& options, const Command& command, Context& context) {
  const auto jobs = jobs_of(input_files(options.inputs), options.out,
                            {kinds_in(options.save), options.files.format, options.stack});
  for (const auto& input : options.inputs) require_outside(options.out, fs::path(input));
  const auto model = options.prediction.load();
  if (!model.config.model.maps) {
    command.refuse(kOfMasks, "a model that makes one class of an image");
    return run_classes(options.prediction, model, input_files(options.inputs), options.out,
                       context);
  }
  note_sections(jobs);
  const DeviceSet machine(options.prediction.machine_for(model));
  say_note(machines::clock_note(machine.config()));
  const InterruptGuard guard;
  Runner runner(options, machine, model, guard.interrupted());
  const auto folder = jobs.front().outputs.front().parent_path();
  if (!folder.empty()) training::make_folder(folder);
  OutputLedger own(folder);
  auto outcome = run_all(runner, jobs, own);
  say_note(runner.note());
  if (outcome.results.empty() && !outcome.stopped)
    throw IoError("no image could be done; the notes say why");
  report(std::move(outcome), jobs.size(), options, context);
}

/// Options of a trained run, which say nothing of an ONNX file.
constexpr std::array<std::string_view, 1> kOfRuns = {"--previous"};
constexpr std::array<std::string_view, 1> kOfModels = {"--bind"};

/// True for an ONNX file, even if it is missing. False for a run.
bool is_model(const fs::path& path) {
  if (fs::is_directory(path)) return false;
  return fs::exists(path) || path.extension() == ".onnx";
}

void run_model(RunOptions& options, const Command& command, Context& context) {
  command.require_fitting({});
  command.refuse(kOfRuns, "an ONNX file");
  command.refuse(kOfMasks, "an ONNX file");
  options.onnx.model.file = options.prediction.weights;
  options.onnx.inputs = options.inputs;
  options.onnx.folder = options.out;
  run_onnx(options.onnx, options.prediction.machine, context);
}

void run_trained(RunOptions& options, const Command& command, Context& context) {
  command.refuse(kOfModels, "a trained run");
  if (options.inputs.empty()) throw InvalidArgument("--input is required");
  const auto named = format_named(options.out);
  if (named && command.count("--format") == 0) options.files.format = *named;
  if (named && *named != options.files.format) {
    throw InvalidArgument(fmt::format("--out \"{}\" is not named as a picture of --format {}",
                                      options.out, name_of(options.files.format)));
  }
  command.require_fitting({{"--format", std::string(name_of(options.files.format))}});
  run(options, command, context);
}

void add_output_options(Command& command, RunOptions& options) {
  command
      .add_option("--save", options.save,
                  "files per image: a list of mask, probabilities, instances, overlay")
      .check(read_by([](const std::string& text) { kinds_in(text); }, ""));
  command.add_option("--format", options.files.format,
                     "format of the pictures (default: that of the name --out, or png)");
  command
      .add_option(
          "--values", options.files.values,
          "value of a class in a mask: evenly spaced levels, class numbers, or training labels")
      .only_with("--save", {"mask"});
  command.add_flag("--stack", options.stack, "write all sections of a stack to one TIFF")
      .only_with("--format", {"tiff"});
  command
      .add_option("--stream-above", options.stream_above,
                  "process TIFFs with more pixels than this in strips")
      .check(whole_from(1, std::int64_t{1} << 32))
      .only_with("--format", {"tiff"})
      .not_with("--tta", {"flips"})
      .not_with("--stack");
  command.add_option("--objects", options.files.objects, "method that separates instances")
      .only_with("--save", {"instances"});
  command
      .add_option("--instances-of", options.instances_of,
                  "classes with objects, by number or name (default: all except 0)")
      .only_with("--save", {"instances"});
  command.add_option("--seed-probability", options.seed, "smallest probability of a watershed seed")
      .check(number_from(0, 1))
      .only_with("--objects", {"watershed"});
}

}  // namespace

void describe_run(Command& command, Context& context) {
  auto options = std::make_shared<RunOptions>();
  command
      .add_option("model", options->prediction.weights, "run folder of a training, or an ONNX file")
      .required();
  command
      .add_option("--input", options->inputs,
                  "PNG, TIFF or JPEG file, or a folder of them. For an ONNX file [NAME=]FILE.npy")
      .value("PATH");
  command
      .add_option("--out", options->out,
                  "folder for the masks, or for output_0.npy, output_1.npy, ... of an ONNX file. "
                  "For one image also FILE.png or FILE.tif")
      .output_folder()
      .required();
  add_output_options(command, *options);
  options->onnx.model.add_to(command);
  options->prediction.add_to(command);
  command.option("--threshold").only_with("--save", {"mask", "instances", "overlay"});
  command.fits_later_with("--out");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    options->prediction.read(command);
    const bool model = is_model(options->prediction.weights);
    (model ? run_model : run_trained)(*options, command, context);
  });
}

}  // namespace triptych::app
