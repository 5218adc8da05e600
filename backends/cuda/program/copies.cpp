// Copies of types and ranges of bytes by kernels that clang compiled: it calls the C library's
// functions for them, which stand here instead. Accesses are counted in the largest pieces that the
// address and the size allow. Compiled into the library of a whole program's kernels.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/services.h"

namespace triptych::cuda::plain {

extern const Services* services __attribute__((visibility("hidden")));

namespace {

constexpr std::size_t kMostBytes = 16;

void touch_range(Touch how, const void* begin, std::size_t bytes, const void* pc) {
  if (services == nullptr) return;
  const auto* at = static_cast<const char*>(begin);
  while (bytes > 0) {
    const auto limits = reinterpret_cast<std::uintptr_t>(at) | bytes | kMostBytes;
    const auto piece = static_cast<std::size_t>(limits & (~limits + 1));
    services->touch(how, at, piece, pc);
    at += piece;
    bytes -= piece;
  }
}

// Loops that no compiler turns into calls of the functions below.
void move(void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<volatile char*>(to);
  const auto* source = static_cast<const volatile char*>(from);
  if (target <= source) {
    for (std::size_t i = 0; i < bytes; ++i) target[i] = source[i];
  } else {
    for (std::size_t i = bytes; i-- > 0;) target[i] = source[i];
  }
}

void* watched_move(void* to, const void* from, std::size_t bytes, const void* pc) {
  touch_range(Touch::Load, from, bytes, pc);
  touch_range(Touch::Store, to, bytes, pc);
  move(to, from, bytes);
  return to;
}

void* watched_fill(void* to, int value, std::size_t bytes, const void* pc) {
  touch_range(Touch::Store, to, bytes, pc);
  auto* target = static_cast<volatile char*>(to);
  for (std::size_t i = 0; i < bytes; ++i) target[i] = static_cast<char>(value);
  return to;
}

}  // namespace
}  // namespace triptych::cuda::plain

namespace plain = triptych::cuda::plain;

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the compiler's names.
extern "C" {
void* memcpy(void* to, const void* from, std::size_t bytes) {
  return plain::watched_move(to, from, bytes, __builtin_return_address(0));
}
void* memmove(void* to, const void* from, std::size_t bytes) {
  return plain::watched_move(to, from, bytes, __builtin_return_address(0));
}
void* memset(void* to, int value, std::size_t bytes) {
  return plain::watched_fill(to, value, bytes, __builtin_return_address(0));
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  return plain::watched_move(to, from, bytes, __builtin_return_address(0));
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  return plain::watched_move(to, from, bytes, __builtin_return_address(0));
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  return plain::watched_fill(to, value, bytes, __builtin_return_address(0));
}
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
