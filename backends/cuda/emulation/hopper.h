// kernels/hopper.cuh without a GPU. Copies and products happen at once when they are asked for,
// each thread computing its own sums from the tiles; what is asked too early or too late shows in
// the values. Tiles that the copy engine fills are not watched for races.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "backends/cuda/kernels/hopper.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

struct TensorMap {
  const BFloat16* data;
  std::int64_t sizes[4];
  int box[4];

  /// Element (x, y, z, n); 0 outside.
  BFloat16 at(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t n) const {
    const bool inside = x >= 0 && x < sizes[0] && y >= 0 && y < sizes[1] && z >= 0 &&
                        z < sizes[2] && n >= 0 && n < sizes[3];
    return inside ? data[((n * sizes[2] + z) * sizes[1] + y) * sizes[0] + x] : BFloat16();
  }
};

inline TensorMap make_tensor_map(const BFloat16* data, const std::int64_t (&sizes)[4],
                                 const int (&box)[4]) {
  return {data, {sizes[0], sizes[1], sizes[2], sizes[3]}, {box[0], box[1], box[2], box[3]}};
}
inline TensorMap make_tensor_map(const BFloat16* data, std::int64_t rows, std::int64_t width,
                                 int box_rows) {
  return make_tensor_map(data, {width, rows, 1, 1}, {64, box_rows, 1, 1});
}

class PhaseBarrier {
 public:
  void begin(int arrivals) {
    arrivals_ = missing_ = arrivals;
    bytes_ = 0;
    parity_ = 0;
  }
  /// Here every thread arrives: those of a warpgroup do not run in step.
  void begin_warpgroups(int count) { begin(count * 128); }
  void expect(int bytes) {
    bytes_ += bytes;
    arrive();
  }
  void arrive_warpgroup() { arrive(); }
  void come(int bytes) {
    bytes_ -= bytes;
    end_phase();
  }
  void wait(unsigned parity, emulation::Location where = emulation::Location::current()) {
    while (parity_ == parity) emulation::Block::current().wait_for_signal(where);
  }

 private:
  void arrive() {
    --missing_;
    end_phase();
  }
  void end_phase() {
    if (missing_ > 0 || bytes_ > 0) return;
    missing_ = arrivals_;
    parity_ ^= 1U;
    emulation::Block::current().signal();
  }

  int arrivals_, missing_, bytes_;
  unsigned parity_;
};

inline void publish_barriers() {}

template <int kRows>
void load_box(Swizzled<kRows>& to, int row, const TensorMap& from, const int (&at)[4],
              PhaseBarrier& barrier) {
  constexpr int kPieces = Swizzled<kRows>::kPieces;
  const int rows = from.box[1] * from.box[2] * from.box[3];
  for (int r = 0; r < rows; ++r) {
    const int y = at[1] + r % from.box[1], z = at[2] + r / from.box[1] % from.box[2];
    const int n = at[3] + r / from.box[1] / from.box[2];
    for (int piece = 0; piece < kPieces; ++piece) {
      Piece value;
      for (int e = 0; e < 8; ++e) value[e] = from.at(at[0] + piece * 8 + e, y, z, n);
      to.pieces.data[(row + r) * kPieces + to.place(row + r, piece)] = value;
    }
  }
  const int bytes = rows * kPieces * static_cast<int>(sizeof(Piece));
#if defined(TRIPTYCH_COUNTED)
  Recorder::current().bulk_copied(static_cast<std::uint64_t>(bytes));
#endif
  barrier.come(bytes);
}

template <int kRows>
void load_box(Swizzled<kRows>& to, int row, const TensorMap& from, int column, int from_row,
              PhaseBarrier& barrier) {
  load_box(to, row, from, {column, from_row, 0, 0}, barrier);
}

/// 64 values of one row.
template <int kRows>
void read_row(const Swizzled<kRows>& from, int row, float (&values)[64]) {
  constexpr int kPieces = Swizzled<kRows>::kPieces;
  for (int k = 0; k < 64; ++k) {
    const Piece& piece = from.pieces.data[row * kPieces + from.place(row, k / 8)];
    values[k] = static_cast<float>(piece[k % 8]);
  }
}

template <int kRowsA, int kRowsB>
void multiply_tiles(WarpgroupSums& c, const Swizzled<kRowsA>& a, int a_row,
                    const Swizzled<kRowsB>& b, int b_row) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  float rows[2][64], column[64];
  for (int i = 0; i < 2; ++i) read_row(a, a_row + thread / 32 * 16 + 8 * i + lane / 4, rows[i]);
  for (int n = 0; n < WarpgroupSums::kColumns / 8; ++n) {
    for (int i = 0; i < 2; ++i) {
      read_row(b, b_row + 8 * n + lane % 4 * 2 + i, column);
      for (int half = 0; half < 2; ++half) {
        float& sum = c.columns[n].sums[2 * half + i];
        for (int k = 0; k < 64; ++k) sum = std::fma(rows[half][k], column[k], sum);
      }
    }
  }
#if defined(TRIPTYCH_COUNTED)
  // One thread counts for the warpgroup.
  if (thread == 0) Recorder::current().multiplied(64 / 16 * (128 / 8) * (64 / 16));
#endif
}

template <int kPending, class... Sums>
void wait_products(Sums&...) {}
template <int kCount>
void take_registers() {}
template <int kCount>
void leave_registers() {}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
