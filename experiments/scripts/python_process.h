// Python programs whose text is part of this program: graders of labs, and `reproduce`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/io/file_descriptor.h"
#include "experiments/page/json.h"

namespace triptych::scripts {

using page::Json;

/// A module of a script.
struct Module {
  std::string name;  ///< as it is imported
  std::string file;  ///< in tracebacks
  std::string text;
};

struct Script {
  std::string user;             ///< in messages: "this lab"
  std::string name;             ///< in messages: "the grader"
  std::vector<Module> modules;  ///< each after those that it imports
  std::string entry;            ///< the module whose run(stream, arguments) is called
  Json arguments;
  bool inherits_environment = false;
  /// receive() throws Interrupted after a signal. Without, the program's OrderlyStop ends the child
  /// and all that it has started.
  bool interruptible = false;
  /// The longest time between two messages. Without, there is no limit.
  std::optional<std::chrono::seconds> patience = {};
};

/// A child process that runs a script with `python3 -I -S -B`. It has only the standard library.
/// Both sides send one JSON value per line over a socket. What the script prints goes to standard
/// error.
class PythonProcess {
 public:
  /// Throws DeviceError when there is no python3.
  explicit PythonProcess(const Script& script);
  /// Kills the child.
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  /// The next message. Throws InvalidArgument when the child has ended or exceeds the patience.
  Json receive();
  void send(const Json& message);

 private:
  std::string name_;
  bool interruptible_;
  std::optional<std::chrono::seconds> patience_;
  internal::FileDescriptor socket_;
  pid_t child_ = -1;
  std::string received_;  ///< after the last complete line
};

}  // namespace triptych::scripts
