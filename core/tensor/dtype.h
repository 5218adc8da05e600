// Element types of tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/error.h"
#include "core/base/float16.h"

namespace triptych {

enum class DType : std::uint8_t { F32, BF16, F16, I8, U8, I32, I64, Bool };

inline constexpr DType kAllDTypes[] = {DType::F32, DType::BF16, DType::F16, DType::I8,
                                       DType::U8,  DType::I32,  DType::I64, DType::Bool};

/// Bytes of one element.
std::size_t dtype_size(DType dtype);

/// Lower-case name, as printed and as accepted: "f32", "bf16", ..., "bool".
std::string_view to_string(DType dtype);

/// The dtype of that name. Throws InvalidArgument listing the names.
DType dtype_from_string(std::string_view name);

constexpr bool is_floating(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

/// The C++ type that stores T's elements, as a DType. Bool is stored as `bool`.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no DType for this C++ type");
  return DType::F32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::F32;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::BF16;
template <>
inline constexpr DType dtype_of<Float16> = DType::F16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::I8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::U8;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::I32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::I64;
template <>
inline constexpr DType dtype_of<bool> = DType::Bool;

/// Calls `visitor` with a value of the C++ type that stores `dtype`:
/// Example: `visit_dtype(dtype, [&](auto tag) { using T = decltype(tag); ... })`.
template <class Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::F32:
      return visitor(float{});
    case DType::BF16:
      return visitor(BFloat16{});
    case DType::F16:
      return visitor(Float16{});
    case DType::I8:
      return visitor(std::int8_t{});
    case DType::U8:
      return visitor(std::uint8_t{});
    case DType::I32:
      return visitor(std::int32_t{});
    case DType::I64:
      return visitor(std::int64_t{});
    case DType::Bool:
      return visitor(bool{});
  }
  throw InvalidArgument("dtype out of range");
}

}  // namespace triptych
