// Packs the operands of a matrix product into the order in which the microkernel reads them: rows
// of A as [k][rows of one tile], columns of B as panels [k][columns]. Packing may round to
// bfloat16, which is all that the bf16 contracts change. Int8 operands are packed in pairs of
// channels (pair_word): k counts pairs, ceil(channels / 2) for each tap, an odd last channel stands
// with a 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/gemm/microkernel.h"
#include "core/base/checked_math.h"
#include "core/base/contract.h"
#include "core/base/range.h"

namespace triptych::cpu {

enum class Rounding { None, ToBf16 };

/// Change that `contract` makes to operands before they are multiplied.
constexpr Rounding rounding_of(Contract contract) {
  return contract == Contract::F32 ? Rounding::None : Rounding::ToBf16;
}

/// A matrix in memory: element (i, j) at data + i * stride + j.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// to[i * to_stride + j] = from(i, j).
void copy_matrix(const MatrixView& from, float* to, std::int64_t to_stride, Rounding rounding);

/// to[j * to_stride + i] = from(i, j).
void transpose_matrix(const MatrixView& from, float* to, std::int64_t to_stride, Rounding rounding);

/// `m` rows cut into as few tiles as the microkernel allows, their heights as equal as possible.
class RowTiles {
 public:
  explicit RowTiles(std::int64_t m) : RowTiles(m, microkernels().max_rows) {}
  /// Tiles of at most `highest` rows.
  RowTiles(std::int64_t m, std::int64_t highest)
      : m_(m), count_(std::max<std::int64_t>(1, ceil_div(m, highest))) {}
  std::int64_t count() const { return count_; }
  std::int64_t begin(std::int64_t tile) const { return tile * m_ / count_; }
  std::int64_t height(std::int64_t tile) const { return begin(tile + 1) - begin(tile); }

 private:
  std::int64_t m_;
  std::int64_t count_;
};

/// Element (row, k) of A, for k = tap * channels + channel, lies at data + row * row_stride +
/// channel * channel_stride + tap_offsets[tap]. A plain matrix has one tap, or one channel.
template <class T>
struct BasicRowSource {
  static constexpr std::int64_t kOneTap[] = {0};

  const T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t channel_stride = 0;
  std::int64_t channels = 0;
  std::span<const std::int64_t> tap_offsets = kOneTap;

  std::int64_t k() const { return channels * static_cast<std::int64_t>(tap_offsets.size()); }
};
using RowSource = BasicRowSource<float>;
using PairSource = BasicRowSource<std::int8_t>;

/// Packs `m` rows: the tile that begins at row r starts at to + r * source.k(), and holds its rows'
/// elements for k = 0, then for k = 1, ... Runs in parallel.
void pack_rows(const RowSource& source, std::int64_t m, float* to, Rounding rounding);

/// The first `height` rows as one tile, by this thread alone.
void pack_tile(const RowSource& source, std::int64_t height, float* to, Rounding rounding);

/// The same in pairs: source.k() counts elements, the packed rows have pair_depth.
void pack_pair_rows(const PairSource& source, std::int64_t m, PairWord* to);

/// Words that hold `channels` at each of `taps`, packed.
constexpr std::int64_t pair_depth(std::int64_t channels, std::int64_t taps) {
  return ceil_div(channels, 2) * taps;
}

/// Words that hold `k` elements of bfloat16.
constexpr std::int64_t dot_depth(std::int64_t k) { return ceil_div(k, 2); }

/// Rounds and packs as pack_rows, in words of two k. The second of a last word may be +0.
void pack_dot_rows(const RowSource& source, std::int64_t m, DotWord* to);

/// Element (i, j) of `to` is the word, as bits, of elements (2 i, j) and (2 i + 1, j) of `from`, or
/// of `beyond` where there is none. Both have `rows` rows of `width`, and may begin at one place.
void join_rows(const float* from, std::int64_t rows, std::int64_t width, float beyond, float* to);

/// The patches of x that a convolution multiplies with its weights, as the columns of a matrix B
/// that is never stored. Column n is the output position (y, x) = (n / out[1], n % out[1]). Row k =
/// tap * channels + channel holds, for each of them, element (y * stride[0] + taps[tap][0], x *
/// stride[1] + taps[tap][1]) of that channel, or 0 where there is none.
struct PatchGrid {
  std::int64_t channels = 1;
  std::int64_t in[2] = {1, 1};
  std::int64_t out[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::vector<std::array<std::int64_t, 2>> taps;

  std::int64_t positions() const { return out[0] * out[1]; }
  /// Turns a grid with the positions of x itself into one long row, which packs faster.
  void flatten_pointwise();
  /// True of such a row.
  bool is_flat() const {
    return in[0] == 1 && out[0] == 1 && in[1] == out[1] && stride[1] == 1 && taps.size() == 1 &&
           taps[0] == std::array<std::int64_t, 2>{0, 0};
  }
  std::int64_t k() const { return channels * static_cast<std::int64_t>(taps.size()); }
  /// The part of K whose rows of taps reach the input for some of the positions `n`.
  Range live(Range n) const;
};

/// The same in pairs. `k` counts words.
void pack_pair_patches(const PatchGrid& grid, const std::int8_t* x, Range k, Range n,
                       PairWord* panels);

/// Packs rows `k` of columns `n` (from a multiple of the panel's width) into panels [k][columns],
/// one panel after the other. Columns beyond n.end become 0.
void pack_patches(const PatchGrid& grid, const float* x, Range k, Range n, float* panels,
                  Rounding rounding);

/// Packs columns `n`, as many as a vector holds at most, for all of K: [k][lanes of a vector].
void pack_patch_tile(const PatchGrid& grid, const float* x, Range n, float* to, Rounding rounding);

/// Rounds and packs as pack_patches, in words of two k. The second of a last word may be -0: its
/// product with the +0 of pack_dot_rows changes no sum. `k` counts words.
void pack_dot_patches(const PatchGrid& grid, const float* x, Range k, Range n, DotWord* panels);

/// The same as pack_patches for a plain matrix B, element (k, n) at data + k * stride + n, or n *
/// stride + k when `transposed`.
void pack_columns(const float* data, std::int64_t stride, bool transposed, Range k, Range n,
                  float* panels, Rounding rounding);

/// The same in words of two k, of `depth` elements of K. `k` counts words.
void pack_dot_columns(const float* data, std::int64_t stride, bool transposed, std::int64_t depth,
                      Range k, Range n, DotWord* panels);

/// Elements that pack_columns and pack_patches write for all `n` columns.
std::int64_t packed_columns(std::int64_t n, std::int64_t k);

}  // namespace triptych::cpu
