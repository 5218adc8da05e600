// A list made from the elements of another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace triptych {

/// make(element) of each element, in order. `make` may be a member.
template <class T, class Range, class Make>
std::vector<T> mapped(Range&& range, Make make) {
  std::vector<T> list;
  if constexpr (requires { range.size(); }) list.reserve(range.size());
  for (auto&& one : range) list.emplace_back(std::invoke(make, one));
  return list;
}

}  // namespace triptych
