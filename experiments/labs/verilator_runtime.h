// Verilator's run time, two thirds of the compilation of a student's model. It is the same for all
// models, so the user's cache holds its objects, each with a checksum, under names with the tools'
// versions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/labs/bench.h"

namespace triptych::labs {

/// Commands of a bench whose model is in the folder `model` and has the top module lab_bench.
struct ModelCommands {
  std::vector<std::string> verilate;  ///< without the sources
  std::vector<std::string> make;      ///< without targets
};

/// Copies the objects to the bench, where Verilator has written the model. The makefile compiles
/// objects that are missing. The first call compiles them.
void put_verilator_runtime(Bench& bench, const ModelCommands& commands);

}  // namespace triptych::labs
