// `triptych run`: a trained model on one image or a folder of them; writes masks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/io/image.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/output.h"
#include "experiments/cli/progress.h"
#include "experiments/cli/saved_run.h"
#include "experiments/segmentation/metrics.h"
#include "experiments/training/predictor.h"
#include "experiments/training/quantizer.h"
#include "experiments/training/run_folder.h"

namespace triptych::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  MachineOptions machine;
  std::string weights;
  std::string input;
  std::string out;
  bool previous = false;
  bool contract_given = false;
  training::TileOptions tiles;
};

std::vector<fs::path> input_files(const fs::path& input) {
  if (!fs::exists(input)) throw IoError(fmt::format("{} does not exist", input.string()));
  if (!fs::is_directory(input)) return {input};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(input)) {
    if (entry.path().extension() == ".png") files.push_back(entry.path());
  }
  if (files.empty()) throw IoError(fmt::format("{} holds no *.png", input.string()));
  std::sort(files.begin(), files.end());
  return files;
}

Image mask_image(const std::vector<std::uint8_t>& labels, segmentation::Size size,
                 std::int64_t classes) {
  Image mask;
  mask.width = size.width;
  mask.height = size.height;
  const auto step = 255 / std::max<std::int64_t>(1, classes - 1);
  for (const auto label : labels) {
    mask.samples.push_back(static_cast<std::uint16_t>(label * step));
  }
  return mask;
}

Json segment(training::Predictor& predictor, const training::SavedRun& model, const fs::path& input,
             const fs::path& output, Device& device) {
  const auto picture = load_png(input);
  const segmentation::Size size = {picture.height, picture.width};
  segmentation::Sample sample;
  sample.channels = model.config.model.in_channels;
  sample.height = size.height;
  sample.width = size.width;
  sample.image = sample.channels == 3 ? to_rgb(picture) : to_gray(picture);
  const auto image = segmentation::normalized(sample, model.normalization);
  const double start = device.elapsed().seconds;
  const auto logits = predictor.logits(image, size);
  const Duration time = {device.elapsed().seconds - start, device.info().time_kind};
  const auto classes = model.config.model.classes;
  const auto labels = segmentation::classes_from_logits(logits, classes);
  save_png(output, mask_image(labels, size, std::max<std::int64_t>(2, classes)));
  return {{"input", input.string()},
          {"output", output.string()},
          {"width", size.width},
          {"height", size.height},
          {"time", time_json(time)}};
}

/// Where each mask goes. Refuses all of them when one would overwrite its own input.
std::vector<fs::path> output_files(const std::vector<fs::path>& inputs, const fs::path& folder) {
  std::vector<fs::path> outputs;
  for (const auto& input : inputs) {
    outputs.push_back(folder / (input.stem().string() + ".png"));
    std::error_code ignored;
    if (fs::equivalent(outputs.back(), input, ignored)) {
      throw InvalidArgument(fmt::format(
          "\"{}\" would overwrite its own input; choose another --out", outputs.back().string()));
    }
  }
  return outputs;
}

void run(const RunOptions& options, const Context& context) {
  const auto asked = options.machine.config();
  const auto inputs = input_files(options.input);
  const auto outputs = output_files(inputs, options.out);
  const auto model = load_noted_run(options.weights, options.previous);
  const Machine machine(
      training::machine_for(model, options.weights, asked, options.contract_given));
  training::Predictor predictor(machine, model.config.model, model.states, options.tiles);
  training::make_folder(options.out);
  Json results = Json::array();
  Progress progress(false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    results.push_back(segment(predictor, model, inputs[i], outputs[i], machine.device()));
    progress.update(std::ssize(results), std::ssize(inputs), inputs[i].filename().string());
  }
  progress.clear();
  if (context.json) {
    print_document("run", std::move(results));
  } else {
    fmt::print("{} masks written to {}\n", inputs.size(), options.out);
  }
}

}  // namespace

void add_run_command(Command& app, Context& context) {
  auto options = std::make_shared<RunOptions>();
  auto command = app.add_subcommand("run", "Apply a trained model to images");
  options->machine.add_to(command);
  command.add_option("--weights", options->weights, "the run folder of a training, or quantised")
      .required();
  command.add_option("--input", options->input, "a PNG file or a folder of them").required();
  command.add_option("--out", options->out, "folder for the masks").required();
  command.add_flag("--previous", options->previous, "use the checkpoint before the newest");
  command.add_option("--tile", options->tiles.tile, "side of a tile; 0: chosen by the model")
      .capture_default_str();
  command.add_option("--margin", options->tiles.margin, "overlap of tiles; -1: a fourth")
      .capture_default_str();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    options->contract_given = command.count("--contract") > 0;
    run(*options, context);
  });
}

}  // namespace triptych::cli
