// Arithmetic in every dtype that ONNX has it for: in 8 bits it is that of int32, cut back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/onnx/node_import.h"
#include "core/ops/binary.h"

namespace triptych::onnx {

/// kind(a, b), broadcast, in the dtype of both.
ValueId arithmetic(const NodeImport& n, BinaryKind kind, ValueId a, ValueId b);

/// kind(a, b) as bool, also for bool and 8 bits.
ValueId compare(const NodeImport& n, BinaryKind kind, ValueId a, ValueId b);

/// The square root of a sum or mean of squares. Where that is 0, its gradient is 0: the square
/// root's is infinite there, and that of the squares 0.
ValueId norm_of(const Formula& f, ValueId squares);

/// Input 1 of a node as it broadcasts to input 0: before operator set 7 only where the attribute
/// broadcast requests it, from the given axis.
ValueId broadcast_as_of_old(NodeImport& n);

}  // namespace triptych::onnx
