// A range of indices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych {

/// Indices begin, ..., end - 1.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end - begin; }
  constexpr bool overlaps(const Range& other) const {
    return begin < other.end && other.begin < end;
  }
  bool operator==(const Range&) const = default;
};

}  // namespace triptych
