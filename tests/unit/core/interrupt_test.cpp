// SPDX-License-Identifier: Apache-2.0
#include "core/base/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

namespace triptych {
namespace {

/// End of a process that receives these signals in this order.
int handle(std::initializer_list<int> signals, bool speaks = true) {
  const InterruptGuard guard(speaks);
  for (const int number : signals) {
    raise(number);
    if (!guard.interrupted()) return 1;
  }
  return 0;
}

TEST(InterruptGuard, each_signal_is_noted_and_answered_at_once) {
  for (const int number : kStopSignals) {
    EXPECT_EXIT(std::_Exit(handle({number})), testing::ExitedWithCode(0),
                "^stopping after this step or tile; press Ctrl-C again to stop now\n$");
    EXPECT_EXIT(std::_Exit(handle({number}, false)), testing::ExitedWithCode(0), "^$");
  }
}

TEST(InterruptGuard, a_second_wish_of_a_person_ends_the_program) {
  EXPECT_EXIT(handle({SIGINT, SIGINT}), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(handle({SIGTERM, SIGINT}), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(handle({SIGUSR1, SIGTERM}), testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptGuard, a_closing_terminal_may_be_told_of_more_than_once) {
  EXPECT_EXIT(std::_Exit(handle({SIGHUP, SIGHUP, SIGUSR1, SIGUSR1})), testing::ExitedWithCode(0),
              "^stopping [^\n]*\n$");
}

/// The same with a standard error that nobody reads any more.
int handle_unread(std::initializer_list<int> signals) {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return 2;
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  close(ends[0]);
  const int code = handle(signals);
  return write(STDERR_FILENO, "x", 1) == 1 ? code : 3;
}

TEST(InterruptGuard, readers_that_have_gone_do_not_end_the_program) {
  EXPECT_EXIT(std::_Exit(handle_unread({SIGINT})), testing::ExitedWithCode(0), "");
}

TEST(InterruptGuard, signals_are_as_before_when_it_has_gone) {
  EXPECT_EXIT(
      {
        handle({});
        raise(SIGUSR1);
      },
      testing::KilledBySignal(SIGUSR1), "");
}

TEST(InterruptGuard, what_ignores_a_closing_terminal_goes_on_doing_so) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        std::_Exit(handle({SIGHUP}));
      },
      testing::ExitedWithCode(1), "^$");
}

/// A process with an orderly stop and a clean-up that writes a word.
void stop_by(std::initializer_list<int> signals, bool guarded) {
  const OrderlyStop stop(
      [] { [[maybe_unused]] const auto n = write(STDERR_FILENO, "clean\n", 6); });
  {
    std::optional<InterruptGuard> guard;
    if (guarded) guard.emplace(false);
    for (const int number : signals) raise(number);
  }
  OrderlyStop::wait_if_stopping();
  std::_Exit(7);
}

TEST(OrderlyStop, cleans_up_and_ends_the_program_for_each_signal) {
  for (const int number : kStopSignals)
    EXPECT_EXIT(stop_by({number}, false), testing::ExitedWithCode(130),
                "^triptych: stopped by a signal\nclean\n$");
}

TEST(OrderlyStop, leaves_the_first_signal_to_a_guard_and_takes_the_second) {
  EXPECT_EXIT(stop_by({SIGTERM}, true), testing::ExitedWithCode(7), "^$");
  EXPECT_EXIT(stop_by({SIGHUP, SIGHUP}, true), testing::ExitedWithCode(7), "^$");
  EXPECT_EXIT(stop_by({SIGTERM, SIGINT}, true), testing::ExitedWithCode(130), "clean\n$");
}

TEST(OrderlyStop, lets_a_signal_during_the_cleanup_end_the_program) {
  const auto hang = [] {
    const OrderlyStop stop([] {
      raise(SIGTERM);
      pause();
    });
    raise(SIGINT);
    OrderlyStop::wait_if_stopping();
  };
  EXPECT_EXIT(hang(), testing::KilledBySignal(SIGTERM), "");
}

TEST(OrderlyStop, is_not_asked_by_the_signals_of_a_child) {
  const auto child_is_stopped = [] {
    const OrderlyStop stop([] {});
    const pid_t child = fork();
    if (child == 0) {
      raise(SIGTERM);
      std::_Exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    OrderlyStop::wait_if_stopping();
    std::_Exit(WIFSIGNALED(status) ? 0 : 1);
  };
  EXPECT_EXIT(child_is_stopped(), testing::ExitedWithCode(0), "^$");
}

TEST(OrderlyStop, goes_on_ignoring_what_was_ignored_and_restores_what_was_before) {
  const auto ignore = [] {
    std::signal(SIGHUP, SIG_IGN);
    stop_by({SIGHUP}, false);
  };
  EXPECT_EXIT(ignore(), testing::ExitedWithCode(7), "^$");
  const auto afterwards = [] {
    {
      const OrderlyStop stop([] {});
    }
    raise(SIGTERM);
  };
  EXPECT_EXIT(afterwards(), testing::KilledBySignal(SIGTERM), "^$");
}

}  // namespace
}  // namespace triptych
