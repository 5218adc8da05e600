// A whole CUDA program, compiled into three libraries: its kernels, the bridge to the emulated
// runtime, and its host part with `main`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/program/session.h"

namespace triptych::cuda::program {

/// Names of the libraries in a folder.
inline constexpr const char *kKernelLibrary = "kernels.so", *kBridgeLibrary = "bridge.so",
                            *kHostLibrary = "host.so";

/// Runs main(words) on a thread of its own, once in a process. When the program calls exit, or
/// when it is stopped, that thread stays where it is. Throws IoError for libraries of another
/// version.
ProgramReport run(const std::filesystem::path& folder, std::vector<std::string> words,
                  const ProgramOptions& options);

}  // namespace triptych::cuda::program
