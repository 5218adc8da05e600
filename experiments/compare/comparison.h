// A comparison as it goes: which machines are here, the experiment on each, and where they differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "experiments/compare/report_json.h"

namespace triptych::compare {

/// Calls that report the progress of a comparison.
struct Listener {
  /// Calls while a machine trains, which begins now.
  std::function<training::Observer(const MachineRequest&)> observer = [](const MachineRequest&) {
    return training::Observer{};
  };
  /// A machine cannot run the experiment, or failed at it.
  std::function<void(const Column&)> on_absence = [](const Column&) {};
  /// Two machines that differ are trained again, to find the first node that does.
  std::function<void(const MachineRequest&, const MachineRequest&)> on_difference =
      [](const MachineRequest&, const MachineRequest&) {};
};

/// A column for each machine, with why it is not here if it is not: nothing is trained before that
/// is known.
std::vector<Column> columns_of(std::vector<MachineRequest> requests);

/// The experiment on one machine after another. One that cannot run it, or fails at it, counts as
/// absent, so that the results of the others are not lost. Throws the first error when all fail.
/// Ends after a step when `interrupted`.
void run_all(Comparison& all, const Listener& listener, const std::atomic<bool>& interrupted);

/// If machines differ, finds the first node with a difference. `folder` is for new runs.
void look_for_difference(Comparison& all, const std::filesystem::path& folder,
                         const Listener& listener, const std::atomic<bool>& interrupted);

}  // namespace triptych::compare
