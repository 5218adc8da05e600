// A command that is not trusted, run within limits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace triptych::confine {

/// Bounds on a command and all processes that it starts, together.
struct Limits {
  double seconds = 10;  ///< of processor time, and six times as many of wall-clock time
  /// Bytes of memory, and as many of files. Files count at any depth of the folder, and also those
  /// without a name that are open.
  std::int64_t bytes = std::int64_t{1} << 30;
};
/// Bytes of one file.
inline constexpr std::uint64_t kLargestFile = std::uint64_t{256} << 20;

enum class Cause : std::uint8_t { Exited, Signal, Time, Memory, Files };

struct Ending {
  Cause cause = Cause::Exited;
  int status = 0;             ///< of exit, or the signal
  std::string output, error;  ///< the first MiB of its two streams

  bool good() const { return cause == Cause::Exited && status == 0; }
  /// How it ended, in a few words: "was stopped: it used more than 10 s of processor time".
  std::string said(const Limits& limits) const;
};

/// Runs a command in `folder`, the only place that it can write to. The folder's parent directory
/// must contain nothing else. The command has all layers of layers() that are active here, an
/// environment of a few variables, no standard input and no other descriptor. Everything that it
/// started has ended before this returns, and ends when this process ends, however that happens.
/// From the first call on, other processes of the same user cannot inspect this one. The word
/// "triptych" as the command's first one means this program. A file in `folder` becomes executable.
/// Throws DeviceError when the command cannot be started or confined here, and Interrupted when a
/// signal asks this process to stop.
Ending run_confined(const std::vector<std::string>& command, const std::filesystem::path& folder,
                    const Limits& limits);

}  // namespace triptych::confine
