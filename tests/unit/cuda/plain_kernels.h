// Libraries of the plain kernels in plain/, each compiled once, and runs of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "core/io/temporary_folder.h"
#include "experiments/kernels/kernel_run.h"
#include "experiments/kernels/kernel_source.h"

namespace triptych::cuda {

inline std::string plain_file(const std::string& name) {
  return std::string(TRIPTYCH_SOURCE_DIR) + "/tests/unit/cuda/plain/" + name + ".cu";
}

inline const plain::KernelLibrary& plain_library(const std::string& name) {
  static const TemporaryFolder folder("plain-kernels");
  static std::map<std::string, std::unique_ptr<plain::KernelLibrary>> libraries;
  auto& library = libraries[name];
  if (library == nullptr) {
    const auto file = folder.path() / (name + ".so");
    kernels::compile_kernels({.file = plain_file(name)}, file);
    library = std::make_unique<plain::KernelLibrary>(file);
  }
  return *library;
}

/// The run of "FILE:KERNEL". A fault is a failure of the test.
inline kernels::KernelRun run_plain(const std::string& kernel, kernels::KernelRunRequest request) {
  const auto colon = kernel.find(':');
  request.kernel = kernel.substr(colon + 1);
  auto run = kernels::run_kernel(plain_library(kernel.substr(0, colon)), request);
  if (run.fault) ADD_FAILURE() << run.fault->what();
  return run;
}

/// The line of a source that ends with this comment.
inline unsigned line_with(const std::string& file, const std::string& comment) {
  std::ifstream stream(plain_file(file));
  unsigned number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find("// " + comment) != std::string::npos) return number;
  }
  ADD_FAILURE() << "no line of " << file << " says " << comment;
  return 0;
}

}  // namespace triptych::cuda
