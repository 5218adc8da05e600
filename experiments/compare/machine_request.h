// Which machines a comparison asks for, as the command line names them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/device_set.h"

namespace triptych::compare {

/// One column of the comparison.
struct MachineRequest {
  std::string label;  ///< unique: "cpu", "cpu (f32)", "systolic (RTL)"
  training::ExecutionConfig config;

  /// True when it only stands in for another machine: then its bits count, and its times do not.
  bool stands_in() const;
};

/// The machines of a comma list such as "cpu,cuda,systolic:rtl,cpu=f32": a backend, after a colon
/// its simulator, after an equals sign a contract of its own. "all" is every backend that is a
/// machine of its own, here or not. Options of `common` (machine, simulate) that a backend does not
/// have are left out. An array that nobody names is mmu::kComparedMachine. Throws InvalidArgument
/// for an unknown backend or contract, or a repeated one.
std::vector<MachineRequest> parse_machines(std::string_view text,
                                           const training::ExecutionConfig& common);

/// A note for readers of its times where they depend on a target clock, otherwise empty.
std::string target_clock_note(const MachineRequest& request);

/// Why a machine gave nothing, in words.
struct Absence {
  std::string reason;
  std::string remedy;    ///< the command that would add it, may be empty
  bool gave_up = false;  ///< it is here, and failed at the experiment
};

/// Example: "no GPU here: no driver; install NVIDIA's", "cpu gave up: ...".
std::string to_string(const MachineRequest& request, const Absence& absence);

}  // namespace triptych::compare
