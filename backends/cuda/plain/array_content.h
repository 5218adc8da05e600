// The parts of an array in global memory that hold numbers, from one launch to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <optional>
#include <vector>

namespace triptych::cuda::plain {

/// Threads may call its functions at the same time.
class ArrayContent {
 public:
  /// Nothing is written yet. Parts are told apart in units of `unit` bytes.
  ArrayContent(std::size_t bytes, std::size_t unit)
      : unit_(unit),
        shift_(std::has_single_bit(unit) ? std::countr_zero(unit) : kNoShift),
        written_((bytes + unit - 1) / unit) {}

  void write(std::size_t offset, std::size_t bytes) {
    if (is_whole_) return;
    const auto end = end_of(offset, bytes);
    for (auto i = unit_of(offset); i < end; ++i) written_[i].store(true, std::memory_order_relaxed);
  }
  /// All is written from now on. While no thread calls the other functions.
  void write_all() { is_whole_ = true; }
  /// The first byte from `offset` on that nothing has written. nullopt: all are written.
  std::optional<std::size_t> undefined_in(std::size_t offset, std::size_t bytes) const {
    if (is_whole_) return std::nullopt;
    const auto end = end_of(offset, bytes);
    for (auto i = unit_of(offset); i < end; ++i) {
      if (!written_[i].load(std::memory_order_relaxed)) return std::max(offset, i * unit_);
    }
    return std::nullopt;
  }
  /// True when some byte of the range is written.
  bool any_written(std::size_t offset, std::size_t bytes) const {
    if (is_whole_) return true;
    const auto end = end_of(offset, bytes);
    for (auto i = unit_of(offset); i < end; ++i) {
      if (written_[i].load(std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  static constexpr int kNoShift = -1;

  /// The number of the unit with this byte.
  std::size_t unit_of(std::size_t offset) const {
    return shift_ == kNoShift ? offset / unit_ : offset >> shift_;
  }
  std::size_t end_of(std::size_t offset, std::size_t bytes) const {
    return std::min(unit_of(offset + bytes + unit_ - 1), written_.size());
  }

  std::size_t unit_;
  bool is_whole_ = false;
  int shift_;  ///< the logarithm of a unit that is a power of two
  std::vector<std::atomic<bool>> written_;
};

}  // namespace triptych::cuda::plain
