// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace triptych::cli {
namespace {

constexpr std::string_view kStopping =
    "stopping after this step or tile; press Ctrl-C again to stop now\n";
constexpr std::string_view kClearLine = "\r\x1b[K";

std::atomic<bool> was_interrupted = false;  // set by the signal handler
std::atomic<bool> says_so = true;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
// Asked for before: one that has closed is no terminal any more.
std::array<std::atomic<bool>, 3> is_terminal = {};

bool put(int output, std::string_view text) { return write(output, text.data(), text.size()) >= 0; }

/// Drops what is written to terminals that have closed from now on: an error would keep the
/// checkpoint from being written.
void leave_closed_terminals() {
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    if (!is_terminal[static_cast<std::size_t>(output)] || put(output, kClearLine)) continue;
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, output);
  }
}

void end_by(int number) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(number, &action, nullptr);
  raise(number);  // comes when the handler has returned
}

// Calls async-signal-safe functions alone.
void on_signal(int number) {
  const int error = errno;
  leave_closed_terminals();
  if (!was_interrupted.exchange(true)) {
    if (says_so) put(STDERR_FILENO, kStopping);
  } else if (number == SIGINT || number == SIGTERM) {
    end_by(number);
  }
  errno = error;
}

}  // namespace

InterruptGuard::InterruptGuard(bool speaks) {
  says_so = speaks;
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    is_terminal[static_cast<std::size_t>(output)] = isatty(output) != 0;
  }
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &action, &old_[i]);
    // One that was started to ignore a closing terminal (nohup) goes on doing so.
    if (kStopSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) {
      sigaction(SIGHUP, &old_[i], nullptr);
    }
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &old_[i], nullptr);
  }
}

const std::atomic<bool>& InterruptGuard::interrupted() const { return was_interrupted; }

}  // namespace triptych::cli
