// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/process_tree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include "core/base/folder.h"

namespace triptych::parallel {

namespace fs = std::filesystem;

namespace {

/// The fields of /proc/ID/stat behind the program's name, which may hold anything.
std::optional<ProcessState> read_state(const fs::path& folder) {
  std::ifstream file(folder / "stat");
  // The stream goes bad when the process ends now. A stream's iterators would throw.
  std::string text;
  std::getline(file, text, '\0');
  const auto end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  ProcessState process;
  char state = 0;
  std::istringstream fields(text.substr(end + 1));
  fields >> state >> process.parent;
  std::array<double, 20> rest{};  // from the process group on
  for (auto& number : rest) fields >> number;
  if (!fields || state == 'Z') return std::nullopt;
  static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  process.id = std::stoi(folder.filename().string());
  process.processor_seconds = (rest[9] + rest[10] + rest[11] + rest[12]) / ticks;
  process.threads = static_cast<std::int64_t>(rest[15]);
  process.resident_bytes = static_cast<std::int64_t>(rest[19]) * sysconf(_SC_PAGESIZE);
  return process;
}

}  // namespace

std::vector<ProcessState> descendants(pid_t ancestor) {
  std::multimap<pid_t, ProcessState> children;
  std::error_code ignored;
  for (const auto& name : names_in("/proc", ignored)) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto process = read_state(fs::path("/proc") / name);
    if (process) children.emplace(process->parent, *process);
  }
  std::vector<ProcessState> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      open.push_back(child->second.id);
    }
  }
  return found;
}

void end_descendants() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what an ended parent started a moment ago is found again
  for (int tries = 0; tries < 20; ++tries) {
    const auto left = descendants(getpid());
    for (const auto& process : left) {
      kill(process.id, SIGCONT);
      kill(process.id, tries < 10 ? SIGTERM : SIGKILL);
    }
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (left.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace triptych::parallel
