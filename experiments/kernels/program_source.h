// A whole CUDA program: files of CUDA C++ with `main`, unchanged, compiled for the emulator by
// clang's CUDA front end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych::kernels {

struct ProgramSource {
  std::vector<std::filesystem::path> files;
  bool contract = true;              ///< false: a * b + c is rounded after each operation
  std::vector<std::string> options;  ///< further ones of the compiler
  int architecture = 900;            ///< __CUDA_ARCH__
  bool debugs = false;               ///< the kernels report their lines and variables
  bool has_unwatched = false;        ///< kernels also without instrumentation, for other blocks
};

/// True for a source with a launch or a function main outside of comments and texts. Throws IoError
/// as require_source() does.
bool is_whole_program(const std::filesystem::path& file);

/// Writes the libraries that cuda::program::run opens. Returns the compiler's warnings. Throws
/// InvalidArgument with its words for a source that is wrong, DeviceError when there is no
/// compiler.
std::string compile_program(const ProgramSource& source, const std::filesystem::path& folder);

}  // namespace triptych::kernels
