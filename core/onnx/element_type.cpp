// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/element_type.h"

#include <fmt/core.h>

#include <array>

#include "core/base/error.h"

namespace triptych::onnx {
namespace {

struct Entry {
  const char* name;
  std::optional<ElementType> type = std::nullopt;
};

constexpr std::optional<ElementType> as(DType dtype) { return ElementType{dtype, false}; }

/// Indexed by ONNX's number.
const std::array<Entry, 24> kTypes = {{{"undefined"},
                                       {"float32", as(DType::F32)},
                                       {"uint8", as(DType::U8)},
                                       {"int8", as(DType::I8)},
                                       {"uint16"},
                                       {"int16"},
                                       {"int32", as(DType::I32)},
                                       {"int64", as(DType::I64)},
                                       {"string"},
                                       {"bool", as(DType::Bool)},
                                       {"float16", as(DType::F16)},
                                       {"float64", ElementType{DType::F32, true}},
                                       {"uint32"},
                                       {"uint64"},
                                       {"complex64"},
                                       {"complex128"},
                                       {"bfloat16", as(DType::BF16)},
                                       {"float8e4m3fn"},
                                       {"float8e4m3fnuz"},
                                       {"float8e5m2"},
                                       {"float8e5m2fnuz"},
                                       {"uint4"},
                                       {"int4"},
                                       {"float4e2m1"}}};

bool known(std::int64_t number) { return number > 0 && number < std::ssize(kTypes); }

}  // namespace

std::optional<ElementType> element_type(std::int64_t number) {
  return known(number) ? kTypes[static_cast<std::size_t>(number)].type : std::nullopt;
}

std::int32_t element_number(DType dtype) {
  for (std::size_t number = 0; number < kTypes.size(); ++number) {
    const auto& type = kTypes[number].type;
    if (type && type->dtype == dtype && !type->is_double) return static_cast<std::int32_t>(number);
  }
  TRIPTYCH_ASSERT(!"a dtype without ONNX's number");
  return 0;
}

bool names_double(const std::string& attribute, std::int64_t value) {
  const bool names_type = attribute == "to" || attribute == "dtype" || attribute == "output_dtype";
  const auto type = names_type ? element_type(value) : std::nullopt;
  return type && type->is_double;
}

std::string element_type_name(std::int64_t number) {
  return known(number) ? kTypes[static_cast<std::size_t>(number)].name
                       : fmt::format("number {}", number);
}

ElementType require_element_type(std::int64_t number, const std::string& of) {
  if (const auto type = element_type(number)) return *type;
  if (!known(number)) throw IoError(fmt::format("{} has the element type {}", of, number));
  throw UnsupportedError(
      fmt::format("{} is {}; float64 (computed in float32), float32, float16, bfloat16, int8, "
                  "uint8, int32, int64 and bool can be imported",
                  of, element_type_name(number)));
}

}  // namespace triptych::onnx
