// Ctrl-C as a wish, not an end: what is at work stops at its next good place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>

namespace triptych::cli {

/// While it lives, Ctrl-C and SIGTERM only set a flag; a second one ends the program at once. One
/// at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Set by the signal; of the process, and never cleared.
  const std::atomic<bool>& interrupted() const;

 private:
  struct sigaction old_interrupt_ = {};
  struct sigaction old_terminate_ = {};
};

}  // namespace triptych::cli
