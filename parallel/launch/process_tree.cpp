// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/process_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/folder.h"
#include "core/io/file_descriptor.h"

namespace triptych::parallel {

namespace {

/// The fields of /proc/ID/stat behind the program's name, which may hold anything.
std::optional<ProcessState> read_state(const std::string& id) {
  const internal::FileDescriptor file(
      open(("/proc/" + id + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> buffer{};
  const auto size = file.get() < 0 ? -1 : read(file.get(), buffer.data(), buffer.size());
  if (size <= 0) return std::nullopt;  // it has ended
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  const auto name_end = text.rfind(')');
  if (name_end == text.npos || name_end + 2 >= text.size() || text[name_end + 2] == 'Z')
    return std::nullopt;
  const char *at = text.data() + name_end + 3, *const end = text.data() + text.size();
  std::array<std::int64_t, 21> fields{};  // from the parent on
  for (auto& field : fields) {
    while (at < end && *at == ' ') ++at;
    const auto number = std::from_chars(at, end, field);
    if (number.ec != std::errc()) return std::nullopt;
    at = number.ptr;
  }
  static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto spent = fields[10] + fields[11] + fields[12] + fields[13];
  return ProcessState{.id = std::stoi(id),
                      .parent = static_cast<pid_t>(fields[0]),
                      .processor_seconds = static_cast<double>(spent) / ticks,
                      .resident_bytes = fields[20] * sysconf(_SC_PAGESIZE),
                      .threads = fields[16]};
}

}  // namespace

std::vector<ProcessState> descendants(pid_t ancestor, std::set<std::string>* elsewhere) {
  std::multimap<pid_t, ProcessState> children;
  std::error_code ignored;
  for (auto& name : names_in("/proc", ignored)) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (elsewhere != nullptr && elsewhere->contains(name)) continue;
    if (const auto process = read_state(name)) children.emplace(process->parent, *process);
    if (elsewhere != nullptr) elsewhere->insert(std::move(name));
  }
  std::vector<ProcessState> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      open.push_back(child->second.id);
      if (elsewhere != nullptr) elsewhere->erase(std::to_string(child->second.id));
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
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    // An empty list is no proof: while /proc is read, the parent of a process may end before its
    // own line is read. Whoever adopts all orphans and has no child has no descendant.
    if (ended < 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace triptych::parallel
