// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/options.h"

#include <fmt/core.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/onnx_model.h"
#include "experiments/app/option_rows.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_arrays.h"

namespace triptych::app {
namespace {

/// A limit above this is not worth a word in the help.
constexpr std::int64_t kManyMore = std::int64_t{1} << 40;

}  // namespace

Validator within(const training::NumberLimits& limits) {
  const auto check = [limits](const std::string& text) -> std::string {
    const auto value = read_number(text);
    if (value && training::within(limits, *value)) return {};
    return fmt::format("must be a number {}, got \"{}\"", to_string(limits), text);
  };
  return {fmt::format("{}{} to {}", limits.above_low ? "above " : "", limits.low, limits.high),
          check};
}

Validator within(const training::WholeLimits& limits) {
  const auto check = [limits](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const auto* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error == std::errc{} && end == last && training::within(limits, value)) return {};
    return fmt::format("must be a whole number {}, got \"{}\"", to_string(limits), text);
  };
  return {limits.high >= kManyMore ? fmt::format("from {}", limits.low)
                                   : fmt::format("{} to {}", limits.low, limits.high),
          check};
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
  return read_by(parse, fmt::format("{} to {}", or_zero ? 0 : 1, high));
}

void ModelOptions::add_to(Command& command) {
  using enum training::OptionGroup;
  command_ = command;
  add_options(command, {Model}, {.model = &asked});
  add_run_option(command, "--freeze", freeze);
  add_options(command, {Preset}, {.model = &asked});
}

std::optional<std::int64_t> ModelOptions::given(const char* option, std::int64_t value) const {
  return command_.count(option) > 0 ? std::optional(value) : std::nullopt;
}

void ModelOptions::require_options_of_files() const {
  for (const auto* option : {"--base", "--depth", "--classes"}) {
    if (command_.count(option) == 0) continue;
    throw InvalidArgument(
        fmt::format("{} is for presets; \"{}\" says it itself: leave it out", option, name()));
  }
}

ModelConfig ModelOptions::imported(const Use& use) const {
  require_options_of_files();
  training::ImportedNetworkOptions options = {.size = given("--size", asked.size),
                                              .channels = given("--in-channels", asked.in_channels),
                                              .loss = use.loss,
                                              .takes_arrays = takes_arrays};
  if (!freeze.empty()) options.frozen = split_list(freeze);
  auto file = onnx::load_model(name());
  if (!use.inputs.empty())
    options.rows = training::row_sizes(training::files_of_inputs(file, use.inputs));
  const auto base_name = std::filesystem::path(name()).filename().string();
  auto config = training::imported_model(base_name, std::move(file), options);
  for (const auto& note : training::imported_network(config)->notes()) say_note(note);
  return config;
}

ModelConfig ModelOptions::config(const Use& use) const {
  if (is_file()) return imported(use);
  if (!freeze.empty()) throw InvalidArgument("--freeze is for ONNX files; leave it out");
  ModelConfig config = model_preset(name());
  auto values = asked;
  for (const auto& row : training::run_options()) {
    if (row.group != training::OptionGroup::Preset) continue;
    const auto member = std::get<training::ModelMember>(row.member);
    if (command_.count(std::string(row.name)) > 0) copy_value(member(values), member(config));
  }
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
  if (given("--in-channels", asked.in_channels) || !freeze.empty())
    throw InvalidArgument("--in-channels and --freeze are for training; leave them out");
  InferenceOptions options = {.bind = bind};
  if (const auto size = given("--size", asked.size)) options.side = *size;
  auto imported = inference_of(name(), options);
  inference = std::move(imported.graph);
  config.name = std::filesystem::path(name()).stem().string();
  return command_.count("--batch") > 0 ? std::nullopt : imported.batch;
}

void ModelOptions::add_bind_to(Command& command) {
  command.add_option("--bind", bind, "size that an ONNX file for inference leaves open")
      .check(read_by([](const std::string& text) { parse_binding(text); }, ""));
}

void add_mode_options(Command& command, measure::Mode& mode, std::size_t& memory_limit) {
  command.add_option("--mode", mode, "training step or inference");
  add_run_option(command, "--memory-limit", memory_limit).only_with("--mode", {"train"});
}

Option add_contract_option(Command& command, Contract& contract, const std::string& help) {
  return command.add_text(
      "--contract", [&contract](const std::string& text) { contract = contract_from_string(text); },
      [&contract] { return std::string(to_string(contract)); }, help);
}

}  // namespace triptych::app
