// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/confined.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/file_descriptor.h"
#include "core/io/find_program.h"
#include "parallel/launch/process_tree.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;
using internal::FileDescriptor;
using Clock = std::chrono::steady_clock;

constexpr double kClockPerProcessor = 6;
constexpr auto kLook = std::chrono::milliseconds(10);
constexpr rlim_t kLargestFile = rlim_t{256} << 20;
constexpr std::size_t kKeptOutput = std::size_t{1} << 20;
/// Users that no system gives to anybody: systemd's range for services that have none.
constexpr uid_t kFirstUser = 61184, kUsers = 4335;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // shadow memory is more than any limit
#else
constexpr bool kSanitized = false;
#endif

/// Processes of each user that runs any, threads counted.
std::map<uid_t, std::int64_t> tasks_of_users() {
  std::map<uid_t, std::int64_t> tasks;
  for (const auto& process : parallel::descendants(0)) {
    struct stat status = {};
    if (stat(fmt::format("/proc/{}", process.id).c_str(), &status) == 0)
      tasks[status.st_uid] += process.threads;
  }
  return tasks;
}

/// Who the command runs as.
struct Account {
  std::optional<uid_t> user;  ///< nullopt: who runs this process
  rlim_t tasks = 0;           ///< it may have at most, with those that it has already
};

Account choose_account() {
  const auto tasks = tasks_of_users();
  const rlim_t allowed = 128 + 2 * std::thread::hardware_concurrency();
  if (geteuid() != 0) {
    const auto own = tasks.find(getuid());
    return {{}, allowed + static_cast<rlim_t>(own == tasks.end() ? 0 : own->second)};
  }
  uid_t user = kFirstUser + static_cast<uid_t>(getpid()) % kUsers;
  while (tasks.contains(user)) user = kFirstUser + (user - kFirstUser + 1) % kUsers;
  return {user, allowed};
}

void give_away(const fs::path& folder, uid_t user) {
  if (lchown(folder.c_str(), user, user) != 0)
    throw DeviceError(
        fmt::format("cannot give \"{}\" to the user {}, as whom a lab's code is to "
                    "run: {}; run it as an ordinary user",
                    folder.string(), user, std::strerror(errno)));
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (lchown(entry.path().c_str(), user, user) != 0)
      throw IoError(fmt::format("cannot give away \"{}\"", entry.path().string()));
  }
}

/// A file that has no name any more: what a stream of the command is written to.
FileDescriptor unnamed_file(const fs::path& folder) {
  auto name = (folder / "stream-XXXXXX").string();
  FileDescriptor file(mkostemp(name.data(), O_CLOEXEC | O_APPEND));
  if (file.get() < 0) throw IoError(fmt::format("cannot write to \"{}\"", folder.string()));
  unlink(name.c_str());
  return file;
}

std::string content_of(const FileDescriptor& file) {
  std::string text(kKeptOutput, '\0');
  const auto size = pread(file.get(), text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

std::vector<std::string> environment(const fs::path& folder) {
  std::vector<std::string> variables = {"LC_ALL=C", "HOME=" + folder.string(),
                                        "TMPDIR=" + folder.string(),
                                        "XDG_CACHE_HOME=" + (folder / ".cache").string()};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

/// Pointers to words that must live as long.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

constexpr const char* kThisProgram = "triptych";

std::string path_of(const std::string& name) {
  if (name == kThisProgram) return "/proc/self/exe";
  if (name.find('/') != name.npos) return name;
  const auto path = find_program(name);
  if (!path)
    throw DeviceError(
        fmt::format("this lab needs the program \"{}\", which is not on the PATH; "
                    "triptych doctor says what to install",
                    name));
  return path->string();
}

/// All that the child needs between fork and exec, where nothing may be allocated.
struct Start {
  const FileDescriptor &output, &error, &trouble;
  int own_program;  ///< -1: it is at `path`
  const char *path, *folder;
  const Account& account;
  const Limits& limits;
  char *const *arguments, *const *variables;
};

bool set_limit(int what, rlim_t value) {
  const rlimit limit = {value, value};
  return setrlimit(static_cast<__rlimit_resource>(what), &limit) == 0;
}

bool take_limits(const Start& start) {
  const auto bytes = static_cast<rlim_t>(start.limits.bytes);
  // Stacks of threads are counted, and never touched as a whole.
  const rlim_t data = bytes + (rlim_t{8} << 20) * std::thread::hardware_concurrency();
  return set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_FSIZE, kLargestFile) &&
         set_limit(RLIMIT_CPU, static_cast<rlim_t>(start.limits.seconds) + 1) &&
         (kSanitized || set_limit(RLIMIT_DATA, data)) &&
         set_limit(RLIMIT_NPROC, start.account.tasks);
}

bool become(const std::optional<uid_t>& user) {
  if (!user) return true;
  return setgroups(0, nullptr) == 0 && setresgid(*user, *user, *user) == 0 &&
         setresuid(*user, *user, *user) == 0;
}

/// The child: from fork to exec. Tells what went wrong through `trouble`.
[[noreturn]] void exec(const Start& start) {
  signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY);
  bool good = setsid() > 0 && chdir(start.folder) == 0 && dup2(nothing, STDIN_FILENO) == 0;
  good = good && dup2(start.output.get(), STDOUT_FILENO) >= 0 &&
         dup2(start.error.get(), STDERR_FILENO) >= 0;
  good = good && take_limits(start) && become(start.account.user);
  good =
      good && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  // This program may lie where its user alone can go: it is opened before.
  if (good && start.own_program >= 0) fexecve(start.own_program, start.arguments, start.variables);
  if (good) execve(start.path, start.arguments, start.variables);
  const int reason = errno;
  [[maybe_unused]] const auto written = write(start.trouble.get(), &reason, sizeof reason);
  _exit(127);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Processor time of the children that have ended.
double ended_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

std::int64_t bytes_of_files(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::end(it);
       it.increment(error)) {
    struct stat status = {};
    if (lstat(it->path().c_str(), &status) == 0) bytes += std::int64_t{status.st_blocks} * 512;
  }
  return bytes;
}

/// A command at work.
class Watch {
 public:
  Watch(pid_t child, const Account& account, const fs::path& folder, const Limits& limits)
      : child_(child), account_(account), folder_(folder), limits_(limits) {}

  /// Waits until the command has ended or exceeds a limit; then none of its processes is left.
  Ending wait() {
    const InterruptGuard guard(false);
    const auto begin = Clock::now();
    const double before = ended_seconds();
    Ending ending;
    for (int look = 0; !reap(ending); ++look) {
      const std::chrono::duration<double> clock = Clock::now() - begin;
      const auto excess = exceeded(clock.count(), before, look);
      if (excess || guard.interrupted()) {
        end_all();
        if (guard.interrupted()) throw Interrupted();
        ending.cause = *excess;
        return ending;
      }
      std::this_thread::sleep_for(kLook);
    }
    end_all();
    // The last bytes may have come between two looks.
    if (bytes_of_files(folder_) > limits_.bytes) ending.cause = Cause::Files;
    return ending;
  }

 private:
  /// True when the command itself has ended; `ending` then says how.
  bool reap(Ending& ending) const {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != child_) continue;
      const bool exited = WIFEXITED(status);
      ending.cause = exited                        ? Cause::Exited
                     : WTERMSIG(status) == SIGXFSZ ? Cause::Files
                     : WTERMSIG(status) == SIGXCPU ? Cause::Time
                                                   : Cause::Signal;
      ending.status = exited ? WEXITSTATUS(status) : WTERMSIG(status);
      return true;
    }
    return false;
  }

  std::optional<Cause> exceeded(double clock, double before, int look) const {
    double seconds = ended_seconds() - before;
    std::int64_t bytes = 0;
    for (const auto& process : parallel::descendants(getpid())) {
      seconds += process.processor_seconds;
      bytes += process.resident_bytes;
    }
    if (seconds > limits_.seconds || clock > kClockPerProcessor * limits_.seconds)
      return Cause::Time;
    if (bytes > limits_.bytes) return Cause::Memory;
    if (look % 10 == 9 && bytes_of_files(folder_) > limits_.bytes) return Cause::Files;
    return std::nullopt;
  }

  /// Sends SIGKILL to all processes of the command's user at once, so that none can start another
  /// meanwhile; where the user is ours, to all below this process.
  void kill_all() const {
    if (!account_.user) {
      const auto left = parallel::descendants(getpid());
      for (const int number : {SIGSTOP, SIGKILL})
        for (const auto& process : left) kill(process.id, number);
      return;
    }
    const pid_t killer = fork();
    if (killer == 0) {
      if (become(account_.user)) kill(-1, SIGKILL);
      _exit(0);
    }
    if (killer > 0) waitpid(killer, nullptr, 0);
  }

  void end_all() const {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (true) {
      kill_all();
      // A list of processes is not taken at one moment, and a chain of short ones may escape it.
      // This process adopts every orphan, so that without a child it has no descendant either.
      pid_t ended = 0;
      while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (ended < 0 && errno == ECHILD) return;
      if (Clock::now() > deadline)
        throw IoError("processes of a lab's code do not end, although they were killed");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  pid_t child_;
  const Account& account_;
  const fs::path& folder_;
  const Limits& limits_;
};

}  // namespace

std::string Ending::said(const Limits& limits) const {
  const auto gib = static_cast<double>(limits.bytes) / (1 << 30);
  switch (cause) {
    case Cause::Exited:
      return fmt::format("ended with status {}", status);
    case Cause::Signal:
      return fmt::format("was ended by signal {} ({})", status, strsignal(status));
    case Cause::Time:
      return fmt::format(
          "was stopped: it took more than {:g} s of processor time, or {:g} s by the clock; does a "
          "loop not end?",
          limits.seconds, kClockPerProcessor * limits.seconds);
    case Cause::Memory:
      return fmt::format("was stopped: it took more than {:g} GiB of memory", gib);
    case Cause::Files:
      return fmt::format(
          "was stopped: it wrote more than {:g} GiB of files, or one of more than {} MiB", gib,
          kLargestFile >> 20);
  }
  return {};
}

Ending run_confined(const std::vector<std::string>& command, const fs::path& folder,
                    const Limits& limits) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    throw DeviceError("this system does not let a program adopt orphans; labs need Linux 3.4");
  const auto path = path_of(command.front());
  const bool own = command.front() == kThisProgram;
  const FileDescriptor program(own ? open(path.c_str(), O_PATH | O_CLOEXEC) : -1);
  const auto account = choose_account();
  if (account.user) give_away(folder, *account.user);
  const auto output = unnamed_file(folder.parent_path());
  const auto error = unnamed_file(folder.parent_path());
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw DeviceError("cannot make a pipe");
  const FileDescriptor reading(ends[0]);
  FileDescriptor trouble(ends[1]);
  const auto variables = environment(folder);
  const auto arguments = pointers(command), variable_pointers = pointers(variables);
  const Start start = {.output = output,
                       .error = error,
                       .trouble = trouble,
                       .own_program = program.get(),
                       .path = path.c_str(),
                       .folder = folder.c_str(),
                       .account = account,
                       .limits = limits,
                       .arguments = arguments.data(),
                       .variables = variable_pointers.data()};
  const pid_t child = fork();
  if (child < 0) throw DeviceError("cannot start a process");
  if (child == 0) exec(start);
  trouble.reset();
  auto ending = Watch(child, account, folder, limits).wait();
  int reason = 0;
  if (read(reading.get(), &reason, sizeof reason) == sizeof reason)
    throw DeviceError(
        fmt::format("cannot start \"{}\" for a lab: {}", command.front(), std::strerror(reason)));
  ending.output = content_of(output);
  ending.error = content_of(error);
  return ending;
}

}  // namespace triptych::labs
