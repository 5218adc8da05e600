// oneTBB's limits, which one thread keeps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tbb {

struct global_control {
  enum parameter { max_allowed_parallelism };
  global_control(parameter, std::size_t) {}
};

}  // namespace tbb
