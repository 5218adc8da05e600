// Places of the maxima of a pooling, and values put back to such places.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/onnx/node_import.h"
#include "core/ops/pool.h"

namespace triptych::onnx {

/// For each output of a MaxPool of images the place of its maximum in the whole input, the first of
/// equal ones; `column_major` counts height before width within a plane.
ValueId pool_indices(const NodeImport& n, const MaxPool& op, ValueId x, bool column_major);

}  // namespace triptych::onnx
