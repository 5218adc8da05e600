// Names that the standard library for WebAssembly leaves out, and that experiments/training asks
// for. Included before its sources.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>

namespace std {

/// With one thread nobody else holds it.
template <class Mutex>
struct scoped_lock {
  explicit scoped_lock(Mutex&) {}
};

inline from_chars_result from_chars(const char* begin, const char* end, double& value) {
  const string text(begin, end);
  char* after = nullptr;
  value = strtod(text.c_str(), &after);
  const auto read = after - text.c_str();
  return {begin + read, read == 0 ? errc::invalid_argument : errc()};
}

}  // namespace std
