// SPDX-License-Identifier: Apache-2.0
#include "backends/host/flush_subnormals.h"

namespace triptych {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t kFlushBits = 0x8040;  // MXCSR: flush-to-zero, denormals-are-zero
std::uint64_t read_float_control() { return __builtin_ia32_stmxcsr(); }
void write_float_control(std::uint64_t bits) {
  __builtin_ia32_ldmxcsr(static_cast<unsigned>(bits));
}
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushBits = std::uint64_t{1} << 24;  // FPCR.FZ
std::uint64_t read_float_control() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void write_float_control(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#elif defined(__wasm__)
// There is no such mode: who computes there says when a subnormal occurs (experiments/web).
constexpr std::uint64_t kFlushBits = 0;
std::uint64_t read_float_control() { return 0; }
void write_float_control(std::uint64_t) {}
#else
#error "how does this processor flush subnormals?"
#endif

}  // namespace

SubnormalMode::SubnormalMode(bool flushes) : previous_(read_float_control()) {
  write_float_control(flushes ? previous_ | kFlushBits : previous_ & ~kFlushBits);
}

SubnormalMode::~SubnormalMode() { write_float_control(previous_); }

}  // namespace triptych
