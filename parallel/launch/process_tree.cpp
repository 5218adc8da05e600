// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/process_tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/folder.h"

namespace triptych::parallel {

namespace fs = std::filesystem;

std::vector<pid_t> descendants(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (const auto& name : names_in("/proc", ignored)) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(fs::path("/proc") / name / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto end = text.rfind(')');  // of the program's name, which may hold anything
    if (end == std::string::npos) continue;
    char state = 0;
    pid_t parent = 0;
    std::istringstream(text.substr(end + 1)) >> state >> parent;
    if (state != 'Z') children.emplace(parent, std::stoi(name));
  }
  std::vector<pid_t> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

void end_descendants() {
  for (int tries = 0; tries < 20; ++tries) {
    const auto left = descendants(getpid());
    for (const auto process : left) {
      kill(process, SIGCONT);
      kill(process, tries < 10 ? SIGTERM : SIGKILL);
    }
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (left.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace triptych::parallel
