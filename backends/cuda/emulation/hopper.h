// kernels/hopper.cuh without a GPU, by the units of async_units.h: nothing happens before the wait
// that covers it. A thread computes its own sums from the tiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "backends/cuda/emulation/async_units.h"
#include "backends/cuda/kernels/hopper.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

using emulation::async_units, emulation::TensorMap, emulation::TileProduct;

inline TensorMap make_tensor_map(const BFloat16* data, const std::int64_t (&sizes)[4],
                                 const int (&box)[4]) {
  return emulation::encode_tensor_map(data, sizes, box);
}
inline TensorMap make_tensor_map(const BFloat16* data, std::int64_t rows, std::int64_t width,
                                 int box_rows) {
  return make_tensor_map(data, {width, rows, 1, 1}, {64, box_rows, 1, 1});
}

class PhaseBarrier {
 public:
  void begin(int arrivals, Location where = Location::current()) {
    async_units().begin(word_, arrivals, where);
  }
  /// Here every thread arrives: those of a warpgroup do not run in step.
  void begin_warpgroups(int count, Location where = Location::current()) {
    begin(count * 128, where);
  }
  void expect(int bytes, Location where = Location::current()) {
    async_units().expect(word_, bytes, where);
  }
  void arrive_warpgroup(Location where = Location::current()) {
    async_units().arrive(word_, where);
  }
  void come(int bytes, Location where = Location::current()) {
    async_units().come(word_, bytes, where);
  }
  void wait(unsigned parity, Location where = Location::current()) {
    async_units().wait(word_, parity, where);
  }
  std::uint64_t& word() { return word_; }

 private:
  std::uint64_t word_;
};

inline void publish_barriers() { async_units().publish(); }

/// The first of `rows` rows of a tile, all inside of it.
template <int kRows>
std::byte* rows_of(Swizzled<kRows>& tile, int row, int rows, const Location& where) {
  if (row < 0 || row + rows > kRows) emulation::fail_out_of_bounds(row + rows - 1, kRows, where);
  const auto offset =
      reinterpret_cast<std::byte*>(&tile) - emulation::Block::current().shared().data();
  if (offset % static_cast<std::ptrdiff_t>(emulation::kSwizzleBytes) != 0) {
    emulation::Block::current().fail(
        FaultKind::Misaligned, where,
        "the tile starts at no multiple of 1024 bytes of shared memory, where its swizzle starts");
  }
  return reinterpret_cast<std::byte*>(&tile.pieces.data[row * Swizzled<kRows>::kPieces]);
}

template <int kRows>
void load_box(Swizzled<kRows>& to, int row, const TensorMap& from, const int (&at)[4],
              PhaseBarrier& barrier, Location where = Location::current()) {
  const emulation::BoxCopy copy = {
      from, {at[0], at[1], at[2], at[3]}, rows_of(to, row, from.rows(), where)};
#if defined(TRIPTYCH_COUNTED)
  Recorder::current().bulk_copied(static_cast<std::uint64_t>(copy.bytes()));
  copy.for_each_row([&](const BFloat16* elements, std::int64_t count) {
    Recorder::current().read_by_copy(elements, static_cast<std::size_t>(count) * 2, where);
  });
#endif
  async_units().copy(copy, barrier.word(), where);
}

template <int kRows>
void load_box(Swizzled<kRows>& to, int row, const TensorMap& from, int column, int from_row,
              PhaseBarrier& barrier, Location where = Location::current()) {
  load_box(to, row, from, {column, from_row, 0, 0}, barrier, where);
}

/// Value k of row `row` of an operand that starts at `first`.
template <bool kDepthOutside>
float tile_element(const std::byte* first, int row, int k) {
  const auto* rows = reinterpret_cast<const Piece*>(first);
  const auto in_tile = [&](int r, int place) {
    return static_cast<float>(rows[r * 8 + (place / 8 ^ r % 8)][place % 8]);
  };
  return kDepthOutside ? in_tile(row / 64 * 64 + k, row % 64) : in_tile(row, k);
}

/// Sums that thread t holds are described at WarpgroupSums.
template <bool kDepthOutside>
void add_product(const TileProduct& product, unsigned in_block, float (&sums)[TileProduct::kSums]) {
  constexpr int kDepth = 64, kColumns = 32;  // of this thread
  const int thread = static_cast<int>(in_block) % 128, lane = thread % 32;
  float columns[kDepth][kColumns];
  for (int j = 0; j < kColumns; ++j) {
    const int row = j / 2 * 8 + lane % 4 * 2 + j % 2;
    for (int k = 0; k < kDepth; ++k) columns[k][j] = tile_element<kDepthOutside>(product.b, row, k);
  }
  for (int half = 0; half < 2; ++half) {
    const int row = thread / 32 * 16 + 8 * half + lane / 4;
    float chains[kColumns];
    for (int j = 0; j < kColumns; ++j) chains[j] = sums[j / 2 * 4 + half * 2 + j % 2];
    for (int k = 0; k < kDepth; ++k) {
      const float factor = tile_element<kDepthOutside>(product.a, row, k);
      for (int j = 0; j < kColumns; ++j) chains[j] = std::fma(factor, columns[k][j], chains[j]);
    }
    for (int j = 0; j < kColumns; ++j) sums[j / 2 * 4 + half * 2 + j % 2] = chains[j];
  }
}

template <int kCount>
void fence_products(WarpgroupSums (&)[kCount]) {
  async_units().fence();
}

template <bool kDepthOutside, int kRowsA, int kRowsB>
void multiply_tiles(WarpgroupSums& c, Swizzled<kRowsA>& a, int a_row, Swizzled<kRowsB>& b,
                    int b_row, Location where = Location::current()) {
  static_assert(sizeof(c) == TileProduct::kSums * sizeof(float));
  async_units().multiply(
      {reinterpret_cast<float*>(&c), rows_of(a, a_row, TileProduct::kRowsA, where),
       rows_of(b, b_row, TileProduct::kRowsB, where), add_product<kDepthOutside>},
      where);
#if defined(TRIPTYCH_COUNTED)
  // One thread counts for the warpgroup.
  if (threadIdx.x % 128 == 0) Recorder::current().multiplied(64 / 16 * (128 / 8) * (64 / 16));
#endif
}

template <int kCount>
void commit_products(WarpgroupSums (&)[kCount]) {
  async_units().commit();
}
template <int kPending, int kCount>
void wait_products(WarpgroupSums (&)[kCount], Location where = Location::current()) {
  async_units().wait_products(kPending, where);
}

template <int kCount>
void take_registers(Location where = Location::current()) {
  static_assert(kCount >= 24 && kCount <= 256 && kCount % 8 == 0);
  async_units().take_registers(kCount, where);
}
template <int kCount>
void leave_registers(Location where = Location::current()) {
  static_assert(kCount >= 24 && kCount <= 256 && kCount % 8 == 0);
  async_units().leave_registers(kCount, where);
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
