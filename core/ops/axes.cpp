// SPDX-License-Identifier: Apache-2.0
#include "core/ops/axes.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"

namespace triptych {

std::int64_t resolve_axis(std::string_view op, std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) {
    throw_invalid(op, fmt::format("axis {} is outside [{}, {}]", axis, -rank, rank - 1));
  }
  return axis < 0 ? axis + rank : axis;
}

void require_listable(std::string_view op, std::size_t axis, std::int64_t length) {
  constexpr std::int64_t longest = std::int64_t{1} << 22;
  if (length <= longest) return;
  throw_invalid(
      op, fmt::format("axis {} is {} long; at most {} can be computed", axis, length, longest));
}

Dims resolve_axes(std::string_view op, std::span<const std::int64_t> axes, std::int64_t rank) {
  Dims resolved;
  for (const auto given : axes) {
    const auto axis = resolve_axis(op, given, rank);
    if (std::find(resolved.begin(), resolved.end(), axis) != resolved.end()) {
      throw_invalid(op, fmt::format("axis {} is given twice", axis));
    }
    resolved.push_back(axis);
  }
  return resolved;
}

}  // namespace triptych
