// The steps of a ladder of matrix products, from three loops to threads, each one idea away from
// the previous step. docs/hardware/cpu-ladder.md explains them. The steps that are written here
// compute every element as one chain of fused multiply-adds in ascending k.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/cpu/gemm/pack.h"

namespace triptych::cpu {

/// c [m, n] = a [m, k] b [k, n]. All dense and in order of rows.
struct PlainProduct {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
};

/// Three loops: row, column, k.
void naive_product(const PlainProduct& product);

/// A block of b stays in the first-level cache while all rows of a pass by. The innermost loop goes
/// along rows of b and c. One element at a time, as in naive_product.
void blocked_product(const PlainProduct& product);

inline constexpr std::int64_t kScalarDepth = 64;    ///< rows of blocked_product's block of b
inline constexpr std::int64_t kScalarColumns = 64;  ///< its columns

/// Tile that vectorised_product keeps in registers: rows and columns of c.
struct VectorTile {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
VectorTile vector_tile();

/// `rows` of c, a tile at a time: a vector loaded from b serves every row of the tile, an element
/// of a every column. The operands are read where they lie.
void vectorised_product(const PlainProduct& product, Range rows);

inline constexpr std::int64_t kVectorDepth = 256;  ///< k of one visit to a tile

/// vectorised_product with the rows shared out to the threads of the arena.
void threaded_product(const PlainProduct& product);

/// Eigen's product on this thread, by the instructions that this processor has. Allocates.
void eigen_product(const PlainProduct& product);

}  // namespace triptych::cpu
