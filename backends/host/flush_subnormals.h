// The rule for subnormal numbers that every contract computes with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych {

/// Sets flush-to-zero and denormals-are-zero of this thread while it lives, then restores both.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t previous_;
};

}  // namespace triptych
