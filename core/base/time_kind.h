// Kind of a number: every time, rate and energy that leaves the program carries it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace triptych {

enum class TimeKind {
  Measured,   ///< this run, on this machine
  Simulated,  ///< cycles of the RTL or the twin at a stated clock
  Modelled,   ///< a formula with stated inputs
  Recorded,   ///< an earlier measured run, with machine and date
};

/// "measured", "simulated", "modelled" or "recorded".
constexpr std::string_view to_string(TimeKind kind) {
  switch (kind) {
    case TimeKind::Measured:
      return "measured";
    case TimeKind::Simulated:
      return "simulated";
    case TimeKind::Modelled:
      return "modelled";
    case TimeKind::Recorded:
      return "recorded";
  }
  return "";
}

/// A duration and its kind.
struct Duration {
  double seconds = 0;
  TimeKind kind = TimeKind::Measured;
};

}  // namespace triptych
