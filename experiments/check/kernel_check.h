// Kernels of a backend on the test suite's cases of their operators. The emulator also checks every
// access of a GPU kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/contract.h"
#include "core/runtime/kernel_fault.h"

namespace triptych::check {

/// Cases to check, and where.
struct CheckRequest {
  std::string backend = "cuda-emulated";
  std::string kernels;  ///< a comma list. Empty: all
  std::string op;       ///< kernels of it alone. Empty: of all
  Contract contract = Contract::F32;
  int threads = 0;
};

/// Error at one place, or of one result. The number of cases with it.
struct KernelFinding {
  std::string kind;
  std::string case_name;  ///< the first
  std::string message;
  std::optional<FaultPlace> place;
  int cases = 1;
};

/// The outcome for one kernel.
struct Checked {
  std::string op, kernel;
  int cases = 0;    ///< that ran
  int refused = 0;  ///< that it does not accept
  std::string refusal;
  std::vector<KernelFinding> findings;
};

/// Runs every kernel asked for on every case of its operator. Throws InvalidArgument for unknown
/// names, UnsupportedError when no case suits a requested kernel.
std::vector<Checked> check_kernels(const CheckRequest& request);

}  // namespace triptych::check
