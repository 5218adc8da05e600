// oneTBB's view of a page's processors: one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tbb::info {

inline int default_concurrency() { return 1; }

}  // namespace tbb::info
