// SPDX-License-Identifier: Apache-2.0
#include "experiments/scripts/python_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/find_program.h"
#include "core/io/strict_json.h"

namespace triptych::scripts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestMessage = std::size_t{256} << 20;

/// Runs the modules that the first line contains. The socket is the standard input.
constexpr const char* kLoader = R"(
import json, socket, sys, types
stream = socket.socket(fileno=0).makefile("rw", encoding="utf-8", newline="\n")
first = json.loads(stream.readline())
for name, file, text in first["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, file, "exec"), module.__dict__)
sys.modules[first["entry"]].run(stream, first["arguments"])
)";

std::string python(const std::string& user) {
  if (const auto path = find_program("python3")) return path->string();
  throw DeviceError(
      fmt::format("{} needs the program \"python3\", which is not on the PATH; triptych doctor has "
                  "the package",
                  user));
}

/// Starts `program` with `input` as its standard input. Its prints go to standard error.
pid_t start_python(const std::string& program, int input, bool inherits_environment) {
  std::array<std::string, 6> words = {program, "-I", "-S", "-B", "-c", kLoader};
  std::array<char*, 7> arguments = {};
  for (std::size_t i = 0; i < words.size(); ++i) arguments.at(i) = words.at(i).data();
  std::array<char*, 1> nothing = {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(),
                                inherits_environment ? environ : nothing.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw DeviceError(
        fmt::format("cannot start {}: {}", program, std::generic_category().message(error)));
  }
  return child;
}

Json first_message(const Script& script) {
  Json modules = Json::array();
  for (const auto& module : script.modules)
    modules.push_back({module.name, module.file, module.text});
  return {
      {"modules", std::move(modules)}, {"entry", script.entry}, {"arguments", script.arguments}};
}

}  // namespace

PythonProcess::PythonProcess(const Script& script)
    : name_(script.name), interruptible_(script.interruptible), patience_(script.patience) {
  const auto program = python(script.user);
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw DeviceError(fmt::format("no socket: {}", std::generic_category().message(errno)));
  socket_ = internal::FileDescriptor(ends[0]);
  const internal::FileDescriptor its_end(ends[1]);
  child_ = start_python(program, its_end.get(), script.inherits_environment);
  send(first_message(script));
}

PythonProcess::~PythonProcess() {
  kill(child_, SIGKILL);
  internal::retry_interrupted([&] { return waitpid(child_, nullptr, 0); });
}

void PythonProcess::send(const Json& message) {
  const auto text = message.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  for (std::string_view left = text; !left.empty();) {
    const auto sent = internal::retry_interrupted(
        [&] { return ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL); });
    if (sent < 0) return;  // receive() reports that the child has ended
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Json PythonProcess::receive() {
  const auto start = Clock::now();
  std::array<char, 65536> part = {};
  std::optional<InterruptGuard> guard;
  if (interruptible_) guard.emplace(false);
  for (;;) {
    if (const auto end = received_.find('\n'); end != received_.npos) {
      const auto line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return parse_strict<Json>(line);
    }
    if (guard && guard->interrupted()) throw Interrupted();
    pollfd waiting = {socket_.get(), POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) {
      if (!patience_ || Clock::now() - start < *patience_) continue;
      throw InvalidArgument(fmt::format("{} did not come to an end", name_));
    }
    const auto count = recv(socket_.get(), part.data(), part.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || received_.size() > kLongestMessage) {
      throw InvalidArgument(
          fmt::format("{} ended before its end; its last words are above", name_));
    }
    received_.append(part.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace triptych::scripts
