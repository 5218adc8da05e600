// kernels/tensor_core.cuh by the lanes of an emulated warp. Where lanes work together, each leaves
// the addresses of its operands, and the last one does the work of all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "backends/cuda/kernels/tensor_core.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

using emulation::WarpWork;
#if defined(TRIPTYCH_COUNTED)
/// An index that brings a place along.
inline Index located(std::int64_t i, const Location& where) { return {i, where}; }
inline void land(const Piece& piece, const Location& where) {
  Recorder::current().land(&piece, sizeof(Piece), where);
}
#else
using emulation::Location;
inline std::int64_t located(std::int64_t i, const Location&) { return i; }
inline void land(const Piece&, const Location&) {}
#endif

/// Calls work(operands), an array of the operands of each lane, in the lane that arrives last.
template <class Operands, class Work>
void work_together(Operands& mine, WarpWork kind, const Location& where, const Work& work) {
  if (!emulation::exchange(~0U, emulation::to_word(&mine), where, kind)) return;
  Operands* lanes[emulation::kWarp];
  for (unsigned lane = 0; lane < emulation::kWarp; ++lane) {
    lanes[lane] = emulation::from_word<Operands*>(emulation::exchanged(~0U, lane, where));
  }
  work(lanes);
}

inline float low(Pair pair) { return bf16_to_float(static_cast<std::uint16_t>(pair)); }
inline float high(Pair pair) { return bf16_to_float(static_cast<std::uint16_t>(pair >> 16)); }

struct MultiplyOperands {
  FragmentC& c;
  const FragmentA& a;
  const FragmentB& b;
};

inline void multiply_all(MultiplyOperands* const (&lanes)[emulation::kWarp]) {
  float a[16][16], b[16][8], c[16][8];  // [m, k], [k, n], [m, n]
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const MultiplyOperands& of = *lanes[lane];
    for (int i = 0; i < 4; ++i) {
      float* pair = &a[g + i % 2 * 8][2 * t + i / 2 * 8];
      pair[0] = low(of.a.pairs[i]);
      pair[1] = high(of.a.pairs[i]);
      c[g + i / 2 * 8][2 * t + i % 2] = of.c.sums[i];
    }
    for (int i = 0; i < 2; ++i) {
      b[2 * t + i * 8][g] = low(of.b.pairs[i]);
      b[2 * t + i * 8 + 1][g] = high(of.b.pairs[i]);
    }
  }
  for (int m = 0; m < 16; ++m) {
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < 8; ++n) c[m][n] = std::fma(a[m][k], b[k][n], c[m][n]);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      lanes[lane]->c.sums[i] = c[g + i / 2 * 8][2 * t + i % 2];
    }
  }
}

inline void multiply(FragmentC& c, const FragmentA& a, const FragmentB& b,
                     Location where = Location::current()) {
  MultiplyOperands mine = {c, a, b};
  work_together(mine, WarpWork::Multiply, where, multiply_all);
}

struct LoadOperands {
  Piece row;
  Pair* out;
};

template <bool kTransposed>
void distribute_rows(LoadOperands* const (&lanes)[emulation::kWarp]) {
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      const auto at = [&](int row, int column) -> Pair {
        return lanes[8 * i + row]->row[column].bits;
      };
      lanes[lane]->out[i] = kTransposed ? at(2 * t, g) | at(2 * t + 1, g) << 16
                                        : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
    }
  }
}

template <bool kTransposed, int kRows>
void load_rows(Swizzled<kRows>& from, int row, int piece, Pair (&out)[4], const Location& where) {
  LoadOperands mine = {from.pieces(located(row, where), located(from.place(row, piece), where)),
                       out};
  work_together(mine, WarpWork::LoadMatrix, where, distribute_rows<kTransposed>);
}

template <int kRows>
void load_matrices(Swizzled<kRows>& from, int row, int piece, Pair (&out)[4],
                   Location where = Location::current()) {
  load_rows<false>(from, row, piece, out, where);
}
template <int kRows>
void load_matrices_transposed(Swizzled<kRows>& from, int row, int piece, Pair (&out)[4],
                              Location where = Location::current()) {
  load_rows<true>(from, row, piece, out, where);
}

/// Reads its sources at once and delivers when waited for. Until then the targets hold NaNs.
class CopyQueue {
 public:
  template <int kRows>
  void copy(Swizzled<kRows>& to, int row, int piece, Global<const BFloat16> source,
            std::int64_t index, bool inside, Location where = Location::current()) {
    if (count_ == kCapacity) {
      emulation::Block::current().fail(FaultKind::OutOfBounds, where,
                                       "more copies are under way than the emulation keeps");
    }
    Copy& next = copies_[(first_ + count_++) % kCapacity];
    next.value = {};
    if (inside) next.value = source.template load<8>(located(index, where));
    const int place = to.place(row, piece);
    to.pieces(located(row, where), located(place, where)) = undefined();
    next.target = &to.pieces.data[row * Swizzled<kRows>::kPieces + place];
    next.group = committed_;
  }
  void commit() { ++committed_; }
  template <int kPending>
  void wait(Location where = Location::current()) {
    for (; count_ > 0 && copies_[first_].group + kPending < committed_; --count_) {
      *copies_[first_].target = copies_[first_].value;
      land(*copies_[first_].target, where);
      first_ = (first_ + 1) % kCapacity;
    }
  }

 private:
  static constexpr unsigned kCapacity = 128;
  struct Copy {
    Piece value;
    Piece* target;
    unsigned group;
  };
  static Piece undefined() {
    Piece piece;
    for (auto& value : piece.values) value.bits = 0xFFFF;
    return piece;
  }

  Copy copies_[kCapacity];
  unsigned first_ = 0, count_ = 0, committed_ = 0;
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
