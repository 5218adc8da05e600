// oneTBB's loop on one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tbb {

template <class Range, class Body>
void parallel_for(const Range& range, const Body& body) {
  body(range);
}

}  // namespace tbb
