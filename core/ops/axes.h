// Axes given as attributes, counted from the front or, when negative, from the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor/shape.h"

namespace triptych {

/// `axis` counted from the front. Throws "[op] axis 4 is outside [-3, 2]".
std::int64_t resolve_axis(std::string_view op, std::int64_t axis, std::int64_t rank);

/// Each of `axes`, in the given order. Throws also when one comes twice.
Dims resolve_axes(std::string_view op, std::span<const std::int64_t> axes, std::int64_t rank);

}  // namespace triptych
