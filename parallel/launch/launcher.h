// Starts this program as several processes under mpirun, and reports how they ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych::parallel {

struct Launch {
  int ranks = 1;
  std::vector<std::string> arguments;  ///< of this program, without its name
  bool capture = false;                ///< capture the ranks' standard output
};

struct LaunchOutcome {
  int exit_code = 0;         ///< the culprit's, when a rank failed
  std::string verdict;       ///< one line
  std::string output;        ///< when captured
  int lost = 0;              ///< ranks that died or stalled. Others ended because of them
  bool interrupted = false;  ///< by a signal to the launcher
};

/// Runs the ranks to their end. Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 are passed on to them, and when
/// this returns none of them is left. Throws UnsupportedError when there is no mpirun.
LaunchOutcome launch(const Launch& request);

/// Called at the beginning of the program: tells the launcher, if one started it, which process
/// this rank is.
void announce_process();
/// False in a process of an MPI program except rank 0, which speaks for all.
bool leads_processes();
/// True in a rank that launch() started. The launcher then reports how it failed.
bool has_launcher();
/// Called at the end of the program: tells the launcher how this rank ended. `lost_rank` has died
/// or stalled, which ended this one. -1: none.
void leave_last_words(int exit_code, const std::string& error, int lost_rank = -1);

}  // namespace triptych::parallel
