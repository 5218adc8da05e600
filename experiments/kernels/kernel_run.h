// A student's kernel run on arrays: its arguments as text of a command line, and the counts and
// findings of the emulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/emulation/gpu.h"
#include "backends/cuda/emulation/kernel_costs.h"
#include "backends/cuda/emulation/launch_bounds.h"
#include "backends/cuda/plain/kernel_library.h"
#include "backends/cuda/plain/launch.h"
#include "core/runtime/kernel_counters.h"
#include "core/runtime/kernel_fault.h"
#include "core/tensor/tensor.h"

namespace triptych::kernels {

// Names for reports.
using cuda::emulation::BranchCounters, cuda::emulation::Gpu, cuda::emulation::KernelCosts;
using cuda::emulation::NotedFaults, cuda::emulation::SiteCosts, cuda::emulation::bounds_of,
    cuda::emulation::find_gpu;

struct KernelRunRequest {
  std::string kernel;  ///< empty: the only one
  /// One for each parameter: a file ("a.npy"), a new array ("f32:64x64", undefined, or
  /// "f32:64x64=0", "=random", "=count"), "null", or a number.
  std::vector<std::string> arguments;
  std::vector<std::string> constants;  ///< "mask=mask.npy": values of __constant__ variables
  std::vector<std::int64_t> grid = {1}, block = {1};  ///< up to three numbers each
  std::int64_t shared_bytes = 0;                      ///< of `extern __shared__`
  int threads = 1;
  std::int64_t most_steps = std::int64_t{1} << 23;
  std::int64_t sample = 1;               ///< every sample-th block is counted and checked
  std::uint64_t seed = 1;                ///< of "=random"
  bool skip_ended = false;               ///< barriers wait only for threads that have not ended
  bool keeps_going = false;              ///< faults end the kernel only where they must
  bool last_first = false;               ///< threads of a block run in descending order
  const Gpu* gpu = nullptr;              ///< whose costs are counted
  std::map<std::string, int> registers;  ///< of a thread on that GPU, by kernel
  cuda::plain::WatchLaunch watch;
};

/// An array that the kernel may write to.
struct KernelOutput {
  int argument = 0;  ///< from 1
  Tensor tensor;
};

struct KernelRun {
  std::string kernel;
  std::vector<std::string> parameters;  ///< their types
  NotedFaults noted;                    ///< after which it continued
  std::optional<KernelFault> fault;     ///< then there is nothing below
  KernelCounters counters;
  KernelCosts costs;  ///< with a GPU
  std::vector<std::string> warnings;
  std::vector<KernelOutput> outputs;
};

/// "tiled(const float*, float*, int)".
std::string signature(const cuda::plain::KernelEntry& kernel);

/// Throws InvalidArgument for a kernel that is not there and arguments that do not fit.
KernelRun run_kernel(const cuda::plain::KernelLibrary& library, const KernelRunRequest& request);

}  // namespace triptych::kernels
