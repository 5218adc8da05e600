// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/confined.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/mapped.h"
#include "core/io/file_descriptor.h"
#include "core/io/find_program.h"
#include "core/io/folder_tree.h"
#include "experiments/confine/file_rules.h"
#include "experiments/confine/keeper.h"
#include "experiments/confine/layers.h"
#include "experiments/confine/namespaces.h"
#include "experiments/confine/system_calls.h"
#include "parallel/launch/process_tree.h"

namespace triptych::confine {
namespace {

// Bytes of files that a confined command occupies, also where it hides them: below paths that are
// too long for a name, in directories that it closed, in files without a name that are still open.

constexpr std::int64_t kBlock = 4096;  // an empty file takes an inode
constexpr std::int64_t kAnyLimit = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t bytes_of(const struct stat& status) { return std::int64_t{status.st_blocks} * 512; }

/// False for a process at its end. Then only root may list its files.
bool has_memory(pid_t process) {
  std::int64_t pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", process)) >> pages;
  return pages > 0;
}

/// Files without a name, each counted once.
class Nameless {
 public:
  /// False when the process hides its files.
  bool add_open(pid_t process) {
    const auto path = fmt::format("/proc/{}/fd", process);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(path.c_str()), closedir);
    if (!stream) return (errno != EACCES && errno != EPERM) || !has_memory(process);
    while (const auto* entry = readdir(stream.get())) {
      struct stat status = {};
      if (fstatat(dirfd(stream.get()), entry->d_name, &status, 0) != 0) continue;
      if (S_ISREG(status.st_mode) && status.st_nlink == 0) add(status);
    }
    return true;
  }

  /// A mapping keeps a file without a descriptor. Root alone may look at the file itself. For
  /// others it counts as large as one may be.
  void add_mapped(pid_t process) {
    std::ifstream maps(fmt::format("/proc/{}/maps", process));
    for (std::string line; std::getline(maps, line);) {
      if (!line.ends_with(" (deleted)")) continue;
      std::istringstream words(line);
      std::string range, access, offset, device, inode;
      words >> range >> access >> offset >> device >> inode;
      struct stat status = {};
      if (stat(fmt::format("/proc/{}/map_files/{}", process, range).c_str(), &status) == 0)
        add(status);
      else if (errno != ENOENT && mapped_.insert(device.append(" ").append(inode)).second)
        bytes_ += static_cast<std::int64_t>(kLargestFile);
    }
  }

  std::int64_t bytes() const { return bytes_; }

 private:
  void add(const struct stat& status) {
    if (seen_.emplace(status.st_dev, status.st_ino).second) bytes_ += bytes_of(status);
  }

  std::set<std::pair<dev_t, ino_t>> seen_;
  std::set<std::string> mapped_;
  std::int64_t bytes_ = 0;
};

/// Bytes of all that lies in the folder, each entry counting as a block of the disk at least.
/// Larger than any limit when a directory in it cannot be read.
std::int64_t bytes_of_folder(const std::filesystem::path& folder) {
  std::int64_t bytes = 0;
  const bool complete = visit_tree(
      folder, [&](const TreeEntry& entry) { bytes += std::max(kBlock, bytes_of(entry.status)); });
  return complete ? bytes : kAnyLimit;
}

/// Bytes of the files without a name that these processes have open or mapped. Nothing when a
/// process hides its files. One that has ended hides none.
std::optional<std::int64_t> bytes_of_nameless_files(std::span<const pid_t> processes) {
  Nameless files;
  for (const auto process : processes) {
    if (!files.add_open(process)) return std::nullopt;
    files.add_mapped(process);
  }
  return files.bytes();
}

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

/// UCX, which MPI may load, would report on standard output that it may not open a socket.
std::vector<std::string> environment(const fs::path& folder) {
  std::vector<std::string> variables = {
      "LC_ALL=C", "HOME=" + folder.string(), "TMPDIR=" + folder.string(),
      "XDG_CACHE_HOME=" + (folder / ".cache").string(), "UCX_LOG_LEVEL=fatal"};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

/// Pointers to words that must live as long.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  auto result =
      mapped<char*>(words, [&](const auto& word) { return const_cast<char*>(word.c_str()); });
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
  /// `others`: processes below this one that are not the command's.
  Watch(Keeper& keeper, const Start& start, std::set<pid_t> others)
      : keeper_(keeper), start_(start), others_(std::move(others)) {}

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
    if (look % 10 == 0) elsewhere_.clear();
    for (const auto& process : parallel::descendants(getpid(), &elsewhere_)) {
      if (others_.contains(process.id)) continue;
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
  const std::set<pid_t> others_;
  std::set<std::string> elsewhere_;  ///< processes of the system that are not the command's
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
  std::set<pid_t> others;
  for (const auto& process : parallel::descendants(getpid())) others.insert(process.id);
  Keeper keeper(start);
  auto ending = Watch(keeper, start, std::move(others)).wait();
  if (const auto trouble = keeper.trouble())
    throw DeviceError(fmt::format("cannot start \"{}\" confined: {}: {}", command.front(),
                                  trouble->step, std::strerror(trouble->reason)));
  ending.output = content_of(output);
  ending.error = content_of(error);
  return ending;
}

}  // namespace triptych::confine
