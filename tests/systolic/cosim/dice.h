// Draws of small numbers, the same on every platform.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace triptych::mmu {

class Dice {
 public:
  explicit Dice(std::mt19937& random) : random_(random) {}

  /// Both ends included.
  int between(int low, int high) {
    const auto range = static_cast<std::uint32_t>(high - low + 1);
    return low + static_cast<int>(random_() % range);
  }
  std::uint32_t up_to(std::uint32_t high) { return random_() % (high + 1); }
  /// 1 to high, small and full ones more often.
  std::uint32_t size(std::uint32_t high) {
    switch (random_() % 4) {
      case 0:
        return high;
      case 1:
        return 1 + up_to(std::min(high, 3U) - 1);
      default:
        return 1 + up_to(high - 1);
    }
  }
  bool one_in(std::uint32_t n) { return random_() % n == 0; }
  template <class T>
  T among(std::initializer_list<T> choices) {
    return *(choices.begin() + random_() % choices.size());
  }

 private:
  std::mt19937& random_;
};

}  // namespace triptych::mmu
