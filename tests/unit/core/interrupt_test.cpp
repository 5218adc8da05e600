// SPDX-License-Identifier: Apache-2.0
#include "core/base/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace triptych {
namespace {

/// End of a process whose signals come in this order.
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

}  // namespace
}  // namespace triptych
