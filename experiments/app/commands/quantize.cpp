// `triptych quantize`: the weights of a trained model as int8, calibrated on images.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/saved_run.h"
#include "experiments/page/json.h"
#include "experiments/page/record.h"
#include "experiments/page/text_table.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/quantizer.h"

namespace triptych::app {
namespace {

struct QuantizeOptions {
  std::string weights;
  std::string out;
  std::string data;
  std::string list;
  std::int64_t images = 32;
  double percentile = 100;
  int threads = 0;
  bool previous = false;
};

/// One set of weights and how well it segments.
struct Quality {
  Contract contract = Contract::F32;
  std::size_t bytes = 0;
  segmentation::Scores scores;
};

std::size_t bytes_of(const TensorMap& states) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : states) bytes += tensor.spec().bytes();
  return bytes;
}

/// The bytes of the weights that inference with `run` needs.
std::size_t weight_bytes(const training::SavedRun& run) {
  if (run.machine.contract == Contract::Int8) return bytes_of(run.states);
  std::size_t bytes = 0;
  for (const auto& name : parameter_names(run.config.model)) {
    bytes += run.states.at(name).spec().bytes();
  }
  return bytes;
}

Quality quality_with(const DeviceSet& machine, const training::SavedRun& run,
                     const segmentation::Dataset& samples) {
  training::Predictor predictor(machine, run.config.model, run.states,
                                {run.config.tile, run.config.margin});
  return {machine.config().contract, weight_bytes(run),
          training::evaluate(predictor, run, samples)};
}

training::SavedRun load_trained(const QuantizeOptions& options) {
  auto run = load_noted_run(options.weights, options.previous);
  if (run.machine.contract == Contract::Int8) {
    throw InvalidArgument(fmt::format("the weights in \"{}\" are int8 already", options.weights));
  }
  training::require_room(options.out);
  return run;
}

page::ReportedValues values_of(const Quality& quality) {
  return page::values_of(segmentation::MapScores(quality.scores));
}

page::Json quality_json(const Quality& quality) {
  page::Json json = {{"contract", to_string(quality.contract)}, {"weight_bytes", quality.bytes}};
  json.update(to_json(values_of(quality)));
  return json;
}

void print_result(const Quality (&qualities)[2], std::size_t images,
                  const QuantizeOptions& options) {
  page::TextTable table(page::heads({"contract", "weights"}, values_of(qualities[0])));
  for (const auto& quality : qualities) {
    table.add(page::cells({std::string(to_string(quality.contract)),
                           page::format_bytes(static_cast<double>(quality.bytes))},
                          values_of(quality)));
  }
  table.print();
  print_text("calibrated on {}, scored on {}; use it with: triptych run {}\n",
             counted(static_cast<std::int64_t>(images), "training image"),
             counted(qualities[0].scores.images, "validation image"), options.out);
}

void quantize(const QuantizeOptions& options, const Context& context) {
  auto run = load_trained(options);
  const auto config_of_images = with_images(run, {.data = options.data, .list = options.list});
  require_outside(options.out, config_of_images.data);
  training::ExecutionConfig config;
  config.threads = options.threads;
  const DeviceSet floats(config);
  config.contract = Contract::Int8;
  const DeviceSet integers(config);
  const auto data = training::load_data(config_of_images);
  say_note(with_dashes(data.train.note));
  const auto images = training::spread_samples(data.train, options.images);
  auto states = training::quantize_run(floats, run, images, options.percentile);
  Quality qualities[2] = {quality_with(floats, run, data.validation), {}};
  run.states = std::move(states);
  run.machine.contract = Contract::Int8;
  qualities[1] = quality_with(integers, run, data.validation);
  const training::RunLock lock(options.out);
  training::save_network(options.out, run.config.model);
  training::save_run(options.out, run, sources_of(run.states));
  if (!context.json) return print_result(qualities, images.size(), options);
  print_document("quantize",
                 page::Json::array(
                     {{{"folder", options.out},
                       {"weights", options.weights},
                       {"calibration_images", images.size()},
                       {"percentile", options.percentile},
                       {"validation_images", qualities[0].scores.images},
                       {"qualities", {quality_json(qualities[0]), quality_json(qualities[1])}}}}));
}

}  // namespace

void describe_quantize(Command& command, Context& context) {
  auto options = std::make_shared<QuantizeOptions>();
  command.add_option("run", options->weights, "run folder").required();
  command.add_option("--out", options->out, "new run folder for the int8 weights")
      .output_folder()
      .required();
  command.add_option("--data", options->data,
                     "folder with images/ and masks/ (default: the images of the run)");
  command.add_option("--list", options->list,
                     "CSV of the images to use (default: the list of the run, for its own folder)");
  command.add_option("--images", options->images, "number of training images for calibration")
      .check(whole_from(1, 1000000));
  command
      .add_option("--percentile", options->percentile,
                  "percentage of magnitudes that int8 represents (100: all). The rest saturates")
      .check(number_from(50.0, 100.0));
  add_run_option(command, "--threads", options->threads);
  add_run_option(command, "--previous", options->previous, "use the checkpoint before the newest");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { quantize(*options, context); });
}

}  // namespace triptych::app
