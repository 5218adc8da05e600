// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/options.h"

#include <fmt/core.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "core/base/list_text.h"
#include "core/base/speech.h"
#include "experiments/app/onnx_model.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_arrays.h"

namespace triptych::app {

Validator within(const training::NumberLimits& limits) {
  const auto check = [limits](const std::string& text) -> std::string {
    const auto value = read_number(text);
    if (value && training::within(limits, *value)) return {};
    return fmt::format("must be a number {}, got \"{}\"", to_string(limits), text);
  };
  return {fmt::format("{}{}..{}", limits.above_low ? ">" : "", limits.low, limits.high), check};
}

Validator within(const training::WholeLimits& limits) {
  const auto check = [limits](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const auto* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error == std::errc{} && end == last && training::within(limits, value)) return {};
    return fmt::format("must be a whole number {}, got \"{}\"", to_string(limits), text);
  };
  return {fmt::format("{}..{}", limits.low, limits.high), check};
}

Validator read_by(std::function<void(const std::string&)> parse, std::string description) {
  const auto check = [parse = std::move(parse)](const std::string& text) -> std::string {
    try {
      parse(text);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  return {std::move(description), check, true};
}

Validator numbers_to(std::int64_t high, bool or_zero) {
  const auto parse = [high, or_zero](const std::string& text) {
    if (or_zero && text == "0") return;
    for (const auto number : parse_numbers(text)) {
      if (number > high) throw InvalidArgument(fmt::format("{} is above {}", number, high));
    }
  };
  return read_by(parse, fmt::format("{}..{}", or_zero ? 0 : 1, high));
}

void ModelOptions::add_to(Command& command) {
  command.add_option("--model", model, "unet-s, unet-m, unet-l, cnn, mlp, or an ONNX file")
      .capture_default_str();
  command.add_option("--freeze", freeze,
                     "of an ONNX file: names of weights that stay as they are, as encoder.*,pos*");
  command.add_option("--base", base, "channels of the first level").check(whole_from(1, 4096));
  command.add_option("--depth", depth, "number of downs (U-Net) or layers")
      .check(whole_from(1, 10));
  command.add_option("--size", size, "height and width of a training image")
      .check(whole_from(1, 16384));
  command.add_option("--in-channels", in_channels, "1: grey, 3: RGB, up to 5")
      .check(whole_from(1, 5));
  command.add_option("--classes", classes, "1 for a binary mask, else the number of classes")
      .check(whole_from(1, 255));
}

void ModelOptions::require_options_of_files() const {
  for (const auto& [option, given] :
       {std::pair("--base", base.has_value()), std::pair("--depth", depth.has_value()),
        std::pair("--classes", classes.has_value())}) {
    if (!given) continue;
    throw InvalidArgument(
        fmt::format("{} is for presets; \"{}\" says it itself: leave it out", option, model));
  }
}

ModelConfig ModelOptions::imported(const Use& use) const {
  require_options_of_files();
  training::ImportedNetworkOptions options = {
      .size = size, .channels = in_channels, .loss = use.loss, .takes_arrays = takes_arrays};
  if (!freeze.empty()) options.frozen = split_list(freeze);
  auto file = onnx::load_model(model);
  if (!use.inputs.empty())
    options.rows = training::row_sizes(training::files_of_inputs(file, use.inputs));
  const auto name = std::filesystem::path(model).filename().string();
  auto config = training::imported_model(name, std::move(file), options);
  for (const auto& note : training::imported_network(config)->notes()) say_note(note);
  return config;
}

ModelConfig ModelOptions::config(const Use& use) const {
  if (is_file()) return imported(use);
  if (!freeze.empty()) throw InvalidArgument("--freeze is for ONNX files; leave it out");
  ModelConfig config = model_preset(model);
  config.base = base.value_or(config.base);
  config.depth = depth.value_or(config.depth);
  config.size = size.value_or(config.size);
  config.in_channels = in_channels.value_or(config.in_channels);
  config.classes = classes.value_or(config.classes);
  validate(config);
  return config;
}

std::optional<std::int64_t> ModelOptions::set_model(measure::Mode mode, ModelConfig& config,
                                                    measure::InferenceGraph& inference) const {
  const bool infers = is_file() && mode == measure::Mode::Infer;
  if (!bind.empty() && !infers)
    throw InvalidArgument("--bind is for ONNX files and --mode infer; leave it out");
  if (!infers) {
    config = this->config();
    return std::nullopt;
  }
  require_options_of_files();
  if (in_channels || !freeze.empty())
    throw InvalidArgument("--in-channels and --freeze are for training; leave them out");
  InferenceOptions options = {.bind = bind};
  if (size) options.side = *size;
  auto imported = inference_of(model, options);
  inference = std::move(imported.graph);
  config.name = std::filesystem::path(model).stem().string();
  return command_.count("--batch") > 0 ? std::nullopt : imported.batch;
}

void ModelOptions::add_bind_to(Command& command) {
  command_ = command;
  command
      .add_option("--bind", bind,
                  "of an ONNX file for inference: NAME=NUMBER, a size that it leaves open")
      .check(read_by([](const std::string& text) { parse_binding(text); }, ""));
}

void add_mode_options(Command& command, measure::Mode& mode, std::size_t& memory_limit) {
  command.add_option("--mode", mode, "a training step, or inference").capture_default_str();
  command
      .add_option("--memory-limit", memory_limit,
                  "MiB of activations, 0: none; recompute cheap ones to stay below")
      .check(whole_from(0, kMaxMemoryMib))
      .only_with("--mode", {"train"})
      .capture_default_str();
}

Option add_contract_option(Command& command, Contract& contract, const std::string& help) {
  return command
      .add_text(
          "--contract",
          [&contract](const std::string& text) { contract = contract_from_string(text); },
          [&contract] { return std::string(to_string(contract)); }, help)
      .capture_default_str();
}

void MachineOptions::add_to(Command& command) {
  command.add_option("--backend", backend, "the machine to run on (see triptych devices)")
      .capture_default_str();
  command.add_option("--fallback", fallback, "another machine for nodes the backend cannot run");
  command.add_option("--threads", threads, "CPU threads; 0: as many as there are")
      .check(whole_from(0, kMaxThreads))
      .capture_default_str();
  add_contract_option(command, contract, "f32, bf16, bf16-exact or int8");
  command.add_option("--kernel", kernel,
                     "own, library, or a kernel's name: forced where an operator has it");
  add_choice_to(command);
  command.add_flag("--no-graph", no_graph,
                   "cuda: launch each kernel by itself, not whole segments as recorded graphs");
  add_simulation_to(command);
}

void MachineOptions::add_choice_to(Command& command) {
  command
      .add_option(
          "--choice", choice,
          "among several kernels: measured, by the table's rules, or auto: measured on a GPU")
      .capture_default_str();
  command.add_flag("--no-winograd", no_winograd, "no convolution by Winograd's transforms");
}

void MachineOptions::add_simulation_to(Command& command) {
  command.add_option("--machine", machine,
                     "systolic: mmu16 (default), another of triptych devices, or a JSON file");
  command.add_option("--simulate", simulate,
                     "systolic: by the C++ twin (default), the RTL or both");
}

void MachineOptions::add_tiling_to(Command& command) {
  command.add_option("--tiling", tiling,
                     "systolic: sizes of tiles instead of the planner's: pass=64,columns=2");
}

training::ExecutionConfig MachineOptions::config() const {
  return {.backend = backend,
          .fallback = fallback,
          .threads = threads,
          .contract = contract,
          .machine = machine,
          .simulate = simulate,
          .tiling = tiling,
          .kernel = kernel,
          .choice = choice,
          .winograd = !no_winograd,
          .graph = no_graph ? "off" : ""};
}

}  // namespace triptych::app
