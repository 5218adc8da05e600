// Modules of the driver API and of NVRTC: kernels that are compiled apart from a program. A module
// is one text with both of its libraries, in place of PTX and machine code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/program/module_builder.h"
#include "experiments/kernels/program_source.h"

namespace triptych::kernels {

struct Module {
  std::string image;  ///< content of a module's file
  std::string compiler_warnings;
};

/// Compiles the first file of the source as a module. Throws the errors of compile_program.
Module compile_module(const ProgramSource& source);

/// The compiler for programs that run, with temporary files of its own.
std::unique_ptr<cuda::program::ModuleBuilder> module_builder();

}  // namespace triptych::kernels
