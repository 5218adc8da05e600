// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/toolchain.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "model_flags.h"

namespace triptych::mmu {
namespace {

/// The first line of /proc/cpuinfo that lists the features of the processor. Code made for it alone
/// must not be run by another.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  return {};
}

/// Starts a command with standard output and error redirected by `actions`.
int spawn_and_wait(const std::vector<std::string>& command, posix_spawn_file_actions_t* actions,
                   char** environment = environ) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  if (posix_spawnp(&process, arguments[0], actions, nullptr, arguments.data(), environment) != 0)
    return kNotStarted;
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return kNotStarted;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Output {
  int status = kNotStarted;
  std::string text;  ///< of standard output
};

Output capture(const std::vector<std::string>& command) {
  Output output;
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return output;
  const auto [read_end, write_end] = pipe_ends;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // The output of --version fits into the pipe, so that it can be read after the end.
  output.status = spawn_and_wait(command, &actions);
  posix_spawn_file_actions_destroy(&actions);
  close(write_end);
  std::array<char, 4096> part{};
  for (ssize_t size = 0; (size = read(read_end, part.data(), part.size())) > 0;)
    output.text.append(part.data(), static_cast<std::size_t>(size));
  close(read_end);
  return output;
}

/// Is a program on the PATH? Adds its description of itself to `identity`.
bool is_there(const std::string& program, std::string& identity) {
  const auto version = capture({program, "--version"});
  if (version.status == 0) identity += version.text;
  return version.status != kNotStarted;
}

Toolchain find_toolchain() {
  Toolchain tools;
  std::string of_make;
  if (is_there("verilator", tools.identity)) tools.verilator = "verilator";
  if (is_there("make", of_make)) tools.make = "make";
  std::istringstream compilers(kCompilers);
  for (std::string name; tools.compiler.empty() && compilers >> name;) {
    if (!is_there(name, tools.identity)) continue;
    tools.compiler = name;
    tools.is_clang = name.starts_with("clang");
  }
  tools.identity += processor();
  return tools;
}

}  // namespace

void Toolchain::require() const {
  std::vector<std::string_view> missing;
  if (verilator.empty()) missing.emplace_back("verilator");
  if (make.empty()) missing.emplace_back("make");
  if (compiler.empty()) missing.emplace_back("clang++ (or g++)");
  if (missing.empty()) return;
  throw std::runtime_error(
      fmt::format("[mmu] not on the PATH, and needed to build RTL: {}; add: {}",
                  fmt::join(missing, ", "), kToolsRemedy));
}

const Toolchain& toolchain() {
  static const Toolchain tools = find_toolchain();
  return tools;
}

int run_logged(const std::vector<std::string>& command, const std::filesystem::path& log,
               const std::filesystem::path& temporary, const std::filesystem::path& folder) {
  std::ofstream file(log, std::ios::app);
  file << fmt::format("$ {}\n", fmt::join(command, " ")) << std::flush;
  if (!file)
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("cannot write \"{}\"", log.string()));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::string variable = "TMPDIR=" + std::filesystem::absolute(temporary).string();
  std::vector<char*> environment = {variable.data()};
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("TMPDIR=")) environment.push_back(*entry);
  environment.push_back(nullptr);
  const int status = spawn_and_wait(command, &actions, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

}  // namespace triptych::mmu
