// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

namespace triptych::confine {

/// Runs `test` as whoever runs this and, where that is root, as an ordinary user, too.
inline void as_both(const std::function<void()>& test) {
  test();
  if (geteuid() != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    const bool changed = setgroups(0, nullptr) == 0 && setresgid(60001, 60001, 60001) == 0 &&
                         setresuid(60001, 60001, 60001) == 0;
    if (changed) prctl(PR_SET_DUMPABLE, 1);
    if (changed) test();
    std::fflush(nullptr);
    _exit(!changed || ::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "as an ordinary user";
}

}  // namespace triptych::confine
