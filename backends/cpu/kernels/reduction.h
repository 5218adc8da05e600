// The stated reduction tree (core/base/reduction.h) over neighbouring columns at once, and offsets
// of strided sequences. To be called inside simd().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/base/reduction.h"
#include "core/tensor/shape.h"

namespace triptych::cpu {

/// Columns that are folded side by side: 32 lanes of them fill half of a level 1 cache.
inline constexpr std::int64_t kColumns = 128;

/// Lines of at most so many contiguous elements are too short to fill vectors. They are transposed,
/// kShortBlock elements at a time, and then folded as columns.
inline constexpr std::int64_t kShortLine = 128;
inline constexpr std::int64_t kShortBlock = 4096;

/// True for `lines` contiguous lines of `count` elements that are folded as columns.
constexpr bool are_short(std::int64_t lines, std::int64_t count) {
  return lines >= 16 && count > 0 && count <= kShortLine;
}

/// Such lines that are handled at once.
constexpr std::int64_t short_lines_at_once(std::int64_t count) {
  return std::min(kColumns, kShortBlock / count);
}

/// One block of the tree for each of `width` <= kColumns columns: target[w] folds value(i, w) over
/// i < count <= kReductionBlock.
template <class Combine, class Value>
[[gnu::always_inline]] inline void fold_columns(std::int64_t count, std::int64_t width,
                                                const Value& value,
                                                typename Combine::Type* target) {
  constexpr Combine combine;
  typename Combine::Type lanes[kReductionLanes * kColumns];
  const auto used = std::min(count, kReductionLanes);
  for (std::int64_t i = 0; i < used; ++i) {
    auto* lane = lanes + i * kColumns;
#pragma GCC ivdep
    for (std::int64_t w = 0; w < width; ++w) lane[w] = combine(Combine::kStart, value(i, w));
  }
  for (std::int64_t i = used; i < count; ++i) {
    auto* lane = lanes + i % kReductionLanes * kColumns;
#pragma GCC ivdep
    for (std::int64_t w = 0; w < width; ++w) lane[w] = combine(lane[w], value(i, w));
  }
  for (auto half = kReductionLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half && l + half < used; ++l) {
      auto* lane = lanes + l * kColumns;
      const auto* partner = lane + half * kColumns;
#pragma GCC ivdep
      for (std::int64_t w = 0; w < width; ++w) lane[w] = combine(lane[w], partner[w]);
    }
  }
  for (std::int64_t w = 0; w < width; ++w) {
    target[w] = count == 0 ? Combine::kStart : one_nan(lanes[w]);
  }
}

/// fold_block for values that are long to compute: g++ vectorises their loop only when it stands
/// alone.
template <class Combine, class Value>
[[gnu::always_inline]] inline auto fold_computed_block(std::int64_t count, const Value& value,
                                                       Combine combine) {
  typename Combine::Type buffer[kReductionBlock];
  auto* values = buffer;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) values[i] = value(i);
  return fold_block(
      count, [=](auto i) { return values[i]; }, combine);
}

/// Row-major positions over axes with strides, the last axis fastest.
class StridedIndex {
 public:
  void append(std::int64_t size, std::int64_t stride) {
    sizes_.push_back(size);
    strides_.push_back(stride);
    count_ *= size;
  }
  std::int64_t count() const { return count_; }
  /// Size of the last axis.
  std::int64_t last() const { return sizes_.empty() ? 1 : sizes_.back(); }
  std::int64_t offset(std::int64_t position) const {
    std::int64_t offset = 0;
    for (auto axis = sizes_.size(); axis-- > 0;) {
      const auto index = axis == 0 ? position : position % sizes_[axis];
      position /= sizes_[axis];
      offset += index * strides_[axis];
    }
    return offset;
  }

 private:
  Dims sizes_, strides_;
  std::int64_t count_ = 1;
};

}  // namespace triptych::cpu
