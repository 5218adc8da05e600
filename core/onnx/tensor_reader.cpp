// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/tensor_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/memory_budget.h"
#include "core/io/npy.h"
#include "core/io/safetensors.h"
#include "core/onnx/element_type.h"

namespace triptych::onnx {
namespace {

constexpr std::int32_t kExternal = 1;

[[noreturn]] void refuse(const std::string& of, const std::string& problem) {
  throw IoError(fmt::format("{}: {}", of, problem));
}

Shape shape_of(const onnx_format::Tensor& stored, const std::string& of) {
  if (stored.dims_size() > kMaxRank) {
    refuse(of, fmt::format("{} dimensions; {} is the limit", stored.dims_size(), kMaxRank));
  }
  try {
    return Shape(Dims(stored.dims().begin(), stored.dims().end()));
  } catch (const InvalidArgument& error) {
    refuse(of, error.what());
  }
}

std::int64_t number_in(const std::string& text, const std::string& of, const std::string& key) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0) {
    refuse(of, fmt::format("its external {} is no number from 0 to 2^63 - 1", key));
  }
  return value;
}

ExternalRange range_of(const onnx_format::Tensor& stored, const std::string& of) {
  ExternalRange range;
  bool seen[4] = {};
  const auto once = [&](int key, const std::string& name) {
    if (std::exchange(seen[key], true))
      refuse(of, fmt::format("its external {} stands twice", name));
  };
  for (const auto& entry : stored.external_data()) {
    if (entry.key() == "location") {
      once(0, "location");
      range.location = entry.value();
    } else if (entry.key() == "offset") {
      once(1, "offset");
      range.offset = number_in(entry.value(), of, "offset");
    } else if (entry.key() == "length") {
      once(2, "length");
      range.length = number_in(entry.value(), of, "length");
    } else if (entry.key() == "checksum") {
      once(3, "checksum");
      range.checksum = entry.value();
    } else {
      refuse(of, "its external data has a key that ONNX does not have");
    }
  }
  return range;
}

/// Copies a repeated field of the file into elements that are stored as T.
template <class T, class Field>
void copy_field(const Field& field, std::span<std::byte> into, const std::string& of) {
  if (field.size() * sizeof(T) != into.size()) {
    refuse(of, fmt::format("{} numbers are stored, its shape needs {}", field.size(),
                           into.size() / sizeof(T)));
  }
  auto* out = into.data();
  for (const auto value : field) {
    if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) refuse(of, fmt::format("{} does not fit its type", value));
    }
    const auto element = static_cast<T>(value);
    std::memcpy(out, &element, sizeof(T));
    out += sizeof(T);
  }
}

void copy_numbers(const onnx_format::Tensor& stored, const ElementType& type,
                  std::span<std::byte> into, const std::string& of) {
  if (type.is_double) return copy_field<double>(stored.double_data(), into, of);
  switch (type.dtype) {
    case DType::F32:
      return copy_field<float>(stored.float_data(), into, of);
    case DType::I64:
      return copy_field<std::int64_t>(stored.int64_data(), into, of);
    case DType::I32:
      return copy_field<std::int32_t>(stored.int32_data(), into, of);
    case DType::I8:
      return copy_field<std::int8_t>(stored.int32_data(), into, of);
    case DType::U8:
    case DType::Bool:
      return copy_field<std::uint8_t>(stored.int32_data(), into, of);
    case DType::F16:
    case DType::BF16:
      return copy_field<std::uint16_t>(stored.int32_data(), into, of);
  }
}

/// Kinds of data that are there.
int kinds_of_data(const onnx_format::Tensor& stored) {
  return stored.has_raw_data() + (stored.float_data_size() > 0) + (stored.int32_data_size() > 0) +
         (stored.int64_data_size() > 0) + (stored.double_data_size() > 0) +
         (stored.uint64_data_size() > 0) + (stored.string_data_size() > 0);
}

Tensor narrowed(const TensorSpec& spec, const std::vector<double>& doubles, const std::string& of) {
  Tensor tensor(spec);
  const auto values = tensor.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!fits_float(doubles[i])) {
      throw UnsupportedError(fmt::format(
          "{}: it is float64, computed in float32, where {} has no place", of, doubles[i]));
    }
    values[i] = static_cast<float>(doubles[i]);
  }
  return tensor;
}

}  // namespace

void TensorReader::fill(const onnx_format::Tensor& stored, std::span<std::byte> into,
                        const std::string& of) {
  if (!stored.has_raw_data()) {
    return copy_numbers(stored, *element_type(stored.data_type()), into, of);
  }
  const auto& raw = stored.raw_data();
  if (raw.size() != into.size()) {
    refuse(of,
           fmt::format("{} bytes are stored, its shape and type need {}", raw.size(), into.size()));
  }
  std::memcpy(into.data(), raw.data(), raw.size());
}

TensorPtr TensorReader::read(const onnx_format::Tensor& stored, const std::string& of) {
  const auto type = require_element_type(stored.data_type(), of);
  const TensorSpec spec{type.dtype, shape_of(stored, of)};
  const bool external = stored.data_location() == kExternal;
  const auto kinds = kinds_of_data(stored);
  if (stored.data_location() != 0 && !external) refuse(of, "its data lies in an unknown place");
  if (kinds > 1 || (external && kinds > 0) || (!external && stored.external_data_size() > 0)) {
    refuse(of, "its data is stored in several ways");
  }
  std::int64_t file_bytes = 0;
  try {
    file_bytes = checked_mul(spec.shape.elements(), static_cast<std::int64_t>(type.file_bytes()));
  } catch (const InvalidArgument& error) {
    refuse(of, error.what());
  }
  const auto present = static_cast<std::int64_t>(stored.ByteSizeLong());
  if (!external && spec.shape.elements() > present) {
    refuse(of, fmt::format("{} elements are claimed, {} bytes are there", spec.shape.elements(),
                           present));
  }
  memory_budget().require(static_cast<std::size_t>(file_bytes), of);
  has_doubles_ = has_doubles_ || type.is_double;
  std::optional<ExternalBytes> outside;
  if (external) outside = folder_.find(range_of(stored, of), file_bytes);
  const auto filled = [&](std::span<std::byte> into) {
    if (outside) {
      outside->read(into);
    } else {
      fill(stored, into, of);
    }
  };
  if (type.is_double) {
    std::vector<double> doubles(static_cast<std::size_t>(spec.shape.elements()));
    filled(std::as_writable_bytes(std::span(doubles)));
    return std::make_shared<const Tensor>(narrowed(spec, doubles, of));
  }
  Tensor tensor(spec);
  filled(tensor.bytes());
  try {
    internal::require_valid_bools(tensor);
  } catch (const IoError& error) {
    refuse(of, error.what());
  }
  return std::make_shared<const Tensor>(std::move(tensor));
}

}  // namespace triptych::onnx
