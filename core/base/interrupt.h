// Signals as a wish, not an end: what is at work stops at its next good place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <exception>

namespace triptych {

/// Signals that ask for a checkpoint and an end: of a person (Ctrl-C), a system that shuts down, a
/// terminal that closes, and a cluster manager whose time is nearly up.
inline constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// End of work that somebody wished to stop. No Error: nothing is wrong.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// From now on drops what is written to an output that nobody can read any more: a terminal or a
/// program behind a pipe that has gone with the same signal. It would end this one before its work
/// is saved.
void leave_closed_outputs();

/// While it lives, the first of these signals sets a flag and says at once on standard error that
/// the work will stop; a second SIGINT or SIGTERM ends the program. One at a time.
class InterruptGuard {
 public:
  /// Another process speaks for one that is not to say anything.
  explicit InterruptGuard(bool speaks = true);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Set by the signal; of the process, and never cleared.
  const std::atomic<bool>& interrupted() const;

 private:
  std::array<struct sigaction, kStopSignals.size()> old_ = {};
  struct sigaction old_pipe_ = {};
};

}  // namespace triptych
