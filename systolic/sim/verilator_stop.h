// Reaction of Verilator's run time to a failed assertion of the RTL, to $stop and to $finish, in
// place of printing and ending the program: throws std::runtime_error
// "mmu_queue.sv:36: Assertion failed in <path>.<assertion>". Output of $display goes to standard
// error, with its printable ASCII alone.
// Included by force before each source of that run time, here and by `triptych machine build`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#define VL_USER_STOP
#define VL_USER_FINISH
#define VL_PRINTF ::triptych::mmu::internal::keep_text

namespace triptych::mmu::internal {

/// The last reason for a stop that the model has given.
inline std::string& kept_text() {
  thread_local std::string text;
  return text;
}

/// Writes to standard error. "?" replaces bytes that could steer a terminal.
inline void put_plain(char* text) {
  for (char* c = text; *c != '\0'; ++c) {
    const auto code = static_cast<unsigned char>(*c);
    if ((code < ' ' && code != '\n' && code != '\t') || code >= 0x7F) *c = '?';
  }
  std::fputs(text, stderr);
}

[[gnu::format(printf, 1, 2)]] inline int keep_text(const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  const int size = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  if (std::string_view(text).find("%Error: ") != std::string_view::npos ||
      std::string_view(text).find("%Fatal: ") != std::string_view::npos)
    kept_text() = text;
  else
    put_plain(text);
  return size;
}

/// "[0] %Error: mmu_queue.sv:36: Assertion failed in a.b: 'assert' failed." without its ends. The
/// statement and its place, if it gives no reason.
inline std::string take_reason(std::string_view statement, const char* file, int line,
                               const char* path) {
  std::string reason;
  std::swap(reason, kept_text());
  if (reason.empty()) {
    std::string_view name(file);
    name.remove_prefix(name.rfind('/') + 1);
    reason.append(name).append(":").append(std::to_string(line)).append(": ");
    reason.append(statement);
    if (*path != '\0') reason.append(" in ").append(path);
    return reason;
  }
  for (const std::string_view begin : {"%Error: ", "%Fatal: "})
    if (const std::size_t at = reason.find(begin); at != std::string::npos)
      reason.erase(0, at + begin.size());
  if (const std::size_t at = reason.find(": 'assert' failed"); at != std::string::npos)
    reason.resize(at);
  while (reason.ends_with('\n')) reason.pop_back();
  return reason;
}

}  // namespace triptych::mmu::internal

/// Verilator's hooks, declared in verilated.h.
inline void vl_stop(const char* file, int line, const char* path) {
  throw std::runtime_error(triptych::mmu::internal::take_reason("$stop", file, line, path));
}
inline void vl_finish(const char* file, int line, const char* path) {
  throw std::runtime_error(triptych::mmu::internal::take_reason("$finish", file, line, path));
}
