// The parts that Softmax and the cross-entropy of classes have in common on the vector unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/systolic/kernels/vector_lines.h"

namespace triptych::systolic {

/// largest = the largest element of each line. A line with a NaN may have any: its exponentials add
/// up to a NaN anyhow.
void find_largest(VectorProgram& program, const VectorLines& lines, const LineTile& tile,
                  std::uint64_t x, VectorBlock largest);

/// sum = sum of e^(x - largest) in the stated tree. visit(element, x, e) is called when x is
/// loaded, and again when e is there. Blocks x and e differ.
struct ExponentialVisitor {
  std::function<void(std::int64_t element, VectorBlock x)> loaded = {};
  std::function<void(std::int64_t element, VectorBlock e)> computed = {};
};
void sum_exponentials(VectorProgram& program, const VectorLines& lines, const LineTile& tile,
                      std::uint64_t x, VectorBlock largest, VectorBlock sum,
                      const ExponentialVisitor& visitor);

/// Blocks that the sum takes with the largest elements, the sums and the function.
inline std::uint32_t softmax_blocks(std::int64_t elements) { return 5 + fold_blocks(elements); }

}  // namespace triptych::systolic
