// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace triptych {

/// A number for Device::submit: unique in the process, as devices record work under it.
inline int next_segment_id() {
  static std::atomic<int> next = 0;
  return next++;
}

}  // namespace triptych
