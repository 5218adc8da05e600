// The array's numbers: chains of multiply-adds, a block of positions and a strip of columns at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triptych::mmu {

/// Columns are worked on in strips of this many.
inline constexpr std::uint32_t kStrip = 16;
/// Rows of weights that a chain may pass in one call: few enough for the cache, and so few that
/// sums of int8 products stay below 2^24.
inline constexpr std::uint32_t kMostRows = 256;
/// Positions that are worked on at a time.
inline constexpr std::uint32_t kBlock = 32;

struct alignas(kStrip * sizeof(float)) Vector {
  float lanes[kStrip];
};

inline constexpr std::uint32_t strips(std::uint32_t columns) {
  return (columns + kStrip - 1) / kStrip;
}

/// One of the two is used, by PE kind, [row][strip].
struct Accumulators {
  std::uint32_t stride = 0;  ///< values of a row
  std::vector<Vector> real;
  std::vector<std::int32_t> whole;

  float* real_at(std::size_t row) { return real.data()->lanes + row * stride; }
  const float* real_at(std::size_t row) const { return real.data()->lanes + row * stride; }
  std::int32_t* whole_at(std::size_t row) { return whole.data() + row * stride; }
  const std::int32_t* whole_at(std::size_t row) const { return whole.data() + row * stride; }
};

/// Activation of position m for row r of a chain: x[m * position_stride + r * row_stride].
struct ActivationBlock {
  const float* x;
  std::ptrdiff_t position_stride, row_stride;
  std::uint32_t positions;
};

/// Chains of up to kStrip columns.
struct Strip {
  const Vector* weights;      ///< one for each row of the chains, with numbers in unused lanes too
  std::uint32_t accumulator;  ///< row of the first position
  std::uint32_t first, columns;
};

/// Chains every position through all rows in ascending order, from the accumulators or from +0,
/// into the accumulator rows from `strip.accumulator + first` on.
struct ChainCall {
  ActivationBlock block;
  std::span<const Strip> strips;
  std::uint32_t rows;
  bool accumulate;
  std::uint32_t first;
};
void multiply_bf16(const ChainCall& call, Accumulators& accumulators);
void multiply_int8(const ChainCall& call, Accumulators& accumulators);

/// Rows of kStrip bfloat16 numbers, `pitch` bytes apart (modulo 2^32) from an address on.
struct NarrowRows {
  const std::byte* memory;
  std::uint32_t address, pitch, count;
};
void widen(const NarrowRows& rows, Vector* target);

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
