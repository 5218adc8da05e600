// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/confined.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/file_descriptor.h"
#include "core/io/find_program.h"
#include "experiments/confine/file_rules.h"
#include "experiments/confine/file_usage.h"
#include "experiments/confine/keeper.h"
#include "experiments/confine/layers.h"
#include "experiments/confine/namespaces.h"
#include "experiments/confine/system_calls.h"
#include "parallel/launch/process_tree.h"

namespace triptych::confine {
namespace {

namespace fs = std::filesystem;
using internal::FileDescriptor;
using Clock = std::chrono::steady_clock;

constexpr double kClockPerProcessor = 6;
constexpr auto kLook = std::chrono::milliseconds(10);
constexpr std::size_t kKeptOutput = std::size_t{1} << 20;

/// A file without a name, for an output stream of the command.
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

/// A program that was built in the folder: the command itself may not change modes.
void make_executable(const fs::path& file) {
  const FileDescriptor opened(open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (opened.get() >= 0 && fstat(opened.get(), &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_nlink == 1)
    fchmod(opened.get(), S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
}

std::string path_of(const std::string& name, const fs::path& folder) {
  if (name == kThisProgram) return "/proc/self/exe";
  if (name.find('/') != name.npos) {
    if (!name.starts_with('/')) make_executable(folder / name);
    return name;
  }
  const auto path = find_program(name);
  if (!path)
    throw DeviceError(
        fmt::format("this needs the program \"{}\", which is not on the PATH; "
                    "triptych doctor says what to install",
                    name));
  return path->string();
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

/// A command at work.
class Watch {
 public:
  Watch(Keeper& keeper, const Start& start) : keeper_(keeper), start_(start) {}

  /// Waits until the command has ended or exceeds a limit. Then none of its processes is left.
  Ending wait() {
    const InterruptGuard guard(false);
    Ending ending;
    for (int look = 0; !keeper_.ended(); ++look) {
      const auto excess = exceeded(look);
      if (excess || guard.interrupted()) {
        keeper_.end();
        if (guard.interrupted()) throw Interrupted();
        ending.cause = *excess;
        return ending;
      }
      std::this_thread::sleep_for(kLook);
    }
    judge(ending);
    return ending;
  }

 private:
  void judge(Ending& ending) const {
    const int status = keeper_.status().value_or(SIGKILL);
    const bool exited = WIFEXITED(status);
    ending.cause = exited                        ? Cause::Exited
                   : WTERMSIG(status) == SIGXFSZ ? Cause::Files
                   : WTERMSIG(status) == SIGXCPU ? Cause::Time
                                                 : Cause::Signal;
    ending.status = exited ? WEXITSTATUS(status) : WTERMSIG(status);
    // The last bytes may have come between two looks.
    if (bytes_of_folder(start_.folder) > start_.limits.bytes) ending.cause = Cause::Files;
  }

  std::optional<Cause> exceeded(int look) {
    const std::chrono::duration<double> clock = Clock::now() - begin_;
    double seconds = ended_seconds() - before_;
    std::int64_t bytes = 0;
    std::vector<pid_t> processes;
    for (const auto& process : parallel::descendants(getpid())) {
      seconds += process.processor_seconds;
      // The keeper, and the first process of a namespace, are copies of this one.
      if (process.id == keeper_.id() || (start_.own_namespace && process.parent == keeper_.id()))
        continue;
      bytes += process.resident_bytes;
      processes.push_back(process.id);
    }
    const auto& limits = start_.limits;
    if (seconds > limits.seconds || clock.count() > kClockPerProcessor * limits.seconds)
      return Cause::Time;
    if (!keeper_.started()) return std::nullopt;
    if (bytes > limits.bytes) return Cause::Memory;
    if (look % 10 == 9 && too_many_files(processes)) return Cause::Files;
    return std::nullopt;
  }

  bool too_many_files(const std::vector<pid_t>& processes) const {
    const auto nameless = bytes_of_nameless_files(processes);
    return !nameless || bytes_of_folder(start_.folder) + *nameless > start_.limits.bytes;
  }

  Keeper& keeper_;
  const Start& start_;
  const Clock::time_point begin_ = Clock::now();
  const double before_ = ended_seconds();
};

/// Landlock's absence leaves files to the file modes, which mean nothing to root.
void require_some_layer(const Account& account) {
  if (geteuid() == 0 && !account.user && landlock_version() == 0)
    throw DeviceError(fmt::format("root cannot confine code of others here. {}", missing_layers()));
}

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
  prctl(PR_SET_DUMPABLE, 0);
  const auto account = choose_account();
  require_some_layer(account);
  const auto path = path_of(command.front(), folder);
  const bool own = command.front() == kThisProgram;
  const FileDescriptor program(own ? open(path.c_str(), O_PATH | O_CLOEXEC) : -1);
  const auto output = unnamed_file(folder.parent_path());
  const auto error = unnamed_file(folder.parent_path());
  if (account.user) give_away(folder, *account.user);
  const auto rules = landlock_version() > 0 ? file_rules(folder) : FileDescriptor();
  const auto variables = environment(folder);
  const auto arguments = pointers(command), variable_pointers = pointers(variables);
  const Start start = {
      .output = output.get(),
      .error = error.get(),
      .program = program.get(),
      .path = path.c_str(),
      .folder = folder.c_str(),
      .arguments = arguments.data(),
      .variables = variable_pointers.data(),
      .account = account,
      .limits = limits,
      .rules = rules,
      .filter = filters_system_calls() ? system_call_filter() : std::span<const sock_filter>(),
      .own_namespace = has_process_namespaces()};
  Keeper keeper(start);
  auto ending = Watch(keeper, start).wait();
  if (const auto trouble = keeper.trouble())
    throw DeviceError(fmt::format("cannot start \"{}\" confined: {}: {}", command.front(),
                                  trouble->step, std::strerror(trouble->reason)));
  ending.output = content_of(output);
  ending.error = content_of(error);
  return ending;
}

}  // namespace triptych::confine
