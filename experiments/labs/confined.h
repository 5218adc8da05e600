// A command that is not trusted, run within limits: what it may use, and how it ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace triptych::labs {

/// Bounds on a command and all processes that it starts, together.
struct Limits {
  double seconds = 10;  ///< of processor time; six times as many of the clock
  std::int64_t bytes = std::int64_t{1} << 30;  ///< of memory, and as many of files
};
inline constexpr Limits kCheckLimits = {};
/// Limits where RTL is compiled.
inline constexpr Limits kBuildLimits = {60, std::int64_t{4} << 30};

enum class Cause : std::uint8_t { Exited, Signal, Time, Memory, Files };

struct Ending {
  Cause cause = Cause::Exited;
  int status = 0;             ///< of exit, or the signal
  std::string output, error;  ///< the first MiB of what it wrote to its two streams

  bool good() const { return cause == Cause::Exited && status == 0; }
  /// How it ended, in a few words: "was stopped: it used more than 10 s of processor time".
  std::string said(const Limits& limits) const;
};

/// Runs a command in `folder`, the one place that is its own, with an environment of a few
/// variables, and ends everything that it started before this returns: processes in sessions of
/// their own, too, and those whose parents have ended. Where this process is root's, the command
/// runs as a user that nobody else is. The word "triptych" as its first one means this program.
/// Throws DeviceError when it cannot be started, or cannot be kept within limits here; Interrupted
/// when a signal asks this process to stop.
Ending run_confined(const std::vector<std::string>& command, const std::filesystem::path& folder,
                    const Limits& limits);

}  // namespace triptych::labs
