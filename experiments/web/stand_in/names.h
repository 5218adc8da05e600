// Names that the standard library for WebAssembly lacks and that experiments/training and
// systolic/isa use. Included before their sources.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace std {

/// With one thread the mutex is always free.
template <class Mutex>
struct scoped_lock {
  explicit scoped_lock(Mutex&) {}
};

template <class Real>
requires is_floating_point_v<Real> from_chars_result from_chars(const char* begin, const char* end,
                                                                Real& value) {
  const string text(begin, end);
  char* after = nullptr;
  value = is_same_v<Real, float> ? strtof(text.c_str(), &after) : strtod(text.c_str(), &after);
  const auto read = after - text.c_str();
  return {begin + read, read == 0 ? errc::invalid_argument : errc()};
}

}  // namespace std
