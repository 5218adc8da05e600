// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/occupied_bytes.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace triptych {

void RangeSet::add(ByteRange added) {
  const auto first = std::ranges::lower_bound(ranges_, added.begin, {}, &ByteRange::end);
  auto last = first;
  for (; last != ranges_.end() && last->begin <= added.end; ++last) {
    added.begin = std::min(added.begin, last->begin);
    added.end = std::max(added.end, last->end);
  }
  if (first == last) {
    ranges_.insert(first, added);
  } else {
    *first = added;
    ranges_.erase(first + 1, last);
  }
}

OccupiedBytes::OccupiedBytes(std::vector<std::size_t> times) : times_(std::move(times)) {
  std::ranges::sort(times_);
  times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  nodes_.resize(2 * std::bit_ceil(times_.size()));
}

OccupiedBytes::Interval OccupiedBytes::ranks(std::size_t first, std::size_t last) const {
  const auto rank = [&](std::size_t time) {
    const auto found = std::ranges::lower_bound(times_, time);
    TRIPTYCH_ASSERT(found != times_.end() && *found == time);
    return static_cast<std::size_t>(found - times_.begin());
  };
  return {rank(first), rank(last)};
}

template <class Visit>
void OccupiedBytes::walk(Interval wanted, const Visit& visit) {
  walk(0, {0, std::bit_ceil(times_.size()) - 1}, wanted, visit);
}

template <class Visit>
void OccupiedBytes::walk(std::size_t node, Interval own, Interval wanted, const Visit& visit) {
  if (own.last < wanted.first || wanted.last < own.first) return;
  const bool is_inside = wanted.first <= own.first && own.last <= wanted.last;
  visit(nodes_[node], is_inside);
  if (is_inside) return;
  const auto middle = own.first + (own.last - own.first) / 2;
  walk(2 * node + 1, {own.first, middle}, wanted, visit);
  walk(2 * node + 2, {middle + 1, own.last}, wanted, visit);
}

void OccupiedBytes::add(std::size_t first, std::size_t last, ByteRange bytes) {
  walk(ranks(first, last), [&](Node& node, bool is_inside) {
    node.sometime.add(bytes);
    if (is_inside) node.throughout.add(bytes);
  });
}

const std::vector<ByteRange>& OccupiedBytes::during(std::size_t first, std::size_t last) {
  found_.clear();
  walk(ranks(first, last), [&](const Node& node, bool is_inside) {
    const auto& ranges = (is_inside ? node.sometime : node.throughout).ranges();
    found_.insert(found_.end(), ranges.begin(), ranges.end());
  });
  std::ranges::sort(found_, {}, &ByteRange::begin);
  return found_;
}

}  // namespace triptych
