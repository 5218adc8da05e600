// Processes below this one, and their end.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/process_tree.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <set>
#include <string>
#include <thread>

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

/// A process that waits to be killed.
pid_t start_waiting() {
  const pid_t child = fork();
  while (child == 0) pause();
  return child;
}

TEST(ProcessTree, what_is_elsewhere_is_not_read_again) {
  std::set<std::string> elsewhere;
  const auto found = [&] {
    std::set<pid_t> ids;
    for (const auto& process : descendants(getpid(), &elsewhere)) ids.insert(process.id);
    return ids;
  };
  const pid_t first = start_waiting();
  EXPECT_EQ(found(), std::set{first});
  EXPECT_TRUE(elsewhere.contains(std::to_string(getppid())));
  const pid_t second = start_waiting();
  EXPECT_EQ(found(), (std::set{first, second}));
  elsewhere.insert(std::to_string(second));
  EXPECT_EQ(found(), std::set{first});
  elsewhere.clear();
  EXPECT_EQ(found(), (std::set{first, second}));
  end_descendants();
  EXPECT_EQ(found(), std::set<pid_t>());
}

TEST(ProcessTree, a_process_has_its_threads_memory_and_time) {
  while (clock() < CLOCKS_PER_SEC / 10) {
  }
  const std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto found = descendants(getppid());
  const auto own = std::ranges::find(found, getpid(), &ProcessState::id);
  ASSERT_NE(own, found.end());
  EXPECT_EQ(own->parent, getppid());
  EXPECT_GE(own->threads, 2);
  EXPECT_LE(own->threads, 1000);
  EXPECT_GT(own->resident_bytes, 1 << 20);
  EXPECT_LT(own->resident_bytes, std::int64_t{1} << 33);
  EXPECT_GT(own->processor_seconds, 0.05);
  EXPECT_LT(own->processor_seconds, 3600);
}

}  // namespace
}  // namespace triptych::parallel
