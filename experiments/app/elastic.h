// A training run on processes that goes on from its last checkpoint, with fewer of them, when some
// are lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/app/train_options.h"
#include "parallel/launch/launcher.h"

namespace triptych::app {

/// Continuation after a launch.
struct Continuation {
  int ranks = 0;     ///< 0: nothing, the run has ended
  std::string text;  ///< says so in words; empty when there is nothing to say
};

class ElasticRun {
 public:
  /// `arguments` as for Launch. Throws InvalidArgument unless they train over MPI into a folder
  /// that they name.
  explicit ElasticRun(const std::vector<std::string>& arguments);

  /// Continuation after a launch of so many ranks: the largest number of those left that the run
  /// can be shared by, when at least one was lost and there is a checkpoint newer than the one that
  /// the run last went on from.
  Continuation after(const parallel::LaunchOutcome& outcome, int ranks);
  /// Arguments of the program, to go on.
  std::vector<std::string> arguments() const;

 private:
  std::string folder() const {
    return options_.command.resume.empty() ? options_.command.out : options_.command.resume;
  }
  Continuation go_on(int ranks, int left);
  /// At most `left`; 0: none. `why_not` is about the first that was tried.
  int shareable(const training::SavedRun& saved, int left, std::string& why_not) const;

  CommandLine app_;  ///< knows which options were given
  TrainOptions options_;
  std::optional<std::int64_t> went_on_from_;  ///< step of a checkpoint
};

}  // namespace triptych::app
