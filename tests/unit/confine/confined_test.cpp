// Commands that do not want to end, or want all there is: each ends within its limits, and nothing
// of it is left. As root, and as an ordinary user.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/confined.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/base/error.h"
#include "core/io/temporary_folder.h"
#include "tests/unit/confine/as_both.h"

namespace triptych::confine {
namespace {

constexpr Limits kShort = {.seconds = 1, .bytes = std::int64_t{64} << 20};

/// The ending of a shell's script, after which no process is left.
Ending run(const std::string& script, const Limits& limits = kShort) {
  const TemporaryFolder outer("confined");
  std::filesystem::create_directory(outer.path() / "work");
  auto ending = run_confined({"sh", "-c", script}, outer.path() / "work", limits);
  EXPECT_TRUE(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD) << script;
  return ending;
}

TEST(Confined, a_good_command_ends_by_itself) {
  as_both([] {
    const auto ending = run("echo here; echo there >&2; exit 3");
    EXPECT_EQ(ending.cause, Cause::Exited);
    EXPECT_EQ(ending.status, 3);
    EXPECT_EQ(ending.output, "here\n");
    EXPECT_EQ(ending.error, "there\n");
    EXPECT_EQ(ending.said(kShort), "ended with status 3");
    EXPECT_EQ(prctl(PR_GET_DUMPABLE), 0) << "others of this user could read this process";
  });
}

TEST(Confined, a_command_is_nobody_and_has_one_folder) {
  as_both([] {
    const auto ending = run("touch mine && echo $HOME/ $TMPDIR/ && test -w /etc; echo $? $(id -u)");
    EXPECT_NE(ending.output.find("/work/ "), std::string::npos) << ending.output;
    EXPECT_NE(ending.output.find("\n1 6"), std::string::npos) << ending.output;
  });
}

TEST(Confined, an_endless_loop_is_stopped) {
  as_both([] {
    const auto ending = run("while :; do :; done");
    EXPECT_EQ(ending.cause, Cause::Time) << ending.status;
    EXPECT_NE(ending.said(kShort).find("does a loop not end?"), std::string::npos);
  });
}

TEST(Confined, a_sleeper_is_stopped_by_the_clock) {
  const auto ending = run("sleep 1000");
  EXPECT_EQ(ending.cause, Cause::Time);
}

TEST(Confined, a_command_is_not_charged_for_the_one_before) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run("while :; do :; done").cause, Cause::Time);
    EXPECT_EQ(run("sleep 0.5").cause, Cause::Exited);
  }
}

TEST(Confined, a_fork_bomb_is_stopped) {
  as_both([] {
    const auto ending = run("f() { f | f & f; }; f");
    EXPECT_FALSE(ending.good()) << ending.said(kShort);  // its shell may give up first
  });
}

TEST(Confined, what_runs_in_sessions_of_its_own_ends_too) {
  as_both([] {
    const auto ending =
        run("setsid setsid sleep 1000 & setsid sh -c 'trap \"\" TERM HUP; sleep 999; sleep 999' & "
            "exit 0");
    EXPECT_EQ(ending.cause, Cause::Exited);
  });
}

TEST(Confined, a_chain_of_processes_that_each_start_the_next_and_end) {
  as_both([] {
    const auto ending = run("echo 'setsid sh ./chain & exit' > chain; sh ./chain; sleep 0.3");
    EXPECT_EQ(ending.cause, Cause::Exited);
  });
}

TEST(Confined, memory_without_end_is_stopped) {
  as_both([] {
    const auto ending = run("tail /dev/zero");
    EXPECT_FALSE(ending.good());
    EXPECT_NE(ending.cause, Cause::Time);
  });
}

TEST(Confined, memory_counts_over_all_processes) {
  const auto ending =
      run("for i in 1 2 3 4 5 6 7 8; do head -c 12M /dev/zero | tail | sleep 5 & done; sleep 5");
  EXPECT_EQ(ending.cause, Cause::Memory) << ending.said(kShort);
}

TEST(Confined, a_file_without_end_is_stopped) {
  as_both([] {
    const auto ending = run("cat /dev/zero > large");
    EXPECT_EQ(ending.cause, Cause::Files) << ending.said(kShort);
  });
}

TEST(Confined, many_files_are_stopped) {
  const auto ending =
      run("i=0; while :; do head -c 1M /dev/zero > file$i; i=$((i+1)); done", {20, kShort.bytes});
  EXPECT_EQ(ending.cause, Cause::Files) << ending.said(kShort);
}

TEST(Confined, output_without_end_is_cut) {
  const auto ending = run("yes");
  EXPECT_FALSE(ending.good());
  EXPECT_EQ(ending.output.size(), std::size_t{1} << 20);
}

TEST(Confined, a_program_that_is_not_there_is_named) {
  const TemporaryFolder outer("confined");
  std::filesystem::create_directory(outer.path() / "work");
  for (const char* name : {"no-such-program", "./nothing"})
    EXPECT_THROW(run_confined({name}, outer.path() / "work", kShort), DeviceError);
}

}  // namespace
}  // namespace triptych::confine
