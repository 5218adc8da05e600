// How ranks ended: the words that they left, and the verdict on all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "parallel/launch/launcher.h"

namespace triptych::parallel {

/// Last words of a rank.
struct LastWords {
  int exit_code = 0;
  int lost_rank = -1;  ///< died or stalled, which ended this one; -1: none
  std::string error;
};

/// Sets the exit code and the verdict of `outcome`, whose exit code is mpirun's before. A rank that
/// says nothing was killed. Of those that speak, one with an error of its own, which is not about
/// another rank, is to blame. `first_to_end` are the ranks that were seen to end before the others.
void judge(const std::map<int, LastWords>& words, int ranks, const std::set<int>& first_to_end,
           LaunchOutcome& outcome);

/// Ranks that died without a word, and those that others name.
int count_lost(const std::map<int, LastWords>& words, const std::set<int>& first_to_end);

}  // namespace triptych::parallel
