// The rule for subnormal numbers that every contract computes with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych {

/// Sets or clears flush-to-zero and denormals-are-zero of this thread while it lives, then restores
/// both.
class SubnormalMode {
 public:
  explicit SubnormalMode(bool flushes);
  ~SubnormalMode();
  SubnormalMode(const SubnormalMode&) = delete;
  SubnormalMode& operator=(const SubnormalMode&) = delete;

 private:
  std::uint64_t previous_;
};

class FlushSubnormals : public SubnormalMode {
 public:
  FlushSubnormals() : SubnormalMode(true) {}
};

}  // namespace triptych
