// The vector loops of pack.h, compiled once for each instruction set.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/pack.h"
#include "core/base/checked_math.h"
#include "core/base/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/pack_simd.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

/// round_to_bf16 of every lane.
template <Rounding kRounding, class V>
HWY_INLINE V rounded(V value) {
  if constexpr (kRounding == Rounding::None) return value;
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  const auto bits = hn::BitCast(u, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
  const auto sum = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7FFF)));
  const auto result = hn::BitCast(d, hn::And(sum, hn::Set(u, 0xFFFF0000)));
  return hn::IfThenElse(hn::IsNaN(value), hn::BitCast(d, hn::Set(u, 0x7FC00000)), result);
}

template <Rounding kRounding>
HWY_INLINE float rounded_scalar(float value) {
  return kRounding == Rounding::None ? value : round_to_bf16(value);
}

template <Rounding kRounding>
void copy(const MatrixView& from, float* to, std::int64_t to_stride) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < from.rows; ++i) {
    const float* source = from.data + i * from.stride;
    float* target = to + i * to_stride;
    std::int64_t j = 0;
    for (; j + lanes <= from.columns; j += lanes) {
      hn::StoreU(rounded<kRounding>(hn::LoadU(d, source + j)), d, target + j);
    }
    for (; j < from.columns; ++j) target[j] = rounded_scalar<kRounding>(source[j]);
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Block b of four lanes: the four elements from row 4 b on.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* from, std::int64_t stride) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    const auto rows = static_cast<std::int64_t>(hn::Lanes(half));
    return hn::Combine(d, load_blocks(half, from + rows * stride, stride),
                       load_blocks(half, from, stride));
  } else {
    return hn::LoadU(d, from);
  }
}

/// As many rows as a vector has lanes, by four columns.
template <Rounding kRounding, class D>
HWY_INLINE void transpose_block(D d, const float* from, std::int64_t stride, float* to,
                                std::int64_t to_stride) {
  const auto row0 = load_blocks(d, from, stride);
  const auto row1 = load_blocks(d, from + stride, stride);
  const auto row2 = load_blocks(d, from + 2 * stride, stride);
  const auto row3 = load_blocks(d, from + 3 * stride, stride);
  const auto low02 = hn::InterleaveLower(d, row0, row2);
  const auto low13 = hn::InterleaveLower(d, row1, row3);
  const auto high02 = hn::InterleaveUpper(d, row0, row2);
  const auto high13 = hn::InterleaveUpper(d, row1, row3);
  const auto store = [&](auto column, float* target) {
    hn::StoreU(rounded<kRounding>(column), d, target);
  };
  store(hn::InterleaveLower(d, low02, low13), to);
  store(hn::InterleaveUpper(d, low02, low13), to + to_stride);
  store(hn::InterleaveLower(d, high02, high13), to + 2 * to_stride);
  store(hn::InterleaveUpper(d, high02, high13), to + 3 * to_stride);
}

/// At least as many rows as a vector has lanes, and at least four columns. The last block of a row
/// or column overlaps the one before it.
template <Rounding kRounding, class D>
void transpose_blocks(D d, const MatrixView& from, float* to, std::int64_t to_stride) {
  const auto rows = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < from.rows; i += rows) {
    const auto row = std::min(i, from.rows - rows);
    for (std::int64_t j = 0; j < from.columns; j += 4) {
      const auto column = std::min(j, from.columns - 4);
      transpose_block<kRounding>(d, from.data + row * from.stride + column, from.stride,
                                 to + column * to_stride + row, to_stride);
    }
  }
}
#endif

template <Rounding kRounding>
void transpose(const MatrixView& from, float* to, std::int64_t to_stride) {
#if HWY_TARGET != HWY_SCALAR
  if (from.rows >= 4 && from.columns >= 4) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
    if (from.rows >= lanes) return transpose_blocks<kRounding>(Floats(), from, to, to_stride);
    const hn::CappedTag<float, 8> eight;
    if (from.rows >= 8) return transpose_blocks<kRounding>(eight, from, to, to_stride);
    return transpose_blocks<kRounding>(hn::CappedTag<float, 4>(), from, to, to_stride);
  }
#endif
  for (std::int64_t j = 0; j < from.columns; ++j) {
    for (std::int64_t i = 0; i < from.rows; ++i) {
      to[j * to_stride + i] = rounded_scalar<kRounding>(from.data[i * from.stride + j]);
    }
  }
}

/// Lanes 0, 2, 4, ... of two vectors in sequence, and lanes 1, 3, 5, ...
template <class D>
HWY_INLINE hn::Vec<D> even_lanes(D d, hn::Vec<D> low, hn::Vec<D> high) {
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(d), static_cast<void>(high);
  return low;
#else
  return hn::ConcatEven(d, high, low);
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> odd_lanes(D d, hn::Vec<D> low, hn::Vec<D> high) {
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(d), static_cast<void>(low);
  return high;
#else
  return hn::ConcatOdd(d, high, low);
#endif
}

/// Some lanes of a vector of columns that are neighbours in x.
struct Run {
  std::int64_t offset = 0;  ///< of lane 0, even if it is not part of the run
  std::int64_t first = 0;   ///< lanes [first, last)
  std::int64_t last = 0;
};

constexpr int kMaxRuns = 4;

/// One vector of columns: positions [first, first + valid) of the grid.
template <Rounding kRounding>
class PatchVector {
 public:
  PatchVector(const PatchGrid& grid, const float* x, std::int64_t first, std::int64_t valid)
      : grid_(grid), x_(x), first_(first), valid_(valid) {
    const auto width = grid.out[1];
    const auto rows = valid > 0 ? (first + valid - 1) / width - first / width + 1 : 0;
    contiguous_ = grid.stride[1] == 1 && rows <= kMaxRuns;
    if (!contiguous_) fill_lane_origins();
    every_second_ = grid.stride[1] == 2 && rows == 1;
  }

  /// Packs channels `c` of a tap. Consecutive channels lie `to_stride` apart.
  void pack(const std::array<std::int64_t, 2>& tap, Range c, float* to,
            std::int64_t to_stride) const {
    if (contiguous_) {
      pack_runs(tap, c, to, to_stride);
    } else if (every_second_ && parity(tap) >= 0) {
      pack_every_second(tap, c, to, to_stride);
    } else {
      gather(tap, c, to, to_stride);
    }
  }

 private:
  static constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(float);

  std::int64_t plane() const { return grid_.in[0] * grid_.in[1]; }

  void fill_lane_origins() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto position = first_ + static_cast<std::int64_t>(lane);
      const bool used = static_cast<std::int64_t>(lane) < valid_;
      rows_[lane] =
          used ? static_cast<std::int32_t>(position / grid_.out[1] * grid_.stride[0]) : -(1 << 30);
      columns_[lane] = static_cast<std::int32_t>(position % grid_.out[1] * grid_.stride[1]);
    }
  }

  /// Cuts the vector at the ends of output rows and of the input. Returns how many runs are left.
  int find_runs(const std::array<std::int64_t, 2>& tap, Run (&runs)[kMaxRuns]) const {
    int count = 0;
    for (std::int64_t lane = 0; lane < valid_;) {
      const auto row = (first_ + lane) / grid_.out[1];
      const auto column = (first_ + lane) % grid_.out[1];
      const auto end = std::min(valid_, lane + grid_.out[1] - column);
      const auto y = row * grid_.stride[0] + tap[0];
      const auto x0 = column + tap[1] - lane;  // of lane 0
      const auto first = std::max(lane, -x0);
      const auto last = std::min(end, grid_.in[1] - x0);
      if (y >= 0 && y < grid_.in[0] && first < last) {
        runs[count++] = {y * grid_.in[1] + x0, first, last};
      }
      lane = end;
    }
    return count;
  }

  void pack_runs(const std::array<std::int64_t, 2>& tap, Range c, float* to,
                 std::int64_t to_stride) const {
    const Floats d;
    Run runs[kMaxRuns];
    const int count = find_runs(tap, runs);
    const float* x = x_ + c.begin * plane() + (count > 0 ? runs[0].offset : 0);
    if (count == 0) {
      for (auto i = c.begin; i < c.end; ++i, to += to_stride) hn::StoreU(hn::Zero(d), d, to);
    } else if (runs[0].last - runs[0].first == static_cast<std::int64_t>(hn::Lanes(d))) {
      for (auto i = c.begin; i < c.end; ++i, to += to_stride, x += plane()) {
        hn::StoreU(rounded<kRounding>(hn::LoadU(d, x)), d, to);
      }
    } else {
      const auto part0 = lanes_of(runs[0]);
      for (auto i = c.begin; i < c.end; ++i, to += to_stride, x += plane()) {
        auto value = part0.load(d, x);
        for (int run = 1; run < count; ++run) {
          const auto* other = x + (runs[run].offset - runs[0].offset);
          value = hn::Or(value, lanes_of(runs[run]).load(d, other));
        }
        hn::StoreU(rounded<kRounding>(value), d, to);
      }
    }
  }

  static HWY_INLINE LaneRange<Floats> lanes_of(const Run& run) {
    return {Floats(), run.first, run.last};
  }

  /// Position in a plane of x of lane 0.
  std::int64_t origin(const std::array<std::int64_t, 2>& tap) const {
    return (rows_[0] + tap[0]) * grid_.in[1] + columns_[0] + tap[1];
  }

  /// Start of two whole vectors, in the same row for every channel, with even (0) or odd (1) lanes
  /// equal to those of this vector. -1: nowhere.
  int parity(const std::array<std::int64_t, 2>& tap) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
    const auto y = rows_[0] + tap[0], column = columns_[0] + tap[1];
    if (valid_ != lanes || y < 0 || y >= grid_.in[0]) return -1;
    if (column >= 0 && column + 2 * lanes <= grid_.in[1]) return 0;
    return column >= 1 && column - 1 + 2 * lanes <= grid_.in[1] ? 1 : -1;
  }

  void pack_every_second(const std::array<std::int64_t, 2>& tap, Range c, float* to,
                         std::int64_t to_stride) const {
    const Floats d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const bool odd = parity(tap) == 1;
    const float* x = x_ + c.begin * plane() + origin(tap) - (odd ? 1 : 0);
    for (auto i = c.begin; i < c.end; ++i, to += to_stride, x += plane()) {
      const auto low = hn::LoadU(d, x), high = hn::LoadU(d, x + lanes);
      hn::StoreU(rounded<kRounding>(odd ? odd_lanes(d, low, high) : even_lanes(d, low, high)), d,
                 to);
    }
  }

  void gather(const std::array<std::int64_t, 2>& tap, Range c, float* to,
              std::int64_t to_stride) const {
    const Floats d;
    const hn::RebindToSigned<Floats> s;
    const auto height = hn::Set(s, static_cast<std::int32_t>(grid_.in[0]));
    const auto width = hn::Set(s, static_cast<std::int32_t>(grid_.in[1]));
    const auto minus_one = hn::Set(s, -1);
    const auto y = hn::Add(hn::Load(s, rows_), hn::Set(s, static_cast<std::int32_t>(tap[0])));
    const auto column =
        hn::Add(hn::Load(s, columns_), hn::Set(s, static_cast<std::int32_t>(tap[1])));
    const auto inside = hn::And(hn::And(hn::Gt(y, minus_one), hn::Gt(height, y)),
                                hn::And(hn::Gt(column, minus_one), hn::Gt(width, column)));
    const auto index = hn::IfThenElseZero(inside, hn::Add(hn::Mul(y, width), column));
    const auto mask = hn::RebindMask(d, inside);
    const float* x = x_ + c.begin * plane();
    for (auto i = c.begin; i < c.end; ++i, to += to_stride, x += plane()) {
      const auto value = hn::IfThenElseZero(mask, hn::GatherIndex(d, x, index));
      hn::StoreU(rounded<kRounding>(value), d, to);
    }
  }

  const PatchGrid& grid_;
  const float* x_;
  std::int64_t first_;
  std::int64_t valid_;
  bool contiguous_;
  bool every_second_ = false;  ///< with stride 2 along one row
  alignas(HWY_MAX_BYTES) std::int32_t rows_[kLanes];
  alignas(HWY_MAX_BYTES) std::int32_t columns_[kLanes];
};

/// Patches of a flat grid: rows of a plain matrix. Few rows at a time, so that each is read as the
/// stream that it is.
template <Rounding kRounding>
void flat_patches(const PatchGrid& grid, const float* x, Range k, Range n, float* panels) {
  constexpr std::int64_t few = 8;
  const auto width = std::int64_t{2} * static_cast<std::int64_t>(hn::Lanes(Floats()));
  const auto stride = grid.in[1];
  for (auto row = k.begin; row < k.end; row += few) {
    const auto rows = std::min(few, k.end - row);
    for (auto first = n.begin; first < n.end; first += width) {
      const auto columns = std::min(width, n.end - first);
      float* to = panels + (first - n.begin) * k.size() + (row - k.begin) * width;
      if (columns < width) std::fill_n(to, rows * width, 0.0F);
      copy<kRounding>({x + row * stride + first, stride, rows, columns}, to, width);
    }
  }
}

template <Rounding kRounding>
void patches(const PatchGrid& grid, const float* x, Range k, Range n, float* panels) {
  if (grid.is_flat()) return flat_patches<kRounding>(grid, x, k, n, panels);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const auto width = 2 * lanes;
  for (auto first = n.begin; first < round_up(n.end, width); first += lanes) {
    const auto valid = std::clamp<std::int64_t>(n.end - first, 0, lanes);
    const PatchVector<kRounding> vector(grid, x, first, valid);
    const auto panel = (first - n.begin) / width;
    float* to = panels + panel * k.size() * width + (first - n.begin) % width;
    for (auto at = k.begin; at < k.end;) {
      const auto tap = at / grid.channels;
      const Range c = {at % grid.channels,
                       std::min(grid.channels, at % grid.channels + k.end - at)};
      vector.pack(grid.taps[static_cast<std::size_t>(tap)], c, to + (at - k.begin) * width, width);
      at += c.size();
    }
  }
}

template <Rounding kRounding>
void patch_tile(const PatchGrid& grid, const float* x, Range n, float* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const PatchVector<kRounding> vector(grid, x, n.begin, n.size());
  for (const auto& tap : grid.taps) {
    vector.pack(tap, {0, grid.channels}, to, lanes);
    to += grid.channels * lanes;
  }
}

}  // namespace

void copy_plain(const MatrixView& from, float* to, std::int64_t to_stride) {
  copy<Rounding::None>(from, to, to_stride);
}
void copy_rounded(const MatrixView& from, float* to, std::int64_t to_stride) {
  copy<Rounding::ToBf16>(from, to, to_stride);
}
void transpose_plain(const MatrixView& from, float* to, std::int64_t to_stride) {
  transpose<Rounding::None>(from, to, to_stride);
}
void transpose_rounded(const MatrixView& from, float* to, std::int64_t to_stride) {
  transpose<Rounding::ToBf16>(from, to, to_stride);
}
void patches_plain(const PatchGrid& grid, const float* x, Range k, Range n, float* panels) {
  patches<Rounding::None>(grid, x, k, n, panels);
}
void patches_rounded(const PatchGrid& grid, const float* x, Range k, Range n, float* panels) {
  patches<Rounding::ToBf16>(grid, x, k, n, panels);
}
void patch_tile_plain(const PatchGrid& grid, const float* x, Range n, float* to) {
  patch_tile<Rounding::None>(grid, x, n, to);
}
void patch_tile_rounded(const PatchGrid& grid, const float* x, Range n, float* to) {
  patch_tile<Rounding::ToBf16>(grid, x, n, to);
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(copy_plain);
HWY_EXPORT(copy_rounded);
HWY_EXPORT(transpose_plain);
HWY_EXPORT(transpose_rounded);
HWY_EXPORT(patches_plain);
HWY_EXPORT(patches_rounded);
HWY_EXPORT(patch_tile_plain);
HWY_EXPORT(patch_tile_rounded);

void copy_matrix(const MatrixView& from, float* to, std::int64_t to_stride, Rounding rounding) {
  if (rounding == Rounding::None) return HWY_DYNAMIC_DISPATCH(copy_plain)(from, to, to_stride);
  HWY_DYNAMIC_DISPATCH(copy_rounded)(from, to, to_stride);
}

void transpose_matrix(const MatrixView& from, float* to, std::int64_t to_stride,
                      Rounding rounding) {
  if (rounding == Rounding::None) return HWY_DYNAMIC_DISPATCH(transpose_plain)(from, to, to_stride);
  HWY_DYNAMIC_DISPATCH(transpose_rounded)(from, to, to_stride);
}

void pack_patches(const PatchGrid& grid, const float* x, Range k, Range n, float* panels,
                  Rounding rounding) {
  if (rounding == Rounding::None) {
    return HWY_DYNAMIC_DISPATCH(patches_plain)(grid, x, k, n, panels);
  }
  HWY_DYNAMIC_DISPATCH(patches_rounded)(grid, x, k, n, panels);
}

void pack_patch_tile(const PatchGrid& grid, const float* x, Range n, float* to, Rounding rounding) {
  if (rounding == Rounding::None) return HWY_DYNAMIC_DISPATCH(patch_tile_plain)(grid, x, n, to);
  HWY_DYNAMIC_DISPATCH(patch_tile_rounded)(grid, x, n, to);
}

}  // namespace triptych::cpu
#endif
