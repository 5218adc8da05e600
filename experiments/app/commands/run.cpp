// `triptych run`: a trained model on one image or a folder of them; writes masks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "core/io/image.h"
#include "core/io/own_files.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/progress.h"
#include "experiments/app/saved_run.h"
#include "experiments/page/json.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/data/png_files.h"
#include "experiments/training/predictor.h"
#include "experiments/training/quantizer.h"
#include "experiments/training/run_folder.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  MachineOptions machine;
  std::string weights;
  std::vector<std::string> inputs;
  std::string out;
  bool previous = false;
  bool contract_given = false;
  training::TileOptions tiles;
};

/// The images that are named, and those of folders that are.
std::vector<fs::path> input_files(const std::vector<std::string>& inputs) {
  std::vector<fs::path> files;
  for (const fs::path input : inputs) {
    if (!fs::exists(input)) throw IoError(fmt::format("{} does not exist", input.string()));
    if (!fs::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    const auto found = segmentation::list_pngs(input);
    print_note(found.skipped);
    files.insert(files.end(), found.images.begin(), found.images.end());
  }
  return files;
}

Image mask_image(const std::vector<std::uint8_t>& labels, segmentation::Size size,
                 std::int64_t classes) {
  Image mask;
  mask.width = size.width;
  mask.height = size.height;
  const auto step = 255 / std::max<std::int64_t>(1, classes - 1);
  mask.samples.reserve(labels.size());
  for (const auto label : labels) {
    mask.samples.push_back(static_cast<std::uint16_t>(label * step));
  }
  return mask;
}

segmentation::Sample load_sample(const fs::path& input, std::int64_t channels) {
  const auto picture = load_png(input);
  segmentation::Sample sample;
  sample.channels = channels;
  sample.height = picture.height;
  sample.width = picture.width;
  sample.image = channels == 3 ? to_rgb(picture) : to_gray(picture);
  return sample;
}

page::Json segment(training::Predictor& predictor, const training::SavedRun& model,
                   const segmentation::Sample& sample, const fs::path& output, OwnFiles& own,
                   Device& device) {
  const segmentation::Size size = {sample.height, sample.width};
  const auto image = segmentation::normalized(sample, model.normalization);
  const double start = device.elapsed().seconds;
  const auto logits = predictor.logits(image, size);
  const Duration time = {device.elapsed().seconds - start, device.info().time_kind};
  const auto classes = model.config.model.classes;
  const auto labels = segmentation::classes_from_logits(logits, classes);
  own.write(output.filename(),
            encode_png(mask_image(labels, size, std::max<std::int64_t>(2, classes))));
  return {{"output", output.string()},
          {"width", size.width},
          {"height", size.height},
          {"time", page::time_json(time)}};
}

/// Where each mask goes: into the folder `out`, or, of a single image, to the file when its name is
/// that of one. Refuses all of them when one would overwrite another, or what is not of this
/// program.
std::vector<fs::path> output_files(const std::vector<fs::path>& inputs, const fs::path& out) {
  const bool names_file = segmentation::has_png_name(out) && !fs::is_directory(out);
  if (names_file && inputs.size() > 1) {
    throw InvalidArgument(
        fmt::format("--out \"{}\" names a file, and there are {} images; give a "
                    "folder",
                    out.string(), inputs.size()));
  }
  const OwnFiles own(names_file ? out.parent_path() : out);
  std::vector<fs::path> outputs;
  std::map<fs::path, fs::path> input_of;
  for (const auto& input : inputs) {
    outputs.push_back(names_file ? out : out / (input.stem().string() + ".png"));
    const auto& output = outputs.back();
    std::error_code ignored;
    if (fs::equivalent(output, input, ignored)) {
      throw InvalidArgument(fmt::format(
          "\"{}\" would overwrite its own input; choose another --out", output.string()));
    }
    own.require(output.filename());
    const auto [other, is_new] = input_of.emplace(output, input);
    if (is_new) continue;
    throw InvalidArgument(
        fmt::format("\"{}\" and \"{}\" would both be written to \"{}\"; run them "
                    "one after the other, each with an --out of its own",
                    other->second.string(), input.string(), output.string()));
  }
  return outputs;
}

void run(const RunOptions& options, Context& context) {
  const auto asked = options.machine.config();
  const auto inputs = input_files(options.inputs);
  const auto outputs = output_files(inputs, options.out);
  for (const auto& input : options.inputs) require_outside(options.out, fs::path(input));
  const auto model = load_noted_run(options.weights, options.previous);
  const DeviceSet machine(
      training::machine_for(model, options.weights, asked, options.contract_given));
  training::Predictor predictor(machine, model.config.model, model.states, options.tiles);
  if (outputs.front().has_parent_path()) training::make_folder(outputs.front().parent_path());
  OwnFiles own(outputs.front().parent_path());
  page::Json results = page::Json::array();
  Progress progress(false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    progress.update(static_cast<std::int64_t>(i), std::ssize(inputs),
                    inputs[i].filename().string());
    std::optional<segmentation::Sample> sample;
    try {
      sample = load_sample(inputs[i], model.config.model.in_channels);
    } catch (const Error& error) {
      progress.clear();
      print_note(fmt::format("left out: {}", with_dashes(error.what())));
      continue;
    }
    page::Json result = {{"input", inputs[i].string()}};
    result.update(segment(predictor, model, *sample, outputs[i], own, machine.device()));
    results.push_back(std::move(result));
  }
  progress.clear();
  const auto written = results.size();
  if (written == 0) throw IoError("no image could be read");
  if (context.json) {
    print_document("run", std::move(results));
  } else {
    fmt::print("{} masks written to {}\n", written, options.out);
  }
  if (written == inputs.size()) return;
  fmt::print(stderr, "{} of {} images could not be read\n", inputs.size() - written, inputs.size());
  context.exit_code = kUsage;
}

}  // namespace

void add_run_command(Command& app, Context& context) {
  auto options = std::make_shared<RunOptions>();
  auto command = app.add_subcommand("run", "Apply a trained model to images");
  options->machine.add_to(command);
  command.add_option("--weights", options->weights, "the run folder of a training, or quantised")
      .required();
  command.add_option("--input", options->inputs, "PNG files, and folders of them").required();
  command.add_option("--out", options->out, "folder for the masks; of one image also FILE.png")
      .output_folder()
      .required();
  command.add_flag("--previous", options->previous, "use the checkpoint before the newest");
  command.add_option("--tile", options->tiles.tile, "side of a tile; 0: chosen by the model")
      .check(within(training::limits::kTile))
      .capture_default_str();
  command.add_option("--margin", options->tiles.margin, "overlap of tiles; -1: a fourth")
      .check(within(training::limits::kMargin))
      .capture_default_str();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    options->contract_given = command.count("--contract") > 0;
    run(*options, context);
  });
}

}  // namespace triptych::app
