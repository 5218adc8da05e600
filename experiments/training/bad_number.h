// Numbers that are none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/tensor/tensor.h"

namespace triptych::training {

/// "NaN", "inf" or "-inf" when it holds one. Nothing when all its numbers are finite.
inline std::optional<std::string> bad_number_in(const Tensor& tensor) {
  if (tensor.dtype() != DType::F32) return std::nullopt;
  const auto values = tensor.as<float>();
  const auto bad =
      std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return std::nullopt;
  return std::isnan(*bad) ? "NaN" : fmt::format("{}", *bad);
}

}  // namespace triptych::training
