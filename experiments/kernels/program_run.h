// A whole CUDA program, compiled and run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/program/program.h"
#include "experiments/kernels/program_source.h"

namespace triptych::kernels {

struct ProgramRequest {
  ProgramSource source;            ///< its architecture follows from the GPU
  std::vector<std::string> words;  ///< of main, behind the program's name
  std::string gpu;                 ///< key of cuda::program::gpus()
  cuda::program::ProgramOptions options;
  bool takes_output = false;  ///< its standard output goes to the result
};

struct ProgramRun {
  const cuda::program::Gpu* gpu = nullptr;
  std::string compiler_warnings;
  std::string output;
  cuda::program::ProgramReport report;
};

/// One program in a process. Throws the errors of compile_program.
ProgramRun run_program(const ProgramRequest& request);

}  // namespace triptych::kernels
