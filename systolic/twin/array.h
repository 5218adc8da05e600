// The array's numbers: chains of multiply-adds, a block of positions at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace triptych::mmu {

/// Columns are worked on in vectors of this many; weights and accumulators are padded to it.
inline constexpr std::uint32_t kVector = 16;

inline constexpr std::uint32_t padded(std::uint32_t columns) {
  return (columns + kVector - 1) / kVector * kVector;
}

/// A tile of weights as numbers, zeros in the padding.
struct Tile {
  std::uint32_t rows = 0, columns = 0;
  std::vector<float> weights;  ///< rows x padded(columns)
};

/// One of the two is used, by PE kind; rows x padded columns.
struct Accumulators {
  std::uint32_t stride = 0;
  std::vector<float> real;
  std::vector<std::int32_t> whole;
};

/// Activation of position m and array row r: x[m * position_stride + r * row_stride].
struct ActivationBlock {
  const float* x;
  std::ptrdiff_t position_stride, row_stride;
  std::uint32_t positions;
};

/// Chains every position through the tile's rows in ascending order, from the accumulators or from
/// +0, into the accumulator rows from `row` on.
void multiply_bf16(const ActivationBlock& block, const Tile& tile, bool accumulate,
                   std::uint32_t row, Accumulators& accumulators);
void multiply_int8(const ActivationBlock& block, const Tile& tile, bool accumulate,
                   std::uint32_t row, Accumulators& accumulators);

/// While it lives, this thread's floating-point operations take and give zeros for subnormals, as
/// the array does. Elsewhere than on x86 it does nothing: there the chains are computed in
/// software.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned saved_ = 0;
};

}  // namespace triptych::mmu
