// A confined command and the process that keeps it. The keeper starts the command, adopts its
// orphans and ends all of them when the command has ended, or when this process is no more, also
// after `kill -9`. Where the system allows it, all of them are in a process namespace: when its
// first process ends, the kernel ends the others.
//
//   this process <- keeper [<- first of the namespace] <- command
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <optional>
#include <span>

#include "core/io/file_descriptor.h"
#include "experiments/confine/account.h"
#include "experiments/confine/confined.h"

namespace triptych::confine {

/// All that a command needs between fork and exec, where nothing may be allocated.
struct Start {
  int output = -1, error = -1;  ///< descriptors of its streams
  int program = -1;             ///< -1: it is at `path`
  const char *path = nullptr, *folder = nullptr;
  char *const *arguments = nullptr, *const *variables = nullptr;
  const Account& account;
  const Limits& limits;
  const internal::FileDescriptor& rules;  ///< of Landlock. Empty: there is none
  std::span<const sock_filter> filter;    ///< of seccomp. Empty: there is none
  bool own_namespace = false;
};

/// The step at which a start failed, and its errno.
struct Trouble {
  const char* step = "";
  int reason = 0;
};

class Keeper {
 public:
  /// Starts all. Throws DeviceError when there can be no process.
  explicit Keeper(const Start& start);
  /// Ends all.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  pid_t id() const { return id_; }
  /// True when the command itself runs, in the place of a copy of this process.
  bool started();
  /// True when nothing of the command is left.
  bool ended();
  /// Ends all that is left. Throws DeviceError when that fails for 20 s.
  void end();
  /// The reason for which the command did not start. Nothing when it did. After ended().
  std::optional<Trouble> trouble();
  /// The status of the command, as waitpid gives it. Nothing when it was ended. After ended().
  std::optional<int> status() const;

 private:
  pid_t id_ = -1;
  bool running_ = false;
  std::optional<Trouble> trouble_;
  internal::FileDescriptor life_;    ///< the keeper sees its end
  internal::FileDescriptor news_;    ///< the command's status comes through it
  internal::FileDescriptor starts_;  ///< ends with exec, or brings the trouble
};

}  // namespace triptych::confine
