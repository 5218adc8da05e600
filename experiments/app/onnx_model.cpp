// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/onnx_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/speech.h"
#include "core/io/npy.h"
#include "experiments/app/options.h"
#include "experiments/app/saved_run.h"

namespace triptych::app {
namespace {

constexpr std::int64_t kLargestBound = std::int64_t{1} << 31;

/// The text before the first "=" and the one behind it.
std::pair<std::string, std::string> split_at_equals(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

std::pair<std::string, std::int64_t> binding(const std::string& text) {
  const auto [name, value] = split_at_equals(text);
  const auto number = read_number(value).value_or(0);
  const auto size = static_cast<std::int64_t>(number);
  if (name.empty() || !(number >= 1 && number <= kLargestBound) ||
      static_cast<double>(size) != number) {
    throw InvalidArgument(fmt::format("\"{}\" is not NAME=NUMBER, such as batch=8", text));
  }
  return {name, size};
}

}  // namespace

void OnnxModelOptions::add_to(Command& command, bool optional) {
  const auto add = [&](Option option) {
    if (optional) option.only_with("model");
  };
  add(command.add_option("--bind", bind, "NAME=NUMBER: a size that the model leaves open")
          .check(read_by([](const std::string& text) { binding(text); }, "")));
  add(command
          .add_option("--max-memory", max_memory,
                      "MiB that the model's tensors, and its run, may take")
          .check(whole_from(1, kMaxMemoryMib))
          .capture_default_str());
}

onnx::Model OnnxModelOptions::load() const {
  auto model = onnx::load_model(file, {.memory = memory_bytes()});
  if (model.has_doubles) {
    say_note(fmt::format("\"{}\" has numbers in float64; they are computed in float32", file));
  }
  return model;
}

onnx::ImportOptions OnnxModelOptions::import_options() const {
  onnx::ImportOptions options;
  for (const auto& text : bind) options.bind.insert(binding(text));
  options.memory = memory_bytes();
  return options;
}

std::map<std::string, onnx::TensorPtr> load_inputs(const onnx::Model& model,
                                                   const std::vector<std::string>& inputs,
                                                   std::int64_t max_bytes) {
  std::map<std::string, onnx::TensorPtr> tensors;
  std::size_t next = 0;
  for (const auto& text : inputs) {
    auto [name, file] = split_at_equals(text);
    const auto named = std::ranges::find(model.inputs, name, &onnx::ModelValue::name);
    const auto* input = named == model.inputs.end() ? nullptr : &*named;
    if (input == nullptr) {  // a path may have a "=", too
      file = text;
      if (next == model.inputs.size()) {
        throw InvalidArgument(
            fmt::format("--input \"{}\": the model has {} inputs", text, model.inputs.size()));
      }
      input = &model.inputs[next++];
    }
    auto tensor = input->is_double ? load_npy_narrowed(file, max_bytes) : load_npy(file, max_bytes);
    if (!tensors.emplace(input->name, std::make_shared<const Tensor>(std::move(tensor))).second) {
      throw InvalidArgument(
          fmt::format("--input \"{}\": the input \"{}\" is given already", text, input->name));
    }
  }
  for (const auto& input : model.inputs) {
    if (tensors.contains(input.name)) continue;
    throw InvalidArgument(fmt::format("the input \"{}\" is not given; add --input {}=FILE.npy",
                                      input.name, input.name));
  }
  return tensors;
}

}  // namespace triptych::app
