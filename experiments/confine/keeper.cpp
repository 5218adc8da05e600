// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/keeper.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "experiments/confine/file_rules.h"
#include "experiments/confine/namespaces.h"
#include "experiments/confine/sanitizer.h"
#include "experiments/confine/system_calls.h"
#include "parallel/launch/process_tree.h"

namespace triptych::confine {
namespace {

using internal::FileDescriptor;
using Clock = std::chrono::steady_clock;

constexpr int kLookMs = 10;

struct Pipe {
  FileDescriptor reading, writing;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw DeviceError("cannot make a pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

template <class Value>
void send(const FileDescriptor& pipe, const Value& value) {
  [[maybe_unused]] const auto written = write(pipe.get(), &value, sizeof value);
}

/// A limit that was lower before stays.
bool set_limit(int resource, rlim_t value) {
  const auto kind = static_cast<__rlimit_resource>(resource);
  rlimit limit = {};
  if (getrlimit(kind, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max = std::min(limit.rlim_max, value);
  return setrlimit(kind, &limit) == 0;
}

bool take_limits(const Start& start) {
  constexpr rlim_t open_files = 1024;
  const auto bytes = static_cast<rlim_t>(start.limits.bytes);
  // Stacks of threads are counted, and never touched as a whole.
  const rlim_t data = bytes + (rlim_t{8} << 20) * std::thread::hardware_concurrency();
  return set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_FSIZE, kLargestFile) &&
         set_limit(RLIMIT_CPU, static_cast<rlim_t>(start.limits.seconds) + 1) &&
         (kSanitized || set_limit(RLIMIT_DATA, data)) &&
         set_limit(RLIMIT_NPROC, start.account.tasks) && set_limit(RLIMIT_NOFILE, open_files) &&
         set_limit(RLIMIT_MSGQUEUE, 0);
}

/// Descriptors from 3 on close with exec. Those that are still needed before work until then.
bool close_others() {
#ifdef CLOSE_RANGE_CLOEXEC
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
#endif
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  for (int each = 3; each < static_cast<int>(std::min<rlim_t>(limit.rlim_max, 1 << 20)); ++each)
    fcntl(each, F_SETFD, FD_CLOEXEC);
  return true;
}

/// A namespace's user has capabilities in it, and root may have kept some.
bool drop_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none = {};
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return syscall(SYS_capset, &header, none.data()) == 0;
}

bool take_streams(const Start& start) {
  const int nothing = open("/dev/null", O_RDONLY);
  return nothing >= 0 && dup2(nothing, STDIN_FILENO) == 0 &&
         dup2(start.output, STDOUT_FILENO) >= 0 && dup2(start.error, STDERR_FILENO) >= 0;
}

void take_default_signals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The command, from fork to exec. The order matters: a step must not block later ones.
[[noreturn]] void exec(const Start& start, const FileDescriptor& starts) {
  const auto require = [&](bool good, const char* step) {
    if (good) return;
    send(starts, Trouble{step, errno});
    _exit(127);
  };
  take_default_signals();
  umask(S_IWGRP | S_IWOTH);
  require(setsid() > 0, "a session");
  require(chdir(start.folder) == 0, "its folder");
  require(take_streams(start), "its streams");
  require(take_limits(start), "its limits");
  require(become(start.account.user), "its user");
  require(drop_capabilities(), "its capabilities");
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  require(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "its end with its parent");
  require(close_others(), "its descriptors");
  require(start.rules.get() < 0 || apply_file_rules(start.rules), "Landlock");
  require(start.filter.empty() || apply_system_call_filter(start.filter), "seccomp");
  // This program may lie where its user alone can go: it was opened before.
  if (start.program >= 0) fexecve(start.program, start.arguments, start.variables);
  if (start.program < 0) execve(start.path, start.arguments, start.variables);
  require(false, "its program");
  _exit(127);
}

/// Starts the command as a child of this process, which must not keep the pipe `starts` open.
pid_t start_command(const Start& start, FileDescriptor& starts) {
  const pid_t command = fork();
  if (command == 0) exec(start, starts);
  if (command < 0) send(starts, Trouble{"a process", errno});
  starts.reset();
  return command;
}

/// Reaps the children that have ended. True when `command` is among it. Its status then is news.
bool reap(pid_t command, const FileDescriptor& news) {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != command) continue;
    send(news, status);
    return true;
  }
  return false;
}

/// The first process of a namespace: adopts the orphans. When it ends, the kernel ends the others.
[[noreturn]] void be_first(const Start& start, FileDescriptor& starts, const FileDescriptor& news) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t command = start_command(start, starts);
  int status = 0;
  for (pid_t ended = 0; command > 0 && (ended = waitpid(-1, &status, 0)) != command;)
    if (ended < 0 && errno != EINTR) _exit(1);
  if (command > 0) send(news, status);
  _exit(0);
}

/// Sends SIGKILL to all processes of the command's user at once, so that none can start another
/// meanwhile. Where the user is ours, to all below this process.
void kill_all(const Account& account) {
  if (!account.user) {
    const auto left = parallel::descendants(getpid());
    for (const int number : {SIGSTOP, SIGKILL})
      for (const auto& process : left) kill(process.id, number);
    return;
  }
  const pid_t killer = fork();
  if (killer == 0) {
    if (become(account.user)) kill(-1, SIGKILL);
    _exit(0);
  }
  if (killer > 0) waitpid(killer, nullptr, 0);
}

/// A list of processes is not taken at one moment, and a chain of short ones may escape it. The
/// keeper adopts every orphan, so that without a child it has no descendant either.
void end_below(const Start& start) {
  while (true) {
    if (!start.own_namespace) kill_all(start.account);
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    poll(nullptr, 0, 1);
  }
}

/// True while the process at the other end of `life` is there.
bool wait_a_moment(const FileDescriptor& life, int child) {
  std::array<pollfd, 2> events = {{{life.get(), POLLIN, 0}, {child, POLLIN, 0}}};
  poll(events.data(), child >= 0 ? 2 : 1, kLookMs);
  return events[0].revents == 0;
}

[[noreturn]] void keep(const Start& start, FileDescriptor& starts, const FileDescriptor& news,
                       const FileDescriptor& life) {
  setsid();  // no key of a terminal reaches it
  take_default_signals();
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (start.own_namespace && !enter_process_namespace(start.account.user.has_value())) {
    send(starts, Trouble{"a process namespace", errno});
    _exit(1);
  }
  const pid_t child = start.own_namespace ? fork() : start_command(start, starts);
  if (start.own_namespace && child == 0) be_first(start, starts, news);
  starts.reset();
  const FileDescriptor watched(child > 0 ? static_cast<int>(syscall(SYS_pidfd_open, child, 0U))
                                         : -1);
  const FileDescriptor unused;
  while (child > 0 && !reap(child, start.own_namespace ? unused : news) &&
         wait_a_moment(life, watched.get())) {
  }
  if (start.own_namespace && child > 0) kill(child, SIGKILL);
  end_below(start);
  _exit(0);
}

}  // namespace

Keeper::Keeper(const Start& start) {
  auto life = make_pipe(), news = make_pipe(), starts = make_pipe();
  id_ = fork();
  if (id_ < 0) throw DeviceError("cannot start a process");
  if (id_ == 0) {
    life.writing.reset();
    keep(start, starts.writing, news.writing, life.reading);
  }
  running_ = true;
  life_ = std::move(life.writing);
  news_ = std::move(news.reading);
  starts_ = std::move(starts.reading);
}

Keeper::~Keeper() {
  if (!running_) return;
  life_.reset();
  waitpid(id_, nullptr, 0);
}

bool Keeper::started() {
  if (starts_.get() < 0) return !trouble_;
  pollfd event = {starts_.get(), POLLIN, 0};
  if (poll(&event, 1, 0) <= 0) return false;
  Trouble trouble;
  if (read(starts_.get(), &trouble, sizeof trouble) == sizeof trouble) trouble_ = trouble;
  starts_.reset();
  return !trouble_;
}

bool Keeper::ended() {
  if (running_ && waitpid(id_, nullptr, WNOHANG) == id_) running_ = false;
  return !running_;
}

void Keeper::end() {
  life_.reset();
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (!ended()) {
    if (Clock::now() > deadline)
      throw IoError("processes of a confined command do not end, although they were killed");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::optional<Trouble> Keeper::trouble() {
  started();
  return trouble_;
}

std::optional<int> Keeper::status() const {
  int status = 0;
  pollfd event = {news_.get(), POLLIN, 0};
  if (poll(&event, 1, 0) <= 0 || read(news_.get(), &status, sizeof status) != sizeof status)
    return std::nullopt;
  return status;
}

}  // namespace triptych::confine
