// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/onnx_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/console.h"
#include "core/io/npy.h"
#include "experiments/app/options.h"
#include "experiments/app/saved_run.h"
#include "experiments/training/run_arrays.h"

namespace triptych::app {
namespace {

constexpr std::size_t kImageRank = 4;
constexpr std::int64_t kLargestBound = std::int64_t{1} << 31;

/// The text before the first "=" and the one behind it.
std::pair<std::string, std::string> split_at_equals(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

std::pair<std::string, std::int64_t> parse_binding(const std::string& text) {
  const auto [name, value] = split_at_equals(text);
  const auto number = read_number(value).value_or(0);
  const auto size = static_cast<std::int64_t>(number);
  if (name.empty() || !(number >= 1 && number <= kLargestBound) ||
      static_cast<double>(size) != number) {
    throw InvalidArgument(fmt::format("\"{}\" is not NAME=NUMBER, such as batch=8", text));
  }
  return {name, size};
}

void OnnxModelOptions::add_to(Command& command) {
  command.add_option("--bind", bind, "size that the model leaves open")
      .check(read_by([](const std::string& text) { parse_binding(text); }, ""));
}

onnx::Model OnnxModelOptions::load() const {
  auto model = onnx::load_model(file);
  if (model.has_doubles) {
    say_note(fmt::format("\"{}\" has numbers in float64; they are computed in float32", file));
  }
  return model;
}

onnx::ImportOptions OnnxModelOptions::import_options() const {
  onnx::ImportOptions options;
  for (const auto& text : bind) options.bind.insert(parse_binding(text));
  return options;
}

namespace {

/// The model with the sizes that a batch of images gives.
onnx::Model sized(const onnx::Model& model, std::int64_t batch, std::int64_t side,
                  const std::map<std::string, std::int64_t>& bind) {
  auto result = model;
  for (auto& input : result.inputs) {
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
      auto& [size, symbol] = input.shape[axis];
      if (axis == 0 && size >= 0 && size != batch) {
        throw InvalidArgument(
            fmt::format("input \"{0}\" takes batches of {1} alone; give --batch {1}, or export the "
                        "model with its "
                        "batch left open",
                        input.name, size));
      }
      const bool is_side = input.shape.size() == kImageRank && axis >= 2;
      if (size >= 0 || bind.contains(symbol) || (axis != 0 && !is_side)) continue;
      size = axis == 0 ? batch : side;
      symbol.clear();
    }
  }
  return result;
}

std::optional<std::int64_t> bound_batch(const onnx::Model& model,
                                        const std::map<std::string, std::int64_t>& bind) {
  if (model.inputs.empty() || model.inputs.front().shape.empty()) return std::nullopt;
  const auto& [size, symbol] = model.inputs.front().shape.front();
  const auto found = bind.find(symbol);
  return size >= 0 || found == bind.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

InferenceModel inference_of(const std::string& file, const InferenceOptions& options) {
  OnnxModelOptions model_options;
  model_options.file = file;
  model_options.bind = options.bind;
  auto import_options = model_options.import_options();
  auto model = std::make_shared<const onnx::Model>(model_options.load());
  const auto bound = bound_batch(*model, import_options.bind);
  const auto graph = [model, import_options, bound, side = options.side](std::int64_t batch) {
    if (bound && *bound != batch) {
      throw InvalidArgument(
          fmt::format("--bind gives the batch of \"{}\" the size {}, and --batch {}; leave one out",
                      model->inputs.front().name, *bound, batch));
    }
    return onnx::import_model(sized(*model, batch, side, import_options.bind), import_options)
        .graph;
  };
  return {graph, bound};
}

std::map<std::string, onnx::TensorPtr> load_inputs(const onnx::Model& model,
                                                   const std::vector<std::string>& inputs) {
  std::map<std::string, onnx::TensorPtr> tensors;
  const auto files = training::files_of_inputs(model, inputs);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& input = model.inputs[i];
    auto tensor = input.is_double ? load_npy_narrowed(files[i]) : load_npy(files[i]);
    if (input.dtype == DType::BF16 && tensor.dtype() == DType::F32)
      tensor = from_doubles({DType::BF16, tensor.shape()}, to_doubles(tensor));
    tensors.emplace(input.name, std::make_shared<const Tensor>(std::move(tensor)));
  }
  return tensors;
}

}  // namespace triptych::app
