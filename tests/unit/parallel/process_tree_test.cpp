// Processes below this one, and their end.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/process_tree.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

namespace triptych::parallel {
namespace {

TEST(ProcessTree, ends_what_a_stopped_process_leaves_behind) {
  // Told to end, the shell starts another process and is gone.
  const char* const script = "trap 'sleep 100 & exit' TERM; echo; while :; do sleep 0.01; done";
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  if (fork() == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", script, nullptr);
    _exit(127);
  }
  close(ends[1]);
  char line = 0;
  ASSERT_EQ(read(ends[0], &line, 1), 1);  // the trap is set
  end_descendants();
  EXPECT_TRUE(descendants(getpid()).empty());
  // The pipe is at its end when nobody can write to it any more.
  pollfd reader = {.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&reader, 1, 5000), 1) << "the process that the shell started runs on";
  close(ends[0]);
}

}  // namespace
}  // namespace triptych::parallel
