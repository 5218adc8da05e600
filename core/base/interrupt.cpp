// SPDX-License-Identifier: Apache-2.0
#include "core/base/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace triptych {
namespace {

constexpr std::string_view kStopping =
    "stopping after this step or tile; press Ctrl-C again to stop now\n";
constexpr std::string_view kClearLine = "\r\x1b[K";

std::atomic<bool> was_interrupted = false;  // set by the signal handler
std::atomic<bool> says_so = true;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
std::atomic<bool> draws_over = false;  // a bar of progress, on a terminal

void put(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

// Calls async-signal-safe functions alone.
void on_signal(int number) {
  const int error = errno;
  handle(SIGPIPE, SIG_IGN);  // what shows the output, tee for one, may have got the signal, too
  leave_closed_outputs();
  if (!was_interrupted.exchange(true)) {
    if (says_so && draws_over) put(kClearLine);
    if (says_so) put(kStopping);
  } else if (number == SIGINT || number == SIGTERM) {
    handle(number, SIG_DFL);
    raise(number);  // comes when this handler has returned
  }
  errno = error;
}

}  // namespace

void leave_closed_outputs() {
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    pollfd state = {.fd = output, .events = POLLOUT, .revents = 0};
    if (poll(&state, 1, 0) <= 0 || (state.revents & (POLLERR | POLLHUP)) == 0) continue;
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, output);
  }
}

InterruptGuard::InterruptGuard(bool speaks) {
  says_so = speaks;
  draws_over = isatty(STDERR_FILENO) != 0;
  sigaction(SIGPIPE, nullptr, &old_pipe_);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &old_[i]);
    // A process that was started to ignore a closing terminal (nohup) goes on doing so.
    const bool ignored = kStopSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN;
    if (!ignored) handle(kStopSignals[i], on_signal);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &old_[i], nullptr);
  }
  sigaction(SIGPIPE, &old_pipe_, nullptr);
}

const std::atomic<bool>& InterruptGuard::interrupted() const { return was_interrupted; }

}  // namespace triptych
