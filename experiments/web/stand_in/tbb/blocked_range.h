// oneTBB's range, which one thread never cuts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tbb {

template <class Value>
class blocked_range {
 public:
  blocked_range(Value begin, Value end, std::size_t) : begin_(begin), end_(end) {}
  Value begin() const { return begin_; }
  Value end() const { return end_; }

 private:
  Value begin_, end_;
};

}  // namespace tbb
