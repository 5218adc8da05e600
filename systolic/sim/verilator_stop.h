// Reaction of Verilator's run time to a failed assertion of the RTL, in place of printing and
// aborting: throws std::runtime_error "mmu_queue.sv:36: Assertion failed in <path>.<assertion>".
// Included by force before each source of that run time, here and by `triptych machine build`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#define VL_USER_STOP
#define VL_PRINTF ::triptych::mmu::internal::keep_text

namespace triptych::mmu::internal {

/// Messages of the model, until it stops.
inline std::string& kept_text() {
  thread_local std::string text;
  return text;
}

[[gnu::format(printf, 1, 2)]] inline int keep_text(const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  const int size = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  kept_text() = text;
  return size;
}

/// "[0] %Error: mmu_queue.sv:36: Assertion failed in a.b: 'assert' failed." without its ends.
inline std::string take_reason() {
  std::string reason;
  std::swap(reason, kept_text());
  const std::string begin = "%Error: ", end = ": 'assert' failed";
  if (const std::size_t at = reason.find(begin); at != std::string::npos)
    reason.erase(0, at + begin.size());
  if (const std::size_t at = reason.find(end); at != std::string::npos) reason.resize(at);
  return reason;
}

}  // namespace triptych::mmu::internal

/// Verilator's hook, declared in verilated.h.
inline void vl_stop(const char*, int, const char*) {
  throw std::runtime_error(triptych::mmu::internal::take_reason());
}
