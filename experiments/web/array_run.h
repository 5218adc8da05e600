// One operator, or one program of the user, on one array, observed during the run. Kernel, program
// and machine are those of the commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/runtime/device.h"
#include "systolic/isa/listing.h"
#include "systolic/isa/simulator.h"

namespace triptych::web {

struct ArrayRun {
  mmu::MachineConfig machine;
  mmu::Program program;
  mmu::RunReport report;          ///< of the twin, with times and stalls
  std::vector<std::byte> before;  ///< DRAM before the program ran, as far as it is touched
  std::vector<std::byte> after;
  Tensor y;  ///< of an operator
};

/// An operator with its operands.
struct ArrayProblem {
  OpPtr op;
  std::vector<Tensor> inputs;
};

/// Reads {"op": "matmul", "m", "k", "n", "x", "w"}, rows one after the other, or {"op": "conv",
/// "batch", "channels", "height", "width", "filters", "window", "x", "w"}, 'same' padding. Throws
/// InvalidArgument when the numbers do not fit, a JSON exception where something is missing.
ArrayProblem array_problem(const nlohmann::ordered_json& request);

/// Runs it under bf16-exact on the twin of a machine (its name, or its JSON) of the backend
/// "systolic". `pes` is told of every multiply-add. Throws InvalidArgument for operands that do not
/// fit, UnsupportedError for what the machine cannot run.
ArrayRun run_on_array(const Backend& systolic, const ArrayProblem& problem,
                      const std::string& machine, const mmu::PeWatcher& pes);

/// Runs a program's text on the twin of the product's machine. Its inputs have the values of the
/// text. A text without arrays finds the memory as the product did. Throws std::invalid_argument
/// "line 3: ..." for an array and "instruction 4 (matmul ...): ..." for an instruction.
ArrayRun run_listing(const mmu::Listing& listing, const ArrayRun& product,
                     const mmu::PeWatcher& pes);

}  // namespace triptych::web
