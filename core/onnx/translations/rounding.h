// Rounding of float32 in additions and comparisons that are exact.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/onnx/node_import.h"

namespace triptych::onnx {

/// The nearest whole number, and the even one in a tie. x: f32.
ValueId round_to_even(const NodeImport& n, ValueId x);
/// The largest whole number that is not above x. x: f32.
ValueId floor_of(const NodeImport& n, ValueId x);

}  // namespace triptych::onnx
