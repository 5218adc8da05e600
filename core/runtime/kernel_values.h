// Comparison of the values that two kernels of one node compute, before the time of either counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/runtime/device.h"

namespace triptych {

/// Pieces of an output of `elements`, spread over all of it at places that no tile's size divides,
/// its ends among them: everything where it is small, at most half a million elements of a large
/// one.
struct ValuePiece {
  std::int64_t first = 0, count = 0;  ///< elements
};
std::vector<ValuePiece> sample_of(std::int64_t elements);

/// The sampled elements of a kernel's outputs, piece after piece.
using KernelValues = std::vector<Tensor>;

/// Where `values` differ from `trusted`, in words that end with the trusted kernel's value. Empty:
/// nowhere. Bits where the contract promises bits, and of integers. Else as far apart as two sums
/// of the operator's terms in different orders may be, with operands between -1 and 1 (much closer
/// than a missing tile, further than any rounding).
std::string first_disagreement(const KernelQuery& query, const KernelValues& values,
                               const KernelValues& trusted);

}  // namespace triptych
