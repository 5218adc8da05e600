// A student's file of plain CUDA C++, compiled for the emulator: g++ with CUDA's words in front of
// it (backends/cuda/plain) and its kernels described behind it. The file itself is not touched.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych::kernels {

struct KernelSource {
  std::filesystem::path file;
  /// Instances of templates in addition to the kernels in the file itself: "tiled<16>".
  std::vector<std::string> instances;
  /// False: a * b + c is rounded after each operation, as with nvcc -fmad=false.
  bool contract = true;
  std::vector<std::string> options;  ///< further ones of the compiler: "-DTILE=32", "-Iinclude"
  bool debugs = false;  ///< compiled by clang without optimisation: reports lines and variables
};

/// Writes the library of the source's kernels. Returns the compiler's warnings, empty for none.
/// Throws InvalidArgument with the compiler's words for a source that is wrong or has no kernel,
/// DeviceError when there is no g++.
std::string compile_kernels(const KernelSource& source, const std::filesystem::path& library);

}  // namespace triptych::kernels
