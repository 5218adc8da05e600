// Division of indices by a number that the host knows, as a multiplication.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/host_device.h"

namespace triptych::cuda {

/// Divides 0 <= n < 2^31 by 1 <= divisor < 2^31 (Granlund and Montgomery, "Division by invariant
/// integers using multiplication", 1994).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor)
      : divisor_(static_cast<std::uint32_t>(divisor)),
        shift_(divisor > 1 ? static_cast<std::uint32_t>(std::bit_width(divisor_ - 1)) - 1 : 0),
        multiplier_(divisor > 1
                        ? static_cast<std::uint32_t>(
                              ((std::uint64_t{1} << (32 + shift_)) + divisor_ - 1) / divisor_)
                        : 0) {}

  TRIPTYCH_HOST_DEVICE std::uint32_t value() const { return divisor_; }
  TRIPTYCH_HOST_DEVICE std::uint32_t divide(std::uint32_t n) const {
    if (divisor_ == 1) return n;
    return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> 32) >> shift_;
  }

 private:
  std::uint32_t divisor_ = 1, shift_ = 0, multiplier_ = 0;
};

/// Divides 0 <= n < 2^63 by 1 <= divisor < 2^63, small numbers as fast as Divisor does. A division
/// of 64 bits takes a GPU about a hundred instructions.
class WideDivisor {
 public:
  WideDivisor() = default;
  explicit WideDivisor(std::int64_t divisor)
      : divisor_(divisor), narrow_(divisor < kNarrow ? divisor : 1) {}

  TRIPTYCH_HOST_DEVICE std::int64_t value() const { return divisor_; }
  TRIPTYCH_HOST_DEVICE std::int64_t divide(std::int64_t n) const {
    if (n >= kNarrow) return n / divisor_;
    if (divisor_ >= kNarrow) return 0;
    return narrow_.divide(static_cast<std::uint32_t>(n));
  }

 private:
  static constexpr std::int64_t kNarrow = std::int64_t{1} << 31;
  std::int64_t divisor_ = 1;
  Divisor narrow_;
};

}  // namespace triptych::cuda
