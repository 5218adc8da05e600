// One launch of a plain kernel on given arrays, with every access counted and checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/emulation/gpu.h"
#include "backends/cuda/emulation/grid.h"
#include "backends/cuda/emulation/kernel_costs.h"
#include "backends/cuda/emulation/request_watcher.h"
#include "backends/cuda/plain/watch.h"

namespace triptych::cuda::plain {

/// Memory of a GPU for one array: it begins at a multiple of 256 bytes, far from any other, so that
/// an index that is wrong does not lead into another array.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

struct Launch {
  std::string kernel;          ///< its name
  std::function<void()> call;  ///< runs it as one thread, on the arguments
  /// The same without instrumentation, for blocks outside of the sample. Empty: `call` is used.
  std::function<void()> unwatched_call;
  /// Its shared_bytes are those of the launch, in addition to the kernel's own arrays.
  emulation::LaunchShape shape;
  std::vector<DeviceArray> arrays;
  Explanation explain;  ///< of addresses outside of the arrays
  const TextureTable* textures = nullptr;
  int threads = 1;  ///< of this processor. With one, all runs are the same
  std::uint64_t most_steps = std::uint64_t{1} << 23;  ///< of a thread, before it is endless
  bool barriers_skip_ended = false;                   ///< Schedule::barriers_skip_ended
  bool strict = true;                                 ///< Schedule::strict
  bool last_first = false;                            ///< in each block, emulation::kDescending
  std::uint64_t sample = 1;                           ///< the model observes every sample-th block
  std::uint64_t earlier_blocks = 0;                   ///< in earlier launches of this kernel
  /// Takes the faults after which the kernel continues. nullptr: the first one ends it.
  emulation::NotedFaults* noted = nullptr;
  DeviceHeap* heap = nullptr;                    ///< of malloc in kernels. nullptr: none
  const emulation::Gpu* gpu = nullptr;           ///< whose costs are counted. nullptr: none
  int registers = 0;                             ///< of a thread on that GPU. 0: not known
  emulation::RequestWatcher* watcher = nullptr;  ///< of all requests
};

/// The observer of a launch, before it begins. nullptr: none.
using WatchLaunch = std::function<emulation::RequestWatcher*(const KernelLibrary&, const Launch&)>;

struct LaunchResult {
  KernelCounters counters;
  emulation::KernelCosts costs;  ///< empty without a GPU
  emulation::SkippedThreads skipped;
  std::vector<emulation::Remark> equal_stores, undefined_reads;
};

/// Counters of the launch. Its blocks run in ascending order when threads is 1. Throws KernelFault
/// for the fault that ends it, InvalidArgument for a shape that no GPU takes. One launch at a time.
LaunchResult run(const KernelLibrary& library, const Launch& launch);

}  // namespace triptych::cuda::plain
