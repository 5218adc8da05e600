// Attacks on the lecturer's files, processes and computer (attacks.cpp), as root and as an ordinary
// user: each succeeds without the confinement, and none with it.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "core/io/folder_tree.h"
#include "core/io/input_file.h"
#include "core/io/temporary_folder.h"
#include "experiments/confine/confined.h"
#include "experiments/confine/file_rules.h"
#include "experiments/confine/keeper.h"
#include "experiments/confine/layers.h"
#include "experiments/confine/system_calls.h"
#include "tests/unit/confine/as_both.h"

namespace triptych::confine {
namespace {

namespace fs = std::filesystem;
using internal::FileDescriptor;

constexpr Limits kSmall = {.seconds = 5, .bytes = std::int64_t{64} << 20};
constexpr Limits kFew = {.seconds = 20, .bytes = std::int64_t{16} << 20};

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms(0666));
}

/// The lecturer's home, which everybody may read and write as far as file modes go.
void make_world(const fs::path& world) {
  for (const char* folder : {"", "solutions", "other"}) {
    fs::create_directories(world / folder);
    fs::permissions(world / folder, fs::perms(0777));
  }
  write_text(world / "secret", "SECRET\n");
  write_text(world / "solutions/answers.json", "{\"answer\": 42}\n");
  write_text(world / "other/answers.json", "{}\n");
  for (int i = 1; i < 7; ++i) write_text(world / fmt::format("victim_{}", i), "kept\n");
  fs::copy_file("/bin/true", world / "program");
  fs::permissions(world / "program", fs::perms(0755));
  mkfifo((world / "pipe").c_str(), 0666);
  fs::permissions(world / "pipe", fs::perms(0666));
}

/// Each entry with its size, mode and times, as one text.
std::string state_of(const fs::path& world) {
  std::map<std::string, std::string> lines;
  visit_tree(world, [&](const TreeEntry& entry) {
    const auto& status = entry.status;
    lines[fmt::format("{} {}", status.st_ino, entry.name)] =
        fmt::format("{} {:o} {} {} {}.{}", status.st_size, status.st_mode, status.st_uid,
                    status.st_nlink, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  });
  std::string text;
  for (const auto& [name, line] : lines) text += fmt::format("{}: {}\n", name, line);
  return text;
}

/// A process of the lecturer's, with a secret in its environment.
class Victim {
 public:
  Victim() {
    id_ = fork();
    if (id_ != 0) return;
    setenv("TRIPTYCH_TEST_TOKEN", "secret", 1);
    execlp("sleep", "sleep", "600", nullptr);
    _exit(1);
  }
  ~Victim() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  bool alive() const { return waitpid(id_, nullptr, WNOHANG) == 0; }
  pid_t id() const { return id_; }

 private:
  pid_t id_ = -1;
};

/// A port where somebody listens.
class Listener {
 public:
  Listener() : end_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(end_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(end_, 8), 0);
    socklen_t size = sizeof address;
    getsockname(end_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(end_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }

 private:
  int end_;
  int port_ = 0;
};

/// A folder that a command has, within one of its own.
struct Place {
  TemporaryFolder outer{"attack"};
  fs::path folder = outer.path() / "work";

  Place() {
    // Read once, as the first user: the ordinary one may not reach a build below /root.
    static const std::string attacks = read_file(TRIPTYCH_ATTACKS);
    fs::create_directory(folder);
    std::ofstream(folder / "attacks") << attacks;
    fs::permissions(folder / "attacks", fs::perms(0755));
  }
};

/// Result of an attack, and who needs privileges for it: "success ", "denied user".
using Results = std::map<std::string, std::string>;

Results results_of(const std::string& output) {
  Results results;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (const auto colon = line.find(": "); colon != line.npos)
      results[line.substr(0, colon)] = line.substr(colon + 2);
  return results;
}

/// The same command without anything around it. It has a text as its input.
std::string run_bare(const std::vector<std::string>& command, const fs::path& folder) {
  std::string line = "cd " + folder.string() + " && exec 9>outside && ";
  for (const auto& word : command) line += word + " ";
  setenv("TRIPTYCH_TEST_TOKEN", "secret", 1);
  std::string output;
  write_text(folder / "input", "text\n");
  FILE* pipe = popen((line + "< input").c_str(), "r");
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  if (pipe != nullptr) pclose(pipe);
  return output;
}

TEST(Attacks, succeed_without_the_confinement_and_fail_with_it) {
  as_both([] {
    if (!missing_layers().empty()) GTEST_SKIP() << missing_layers();
    const TemporaryFolder outer("world");
    fs::permissions(outer.path(), fs::perms(0755));
    const Listener listener;
    const auto command = [&](const fs::path& world, pid_t victim) {
      return std::vector<std::string>{"./attacks", "quick", world.string(), std::to_string(victim),
                                      std::to_string(listener.port())};
    };
    make_world(outer.path() / "open");
    make_world(outer.path() / "closed");
    Results bare;
    {
      const Victim victim;
      const Place place;
      bare = results_of(run_bare(command(outer.path() / "open", victim.id()), place.folder));
    }
    ASSERT_GT(bare.size(), 80U);
    for (const auto& [name, result] : bare) {
      const bool may_fail = result.ends_with("any") || (result.ends_with("user") && geteuid() != 0);
      EXPECT_TRUE(may_fail || result.starts_with("success")) << name << ": " << result;
    }
    const Victim victim;
    const Place place;
    const auto before = state_of(outer.path() / "closed");
    const int inherited = open((outer.path() / "inherited").c_str(), O_WRONLY | O_CREAT, 0600);
    if (inherited != 9) dup2(inherited, 9);
    const auto ending =
        run_confined(command(outer.path() / "closed", victim.id()), place.folder, kSmall);
    close(9);
    EXPECT_TRUE(ending.good()) << ending.said(kSmall) << ending.error;
    const auto confined = results_of(ending.output);
    EXPECT_EQ(confined.size(), bare.size());
    for (const auto& [name, result] : confined)
      EXPECT_TRUE(result.starts_with("denied")) << name << ": " << result;
    EXPECT_EQ(state_of(outer.path() / "closed"), before);
    EXPECT_EQ(fs::file_size(outer.path() / "inherited"), 0U);
    EXPECT_TRUE(victim.alive());
  });
}

/// More than the limit of files, in places where a walk by paths does not see them.
TEST(Attacks, hidden_files_count_and_go_away) {
  as_both([] {
    for (const char* name : {"deep", "closed", "nameless", "mapped", "many"}) {
      fs::path folder;
      {
        const Place place;
        folder = place.folder;
        const auto ending = run_confined({"./attacks", name, "x", "wait"}, folder, kFew);
        EXPECT_EQ(ending.cause, Cause::Files) << name << " " << ending.said(kFew);
        EXPECT_TRUE(ending.output.empty() || ending.output == "done\n") << ending.output;
      }
      EXPECT_FALSE(fs::exists(folder)) << name;
      const Place bare;
      EXPECT_EQ(run_bare({"./attacks", name}, bare.folder), "done\n") << name;
    }
  });
}

/// Processes that have `word` among their arguments.
int processes_with(const std::string& word) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::string text;
    std::getline(file, text, '\n');
    if (text.find(word) != text.npos) ++count;
  }
  return count;
}

/// Waits until so many processes have the word. False after a minute.
bool wait_for(int count, const std::string& word) {
  for (int i = 0; i < 6000; ++i) {
    if (processes_with(word) == count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// A start in a place, without a process namespace even where the system allows one.
void stay_without_namespace(const Place& place, const std::string& token) {
  const auto account = choose_account();
  if (account.user) give_away(place.folder, *account.user);
  const auto rules = landlock_version() > 0 ? file_rules(place.folder) : FileDescriptor();
  std::string words[] = {"./attacks", "stay", token, "wait"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  char* variables[] = {nullptr};
  const FileDescriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  fs::permissions(place.folder / "attacks", fs::perms(0755));
  const Limits limits = {.seconds = 60};
  Keeper keeper({.output = nothing.get(),
                 .error = nothing.get(),
                 .path = words[0].c_str(),
                 .folder = place.folder.c_str(),
                 .arguments = arguments,
                 .variables = variables,
                 .account = account,
                 .limits = limits,
                 .rules = rules,
                 .filter = system_call_filter()});
  EXPECT_TRUE(wait_for(4, token));
  if (token.starts_with("kill")) raise(SIGKILL);
}

TEST(Attacks, nothing_stays_behind) {
  as_both([] {
    const auto token = fmt::format("token-a-{}-{}", getpid(), geteuid());
    const Place place;
    const auto ending = run_confined({"./attacks", "stay", token}, place.folder, kSmall);
    EXPECT_EQ(ending.output, "done\n");
    EXPECT_EQ(processes_with(token), 0);
  });
}

TEST(Attacks, nothing_outlives_a_killed_grader) {
  as_both([] {
    const auto token = fmt::format("token-b-{}-{}", getpid(), geteuid());
    const Place place;
    const pid_t grader = fork();
    if (grader == 0) {
      run_confined({"./attacks", "stay", token, "wait"}, place.folder, {.seconds = 60});
      _exit(0);
    }
    EXPECT_TRUE(wait_for(4, token));
    kill(grader, SIGKILL);
    waitpid(grader, nullptr, 0);
    EXPECT_TRUE(wait_for(0, token)) << processes_with(token);
  });
}

TEST(Attacks, a_keeper_ends_all_without_a_namespace) {
  as_both([] {
    for (const char* way : {"end", "kill"}) {
      const auto token = fmt::format("{}-token-{}-{}", way, getpid(), geteuid());
      const Place place;
      const pid_t grader = fork();
      if (grader == 0) {
        stay_without_namespace(place, token);
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      int status = 0;
      waitpid(grader, &status, 0);
      EXPECT_EQ(status, std::string(way) == "end" ? 0 : SIGKILL);
      EXPECT_TRUE(wait_for(0, token)) << processes_with(token);
    }
  });
}

/// A link to somebody else's file in the folder stays somebody else's.
TEST(Attacks, another_ones_file_is_not_given_away) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const TemporaryFolder outside("outside");
  write_text(outside.path() / "root's", "x");
  const Place place;
  fs::create_hard_link(outside.path() / "root's", place.folder / "linked");
  fs::create_symlink(outside.path() / "root's", place.folder / "soft");
  EXPECT_TRUE(run_confined({"true"}, place.folder, kSmall).good());
  struct stat status = {};
  ASSERT_EQ(stat((outside.path() / "root's").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U);
}

TEST(Layers, are_named_with_their_mechanisms) {
  as_both([] {
    EXPECT_EQ(missing_layers().empty(),
              std::ranges::all_of(layers(), [](const Layer& each) { return each.active(); }));
    for (const auto& layer : layers()) EXPECT_TRUE(layer.active() || !layer.missing.empty());
    EXPECT_NE(active_layers().find("processes by "), std::string::npos);
  });
}

}  // namespace
}  // namespace triptych::confine
