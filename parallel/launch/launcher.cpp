// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "core/base/terminal.h"
#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "parallel/launch/last_words.h"
#include "parallel/launch/process_tree.h"

namespace triptych::parallel {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWordsVariable = "TRIPTYCH_LAST_WORDS";
constexpr const char* kRankVariable = "OMPI_COMM_WORLD_RANK";

std::atomic<int> signal_received = 0;   // the last one
std::atomic<int> signals_received = 0;  // since the launcher has looked

/// While it lives, signals that ask for an end are only noted.
class SignalNotes {
 public:
  SignalNotes() {
    signals_received = 0;
    struct sigaction action = {};
    action.sa_handler = [](int number) {
      signal_received = number;
      ++signals_received;
    };
    for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
      sigaction(kStopSignals[i], nullptr, &old_[i]);
      // A launcher that was started to ignore a closing terminal (nohup) keeps doing so.
      const bool ignored = kStopSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN;
      if (!ignored) sigaction(kStopSignals[i], &action, nullptr);
    }
  }
  ~SignalNotes() {
    for (std::size_t i = 0; i < kStopSignals.size(); ++i)
      sigaction(kStopSignals[i], &old_[i], nullptr);
  }
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;

 private:
  std::array<struct sigaction, kStopSignals.size()> old_ = {};
};

/// A captured output is no terminal.
std::string terminals_of(const Launch& request) {
  auto streams = terminal_streams();
  if (request.capture) std::erase(streams, '1');
  return streams;
}

std::vector<std::string> command_line(const fs::path& mpirun, const Launch& request,
                                      const fs::path& words) {
  std::vector<std::string> line = {mpirun.string(),
                                   "--oversubscribe",
                                   "--bind-to",
                                   "none",
                                   "-np",
                                   std::to_string(request.ranks),
                                   "-x",
                                   fmt::format("{}={}", kWordsVariable, words.string()),
                                   "-x",
                                   fmt::format("{}={}", kTerminalsVariable, terminals_of(request))};
  if (geteuid() == 0) line.emplace_back("--allow-run-as-root");
  line.push_back(fs::read_symlink("/proc/self/exe").string());
  line.insert(line.end(), request.arguments.begin(), request.arguments.end());
  return line;
}

pid_t start(const std::vector<std::string>& line, int output) {
  std::vector<char*> arguments;
  arguments.reserve(line.size() + 1);
  for (const auto& argument : line) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw IoError("cannot start a process");
  if (child > 0) return child;
  setpgid(0, 0);  // Ctrl-C comes to the launcher alone, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (output >= 0) dup2(output, STDOUT_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

fs::path process_file(const fs::path& folder, const std::string& rank) {
  return folder / fmt::format("{}.process", rank);
}

/// mpirun of Open MPI 4.1 hangs now and then when a rank ends while it starts another.
class LonelyWatch {
 public:
  /// True when mpirun has had no rank for so long that it will not end by itself.
  bool ended(bool has_ranks) {
    const auto now = std::chrono::steady_clock::now();
    if (has_ranks) last_rank_ = now;
    return now - last_rank_ > std::chrono::seconds(5);
  }

 private:
  std::chrono::steady_clock::time_point last_rank_ = std::chrono::steady_clock::now();
};

/// Sees the processes of the ranks end.
class RankWatch {
 public:
  RankWatch(fs::path folder, int ranks)
      : folder_(std::move(folder)), processes_(static_cast<std::size_t>(ranks)) {}

  void look() {
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      auto& own = processes_[rank];
      if (own.id == 0) own.id = read_id(rank);
      if (own.id > 0 && !own.end && kill(own.id, 0) != 0) own.end = Clock::now();
    }
  }

  bool all_ended() const {
    return std::ranges::all_of(processes_, [](const Process& own) { return own.end.has_value(); });
  }

  /// Those that ended first, before mpirun could have ended others on their account: that takes it
  /// a second. One that alone has not announced itself ended before all that have.
  std::set<int> first_to_end() const {
    const auto silent = std::ranges::find(processes_, 0, &Process::id);
    if (processes_.size() > 1 && std::ranges::count(processes_, 0, &Process::id) == 1)
      return {static_cast<int>(silent - processes_.begin())};
    std::optional<Clock::time_point> first;
    for (const auto& own : processes_)
      if (own.end && (!first || *own.end < *first)) first = own.end;
    std::set<int> ranks;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      const auto& end = processes_[rank].end;
      if (end && *end < *first + std::chrono::milliseconds(500))
        ranks.insert(static_cast<int>(rank));
    }
    return ranks;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    pid_t id = 0;
    std::optional<Clock::time_point> end;
  };

  /// 0 when it is not there yet.
  pid_t read_id(std::size_t rank) const {
    std::ifstream file(process_file(folder_, std::to_string(rank)));
    pid_t id = 0;
    return file >> id && file.get() == '\n' ? id : 0;
  }

  fs::path folder_;
  std::vector<Process> processes_;
};

/// Passes a stop signal on to all ranks, also to those that start later.
class StopForwarding {
 public:
  explicit StopForwarding(pid_t mpirun) : mpirun_(mpirun) {}

  void begin(int number) {
    // To a rank SIGTERM is mpirun's word for the loss of another rank.
    number_ = number == SIGTERM ? SIGINT : number;
    told_.clear();
  }
  /// False when mpirun has no process below it.
  bool look() {
    const auto found = descendants(mpirun_);
    for (const auto& rank : found)
      if (is_rank(rank.id) && told_.insert(rank.id).second) kill(rank.id, number_);
    return !found.empty();
  }

 private:
  /// A copy of mpirun that will become a rank would lose the signal, or mpirun would receive it.
  static bool is_rank(pid_t id) {
    std::error_code none;
    return fs::equivalent("/proc/self/exe", fmt::format("/proc/{}/exe", id), none);
  }

  pid_t mpirun_;
  int number_ = 0;
  std::set<pid_t> told_;
};

std::map<int, LastWords> read_words(const fs::path& folder, int ranks) {
  std::map<int, LastWords> words;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder / std::to_string(rank));
    LastWords own;
    if (!(file >> own.exit_code >> own.lost_rank)) continue;
    std::getline(file >> std::ws, own.error);
    words[rank] = own;
  }
  return words;
}

/// The outcome of ranks that a signal ended before they could say so.
LaunchOutcome stopped(LaunchOutcome outcome, std::string_view verdict) {
  outcome.exit_code = 128 + SIGINT;
  outcome.verdict = fmt::format("{} (exit code {})", verdict, outcome.exit_code);
  return outcome;
}

}  // namespace

LaunchOutcome launch(const Launch& request) {
  const auto mpirun = find_program("mpirun");
  if (!mpirun) throw UnsupportedError("there is no mpirun; install openmpi-bin");
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // ranks that outlive mpirun become this process's children
  const TemporaryFolder words("launch");
  const SignalNotes notes;
  std::array<int, 2> pipe_ends = {-1, -1};
  if (request.capture && pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw IoError("no pipe is left");
  const pid_t child = start(command_line(*mpirun, request, words.path()), pipe_ends[1]);
  LaunchOutcome outcome;
  std::jthread reader;
  if (request.capture) {
    close(pipe_ends[1]);
    reader = std::jthread([&outcome, from = pipe_ends[0]] {
      std::array<char, 4096> part;
      for (ssize_t n = 0; (n = read(from, part.data(), part.size())) > 0;)
        outcome.output.append(part.data(), static_cast<std::size_t>(n));
      close(from);
    });
  }
  int status = 0;
  RankWatch watch(words.path(), request.ranks);
  StopForwarding forwarding(child);
  LonelyWatch lonely;
  bool at_once = false, hangs = false;
  while (!at_once && !hangs && waitpid(child, &status, WNOHANG) == 0) {
    if (const int count = signals_received.exchange(0); count > 0) {
      const int number = signal_received;
      at_once = (outcome.interrupted || count > 1) && (number == SIGINT || number == SIGTERM);
      outcome.interrupted = true;
      forwarding.begin(number);
    }
    watch.look();
    hangs = lonely.ended(outcome.interrupted ? forwarding.look() : !watch.all_ended());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  watch.look();  // one may have announced itself since
  end_descendants();
  if (reader.joinable()) reader.join();
  if (at_once) return stopped(std::move(outcome), "stopped at once");
  // Without an end of mpirun, the ranks' own words count.
  if (hangs) status = W_EXITCODE(outcome.interrupted ? 128 + SIGINT : 0, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto said = read_words(words.path(), request.ranks);
  const auto first_to_end = watch.first_to_end();
  outcome.interrupted = outcome.interrupted || signals_received != 0;
  judge(said, request.ranks, first_to_end, outcome);
  if (outcome.interrupted && said.empty()) return stopped(std::move(outcome), "stopped");
  outcome.lost = count_lost(said, first_to_end);
  return outcome;
}

void announce_process() {
  const char* folder = std::getenv(kWordsVariable);
  const char* rank = std::getenv(kRankVariable);
  if (folder == nullptr || rank == nullptr) return;
  std::ofstream(process_file(folder, rank)) << getpid() << '\n';
}

bool leads_processes() {
  const char* rank = std::getenv(kRankVariable);
  return rank == nullptr || std::string_view(rank) == "0";
}

bool has_launcher() { return std::getenv(kWordsVariable) != nullptr; }

void leave_last_words(int exit_code, const std::string& error, int lost_rank) {
  const char* folder = std::getenv(kWordsVariable);
  const char* rank = std::getenv(kRankVariable);
  if (folder == nullptr || rank == nullptr) return;
  std::ofstream(fs::path(folder) / rank) << exit_code << ' ' << lost_rank << '\n' << error << '\n';
}

}  // namespace triptych::parallel
