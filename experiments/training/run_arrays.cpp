// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/npy.h"
#include "core/io/sha256.h"
#include "experiments/training/imported_network.h"

namespace triptych::training {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& problem) {
  throw IoError(fmt::format("\"{}\": {}", file, problem));
}

[[noreturn]] void refuse_rowless(const std::string& file, const TensorSpec& spec) {
  refuse(file, fmt::format("it is {}; it must have a row for each example", to_string(spec)));
}

/// A file of several rows.
Tensor load_rows(const std::string& file) {
  auto array = load_npy(file);
  if (array.shape().rank() == 0 || array.elements() == 0) refuse_rowless(file, array.spec());
  return array;
}

template <class T>
std::vector<std::int64_t> widened(const Tensor& array) {
  const auto values = array.as<T>();
  return {values.begin(), values.end()};
}

/// Whole numbers of any width as i64. Nothing of other types.
std::optional<std::vector<std::int64_t>> whole_numbers(const Tensor& array) {
  switch (array.dtype()) {
    case DType::I64:
      return widened<std::int64_t>(array);
    case DType::I32:
      return widened<std::int32_t>(array);
    case DType::U8:
      return widened<std::uint8_t>(array);
    case DType::I8:
      return widened<std::int8_t>(array);
    case DType::Bool:
      return widened<bool>(array);
    default:
      return std::nullopt;
  }
}

/// The array as the input takes it: token numbers and masks of any width as i64.
Tensor as_input(Tensor array, const TensorSpec& input, const std::string& file) {
  if (input.dtype == DType::I64 && array.dtype() != DType::I64) {
    if (const auto numbers = whole_numbers(array)) array = Tensor(array.shape(), *numbers);
  }
  auto dims = array.shape().dims();
  dims.front() = 1;
  if (array.dtype() == input.dtype && Shape(dims) == input.shape) return array;
  refuse(file, fmt::format("a row of it is {} [{}], and the network takes {} [{}]",
                           to_string(array.dtype()), fmt::join(dims, ", "), to_string(input.dtype),
                           fmt::join(input.shape.dims(), ", ")));
}

void require_finite(const Tensor& array, const std::string& file) {
  if (array.dtype() != DType::F32) return;
  const auto values = array.as<float>();
  const auto bad = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
  if (bad == values.end()) return;
  const auto row = (bad - values.begin()) / (std::ssize(values) / array.shape()[0]);
  refuse(file, fmt::format("row {} has a value that is not finite", row));
}

/// Refuses numbers that exceed the table that input `input` of the network indexes. Negative ones
/// count from its end.
void require_choices(const Tensor& array, const ImportedNetwork& network, std::size_t input,
                     const std::string& file) {
  const auto numbers = whole_numbers(array);
  const auto choices = numbers ? network.choices(input) : std::nullopt;
  if (!choices) return;
  const auto rows = *choices;
  const auto bad = std::ranges::find_if(*numbers, [&](auto v) { return v < -rows || v >= rows; });
  if (bad == numbers->end()) return;
  refuse(file, fmt::format("row {} has {}; the network picks by it from {} rows, which are 0 to {}",
                           (bad - numbers->begin()) / (std::ssize(*numbers) / array.shape()[0]),
                           *bad, rows, rows - 1));
}

/// Classes as the loss takes them, of `classes` (1 means two). `ignored` becomes kNoClass.
Tensor as_classes(const Tensor& array, const TensorSpec& wanted, const RunConfig& config) {
  const auto& file = config.data.target;
  const auto numbers = whole_numbers(array);
  if (!numbers) {
    refuse(file, fmt::format("it is {}, and classes are whole numbers, as "
                             "array.astype(\"int64\") makes them; values are trained by the option "
                             "loss mean-squared-error",
                             to_string(array.dtype())));
  }
  auto dims = wanted.shape.dims();
  dims.front() = array.shape()[0];
  const bool binary = wanted.dtype == DType::F32;
  if (Shape(dims).elements() != array.elements()) {
    refuse(file, fmt::format("it is {}; classes of these examples are [{}]",
                             to_string(array.spec()), fmt::join(dims, ", ")));
  }
  const auto classes = std::max<std::int64_t>(2, config.model.classes);
  Tensor result(TensorSpec{wanted.dtype, Shape(dims)});
  const auto per_row = std::ssize(*numbers) / array.shape()[0];
  std::size_t counting = 0;
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    auto label = (*numbers)[i];
    const bool ignored = label == segmentation::kNoClass ||
                         (config.data.ignore_label >= 0 && label == config.data.ignore_label);
    if ((ignored && binary) || (!ignored && (label < 0 || label >= classes))) {
      refuse(file, fmt::format("row {} has class {}; the network's are 0 to {}{}",
                               static_cast<std::int64_t>(i) / per_row, label, classes - 1,
                               binary ? "" : ", and -100 counts nowhere"));
    }
    if (ignored) label = segmentation::kNoClass;
    if (!ignored) ++counting;
    if (binary) {
      result.as<float>()[i] = static_cast<float>(label);
    } else {
      result.as<std::int64_t>()[i] = label;
    }
  }
  if (counting == 0) refuse(file, "no number of it counts as a class: nothing is to be learnt");
  return result;
}

/// Target as the loss of `config` compares it.
Tensor load_target(const RunConfig& config, const ImportedNetwork& network) {
  const auto wanted = target_spec(network.output(), config.training.loss, false);
  auto array = load_rows(config.data.target);
  if (config.training.loss != LossKind::MeanSquaredError) return as_classes(array, wanted, config);
  auto dims = wanted.shape.dims();
  dims.front() = array.shape()[0];
  if (array.dtype() != DType::F32 || Shape(dims).elements() != array.elements()) {
    refuse(config.data.target,
           fmt::format("it is {}; the network's values of these examples are f32 [{}]",
                       to_string(array.spec()), fmt::join(dims, ", ")));
  }
  require_finite(array, config.data.target);
  return std::move(array).reshaped(Shape(dims));
}

}  // namespace

std::vector<std::string> files_of_inputs(const onnx::Model& model,
                                         const std::vector<std::string>& texts) {
  std::vector<std::string> files(model.inputs.size());
  std::size_t next = 0;
  for (const auto& text : texts) {
    const auto at = text.find('=');
    const auto name = at == std::string::npos ? std::string() : text.substr(0, at);
    auto input = std::ranges::find(model.inputs, name, &onnx::ModelValue::name);
    const bool named = input != model.inputs.end();
    if (!named) {  // a path may have a "=", too
      if (!name.empty() && !std::filesystem::exists(text)) {
        auto names =
            mapped<std::string>(model.inputs, [](const auto& value) { return value.name; });
        throw InvalidArgument(
            fmt::format("the option input \"{}\": the model has no input \"{}\", but {}", text,
                        name, fmt::join(names, ", ")));
      }
      if (next == model.inputs.size()) {
        throw InvalidArgument(fmt::format("the option input \"{}\": the model has {}", text,
                                          counted(std::ssize(files), "input")));
      }
      input = model.inputs.begin() + static_cast<std::ptrdiff_t>(next++);
    }
    auto& file = files[static_cast<std::size_t>(input - model.inputs.begin())];
    if (!file.empty()) {
      throw InvalidArgument(fmt::format(
          "the option input \"{}\": the input \"{}\" is given already", text, input->name));
    }
    file = named ? text.substr(at + 1) : text;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].empty()) continue;
    const auto& name = model.inputs[i].name;
    throw InvalidArgument(
        fmt::format("the input \"{}\" is not given; add the option input {}=FILE.npy", name, name));
  }
  return files;
}

std::vector<Dims> row_sizes(const std::vector<std::string>& files) {
  std::vector<Dims> rows;
  for (const auto& file : files) {
    const auto spec = load_npy_spec(file);
    auto dims = spec.shape.dims();
    if (dims.empty() || spec.shape.elements() == 0) refuse_rowless(file, spec);
    dims.erase(dims.begin());
    rows.push_back(std::move(dims));
  }
  return rows;
}

segmentation::Dataset load_arrays(const RunConfig& config) {
  const auto* network = imported_network(config.model);
  if (network == nullptr || network->rows().empty())
    throw InvalidArgument("only a network that takes arrays is trained on the option input");
  const auto specs = network->inputs(1, 1, 1);
  const auto& files = config.data.inputs;
  if (files.size() != specs.size()) {
    throw InvalidArgument(fmt::format("the network takes {} arrays, got {} by the option input",
                                      specs.size(), files.size()));
  }
  segmentation::Arrays arrays;
  arrays.target = load_target(config, *network);
  const auto rows = arrays.target.shape()[0];
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto array = as_input(load_rows(files[i]), specs[i], files[i]);
    require_finite(array, files[i]);
    require_choices(array, *network, i, files[i]);
    if (array.shape()[0] != rows) {
      refuse(files[i],
             fmt::format("it has {} rows, and \"{}\" has {}; each example has one of each",
                         array.shape()[0], config.data.target, rows));
    }
    arrays.inputs.push_back(std::move(array));
  }
  if (!config.data.sha256.empty() && sha256_of(arrays) != config.data.sha256) {
    throw InvalidArgument(fmt::format(
        "the arrays \"{}\" and \"{}\" are not those of the run: other values, or in another "
        "order; bring them back, or start a new run",
        fmt::join(files, "\", \""), config.data.target));
  }
  segmentation::Dataset dataset;
  dataset.classes = config.model.classes;
  dataset.arrays = std::make_shared<const segmentation::Arrays>(std::move(arrays));
  dataset.samples.resize(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    dataset.samples[i].name = std::to_string(i);
    dataset.samples[i].place = i;
  }
  return dataset;
}

std::string sha256_of(const segmentation::Arrays& arrays) {
  Sha256 hash;
  const auto add = [&](const Tensor& tensor) {
    const auto spec = to_string(tensor.spec());
    hash.update(std::as_bytes(std::span(spec)));
    hash.update(tensor.bytes());
  };
  for (const auto& input : arrays.inputs) add(input);
  add(arrays.target);
  return hash.finish();
}

}  // namespace triptych::training
