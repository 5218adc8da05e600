// SPDX-License-Identifier: Apache-2.0
#include "core/base/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace triptych {
namespace {

constexpr std::string_view kStopping =
    "stopping after this step or tile; press Ctrl-C again to stop now\n";
constexpr std::string_view kClearLine = "\r\x1b[K";

std::atomic<bool> was_interrupted = false;  // set by the signal handler
std::atomic<bool> says_so = true;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
std::atomic<bool> draws_over = false;  // a bar of progress, on a terminal
std::atomic<bool> guarded = false;     // by an InterruptGuard
std::atomic<int> stop_pipe = -1;       // to the thread of the OrderlyStop
std::atomic<int> stop_owner = 0;       // its process: not a child before exec
std::atomic<bool> stopping = false;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads them");

void put(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

/// Lets the signal's default action follow when the handler has returned.
void end_by(int number) {
  handle(number, SIG_DFL);
  raise(number);
}

// Calls async-signal-safe functions alone.
void on_stop(int number) {
  const int error = errno;
  if (stop_pipe < 0 || stop_owner != getpid()) {
    end_by(number);
  } else if (!stopping.exchange(true)) {
    const char byte = static_cast<char>(number);
    [[maybe_unused]] const auto written = write(stop_pipe, &byte, 1);
  } else if (number == SIGINT || number == SIGTERM) {
    end_by(number);
  }
  errno = error;
}

/// Calls handle() for each stop signal. SIGHUP stays ignored for a process that was started so
/// (nohup).
void handle_stops(void (*handler)(int), std::array<struct sigaction, kStopSignals.size()>& old) {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &old[i]);
    const bool ignored = kStopSignals[i] == SIGHUP && old[i].sa_handler == SIG_IGN;
    if (!ignored) handle(kStopSignals[i], handler);
  }
}

void restore_stops(const std::array<struct sigaction, kStopSignals.size()>& old) {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i)
    sigaction(kStopSignals[i], &old[i], nullptr);
}

// Calls async-signal-safe functions alone.
void on_signal(int number) {
  const int error = errno;
  handle(SIGPIPE, SIG_IGN);  // the program that shows the output, such as tee, may have received
                             // the signal too
  leave_closed_outputs();
  if (!was_interrupted.exchange(true)) {
    if (says_so && draws_over) put(kClearLine);
    if (says_so) put(kStopping);
  } else if (number == SIGINT || number == SIGTERM) {
    on_stop(number);
  }
  errno = error;
}

}  // namespace

OrderlyStop::OrderlyStop(std::function<void()> clean_up)
    : clean_up_(std::move(clean_up)), owner_(getpid()) {
  if (pipe2(pipe_.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  thread_ = std::jthread([this] { serve(pipe_[0]); });
  stop_owner = owner_;
  stop_pipe = pipe_[1];
  handle_stops(on_stop, old_);
}

OrderlyStop::~OrderlyStop() {
  wait_if_stopping();
  restore_stops(old_);
  stop_pipe = -1;
  close(pipe_[1]);  // the thread reads the end
  thread_.join();
  close(pipe_[0]);
}

void OrderlyStop::serve(int from) {
  char number = 0;
  ssize_t count = 0;
  do {
    count = read(from, &number, 1);
  } while (count < 0 && errno == EINTR);
  if (count != 1) return;
  if (isatty(STDERR_FILENO) != 0) put(kClearLine);
  put("triptych: stopped by a signal\n");
  clean_up_();
  _exit(128 + SIGINT);
}

void OrderlyStop::wait_if_stopping() {
  while (stopping) pause();
}

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
  guarded = true;
  handle_stops(on_signal, old_);
}

InterruptGuard::~InterruptGuard() {
  guarded = false;
  restore_stops(old_);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
}

bool InterruptGuard::exists() { return guarded; }

const std::atomic<bool>& InterruptGuard::interrupted() const { return was_interrupted; }

}  // namespace triptych
