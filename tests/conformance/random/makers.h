// The makers of random nodes: one small function per operator or family. Each chooses compatible
// operands and valid attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tests/conformance/random/grower.h"

namespace triptych::conformance {

struct Maker {
  void (*add)(Grower& grower);  ///< adds a node or a few, or none
  int weight = 1;
  bool smooth = true;  ///< a gradient may be checked through it
};

void add_elementwise_makers(std::vector<Maker>& makers);
void add_reduction_makers(std::vector<Maker>& makers);
void add_movement_makers(std::vector<Maker>& makers);
void add_resampling_makers(std::vector<Maker>& makers);
void add_product_makers(std::vector<Maker>& makers);
void add_quantized_makers(std::vector<Maker>& makers);
void add_pool_makers(std::vector<Maker>& makers);
void add_normalization_makers(std::vector<Maker>& makers);
void add_training_makers(std::vector<Maker>& makers);

/// A random subset of the axes of a tensor of this rank, ascending, counted from either end, with
/// at least `least` of them.
std::vector<std::int64_t> some_axes(Grower& grower, std::int64_t rank, std::int64_t least);
/// An axis of a tensor of this rank, counted from either end.
std::int64_t some_axis(Grower& grower, std::int64_t rank);
/// x itself, or |x| + 0.5 where x comes near 0 or below.
ValueId positive(Grower& grower, ValueId x);

}  // namespace triptych::conformance
