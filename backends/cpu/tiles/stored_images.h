// Images that are stored channels last (core/runtime/kernel.h), as kernels read and write them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/range.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

class StoredImages {
 public:
  /// `operand` must be stored channels last.
  explicit StoredImages(const Operand& operand);

  std::int64_t channels() const { return channels_; }
  std::int64_t element_bytes() const { return element_bytes_; }
  /// Positions from a row to the next, and elements from a position to the next.
  std::int64_t row_positions() const { return columns_ + 2 * format_.pad; }
  std::int64_t pitch() const { return format_.pitch; }
  /// The number of channel 0's element at a position, which may be one of the zeros around.
  std::int64_t element(std::int64_t image, std::int64_t row, std::int64_t column) const {
    const auto row_of_all = image * (rows_ + 2 * format_.pad) + row + format_.pad;
    return (row_of_all * row_positions() + column + format_.pad) * format_.pitch;
  }
  /// Writes the zeros beside these rows of an image, and above or below them where they are its
  /// first or last.
  void clear_around(std::byte* data, std::int64_t image, Range rows) const;

 private:
  void clear(std::byte* data, std::int64_t image, std::int64_t row, Range columns) const;

  ChannelsLast format_;
  std::int64_t channels_, rows_, columns_, element_bytes_;
};

}  // namespace triptych::cpu
