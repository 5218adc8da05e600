// Threads that work on the loops of one device (parallel.h). They poll for the next loop for a
// short time before they sleep, because waking one takes longer than a small kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace triptych {

class TeamLoop;

class ThreadTeam {
 public:
  /// So many threads, the one that calls execute() among them. They start with the first loop.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Calls work() on this thread. Its loops use the team, and all threads flush subnormals to zero.
  /// Several threads may do so at once: a loop that meets another one runs on its own thread.
  /// Throws DeviceError where the system has no more threads.
  template <class Work>
  void execute(const Work& work) {
    run(&work, [](const void* called) { (*static_cast<const Work*>(called))(); });
  }

 private:
  void run(const void* work, void (*call)(const void* work));

  std::shared_ptr<TeamLoop> loop_;  ///< the threads have it, too, and may end later
};

/// Processors that this process may run on.
int usable_processors();

}  // namespace triptych
