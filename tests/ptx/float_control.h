// The processor's rounding mode, and whether it flushes subnormal operands and results to zeros of
// their sign: the meaning of .ftz. A result is subnormal when it is after rounding, as on this
// processor. PTX does not say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych::ptx {

inline constexpr std::uint32_t kRoundToNearest = 0x1F80;  ///< MXCSR without exceptions
inline constexpr std::uint32_t kFlush = 0x8040;           ///< FTZ and DAZ
inline constexpr std::uint32_t kRoundDown = 0x2000, kRoundUp = 0x4000, kRoundToZero = 0x6000;

inline thread_local std::uint32_t float_control_now = 0;

inline void set_float_control(std::uint32_t control) {
  if (control == float_control_now) return;
  float_control_now = control;
  asm volatile("ldmxcsr %0" : : "m"(control) : "memory");
}

/// Restores the thread's previous mode.
class KeptFloatControl {
 public:
  KeptFloatControl() {
    asm volatile("stmxcsr %0" : "=m"(before_));
    float_control_now = before_;
  }
  ~KeptFloatControl() { set_float_control(before_); }
  KeptFloatControl(const KeptFloatControl&) = delete;
  KeptFloatControl& operator=(const KeptFloatControl&) = delete;

 private:
  std::uint32_t before_ = 0;
};

}  // namespace triptych::ptx
