// Axes given as attributes, counted from the front or, when negative, from the end. Also the lines
// of a tensor along one axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor/shape.h"

namespace triptych {

/// `axis` counted from the front. Throws "[op] axis 4 is outside [-3, 2]".
std::int64_t resolve_axis(std::string_view op, std::int64_t axis, std::int64_t rank);

/// Each of `axes`, in the given order. Throws also for a repeated axis.
Dims resolve_axes(std::string_view op, std::span<const std::int64_t> axes, std::int64_t rank);

/// Throws unless a list with an entry for each place along an axis so long can be had, however few
/// elements the tensor has.
void require_listable(std::string_view op, std::size_t axis, std::int64_t length);

/// The lines of a dense tensor along one axis: `count` elements, the neighbours in a line `inner`
/// apart. `inner` lines start side by side, `outer` times.
struct AxisLines {
  std::int64_t outer = 1, count = 1, inner = 1;

  /// `axis` is counted from the front.
  static AxisLines along(const Shape& shape, std::int64_t axis) {
    return {shape.elements_between(0, axis), shape[axis],
            shape.elements_between(axis + 1, shape.rank())};
  }
};

}  // namespace triptych
