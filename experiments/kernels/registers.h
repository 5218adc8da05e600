// Registers per thread of a user's kernels, as nvcc allocates them where it is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::kernels {

struct RegisterQuery {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> instances;  ///< of templates, in the first file: "tiled<16>"
  std::vector<std::string> options;    ///< of the compiler
  bool contract = true;
  int architecture = 90;  ///< Gpu::architecture
};

/// By kernel: "tiled<16>". Empty without nvcc on the PATH, and for files that it does not compile.
std::map<std::string, int> find_registers(const RegisterQuery& query);

/// The kernels and registers in messages of `ptxas -v`.
std::map<std::string, int> read_registers(std::string_view messages);

}  // namespace triptych::kernels
