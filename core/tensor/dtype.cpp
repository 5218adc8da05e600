// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype.h"

#include <array>
#include <string>

namespace triptych {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"f32", "bf16", "f16", "i8",
                                                    "u8",  "i32",  "i64", "bool"};

}  // namespace

std::size_t dtype_size(DType dtype) {
  return visit_dtype(dtype, [](auto tag) { return sizeof(tag); });
}

std::string_view to_string(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

DType dtype_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  throw InvalidArgument("unknown dtype \"" + std::string(name) +
                        "\"; use f32, bf16, f16, i8, u8, i32, i64 or bool");
}

}  // namespace triptych
