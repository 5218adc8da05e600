// Signals as requests: the running work stops at its next safe point.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <functional>
#include <thread>

namespace triptych {

/// Signals that ask for a checkpoint and an end: from a person (Ctrl-C), a system that shuts down,
/// a terminal that closes, and a cluster manager that announces the end of the time limit.
inline constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// End of work that somebody wished to stop. No Error: nothing is wrong.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// From now on drops writes to an output that nobody can read any more: a terminal or a program
/// behind a pipe that the same signal has ended. It would end this one before its work is saved.
void leave_closed_outputs();

/// Answers stop signals in a program while no InterruptGuard does. The first one calls `clean_up`
/// on a thread of its own, and then ends the process with 130. A SIGINT or SIGTERM during that ends
/// it at once. SIGHUP stays ignored where it was ignored at the start (nohup). One, in main.
class OrderlyStop {
 public:
  explicit OrderlyStop(std::function<void()> clean_up);
  ~OrderlyStop();
  OrderlyStop(const OrderlyStop&) = delete;
  OrderlyStop& operator=(const OrderlyStop&) = delete;

  /// Does not return after a signal. For the end of main and its errors: a child that ended by the
  /// same signal is no error.
  static void wait_if_stopping();

 private:
  void serve(int from);

  std::function<void()> clean_up_;
  int owner_ = 0;  ///< process
  std::array<int, 2> pipe_ = {-1, -1};
  std::array<struct sigaction, kStopSignals.size()> old_ = {};
  std::jthread thread_;
};

/// While it lives, the first of these signals sets a flag and says at once on standard error that
/// the work will stop. A second SIGINT or SIGTERM ends the program, with an OrderlyStop by that.
/// One at a time.
class InterruptGuard {
 public:
  /// Another process speaks for one that is not to say anything.
  explicit InterruptGuard(bool speaks = true);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Set by the signal, for the whole process, and never cleared.
  const std::atomic<bool>& interrupted() const;
  /// True while one lives.
  static bool exists();

 private:
  std::array<struct sigaction, kStopSignals.size()> old_ = {};
  struct sigaction old_pipe_ = {};
};

}  // namespace triptych
