// A program on the emulated GPU: the state of CUDA's runtime, and what there is to report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/emulation/kernel_costs.h"
#include "backends/cuda/plain/device_heap.h"
#include "backends/cuda/program/bridge.h"
#include "backends/cuda/program/devices.h"
#include "backends/cuda/program/gpus.h"
#include "backends/cuda/program/graphs.h"
#include "backends/cuda/program/heap.h"
#include "backends/cuda/program/kernel_call.h"
#include "core/runtime/kernel_counters.h"
#include "core/runtime/kernel_fault.h"

namespace triptych::cuda::program {

class ModuleBuilder;

/// A mistake of the host's code.
struct Finding {
  std::string call;  ///< cudaMemcpy. Empty: code of the user
  std::string message, file;
  unsigned line = 0;
  cudaError_t error = cudaSuccess;
};

/// A launch that was run.
struct LaunchRecord {
  std::string kernel;
  std::string file;  ///< source of the launch, with `line`
  unsigned line = 0;
  emulation::LaunchShape shape;
  KernelCounters counters;
  emulation::KernelCosts costs;
};

struct ProgramReport {
  int status = 0;      ///< exit status of the program
  std::string reason;  ///< why the emulator stopped the program. Empty: it ended by itself
  std::vector<Finding> findings;
  std::optional<KernelFault> fault;
  emulation::NotedFaults noted;  ///< after which the program continued
  std::vector<LaunchRecord> launches;
  KernelCounterTable kernels;
  std::map<std::string, emulation::KernelCosts> costs;  ///< by kernel
  std::vector<std::string> warnings;
  std::set<std::pair<std::string, unsigned>> warned_places;  ///< in `warnings`
};

struct ProgramOptions {
  const Gpu* gpu = nullptr;
  int gpus = 1;     ///< equal ones
  int threads = 1;  ///< of this processor
  std::uint64_t most_steps = std::uint64_t{1} << 23;
  bool barriers_skip_ended = false;
  bool strict = false;                   ///< the places of warnings end the program
  bool keeps_going = false;              ///< faults of kernels end it only where they must
  bool last_first = false;               ///< threads of a block run in descending order
  std::uint64_t sample = 1;              ///< every sample-th block is counted and checked
  std::map<std::string, int> registers;  ///< of a thread on that GPU, by kernel, where known
  plain::WatchLaunch watch;
  ModuleBuilder* modules = nullptr;  ///< for NVRTC and the driver API
};

struct StreamProperties {
  unsigned flags = 0;
  int priority = 0;
  int device = 0;
};

struct Event {
  std::optional<std::chrono::steady_clock::time_point> at;
  int device = 0;
  unsigned long long capture = 0;         ///< number of the capture in which it was recorded
  std::vector<cudaGraphNode_t> captured;  ///< nodes in front of it there
};

/// A kernel by its function on the host.
struct Kernel {
  std::string name;
  const void* function = nullptr;
  const void* unwatched = nullptr;  ///< the same without instrumentation. nullptr: none
  std::optional<ParameterPlaces> places;
  std::size_t shared_bytes = 0;                            ///< of its own arrays of fixed sizes
  std::size_t most_dynamic_bytes = std::size_t{48} << 10;  ///< what cudaFuncSetAttribute allows
  std::uint64_t blocks = 0;                                ///< of its launches
  std::string symbol;                                      ///< name of the linker
  const plain::KernelLibrary* library = nullptr;
};

/// A cudaArray.
struct Array {
  plain::TexelArray texels;
  cudaChannelFormatDesc channels{};
  cudaExtent extent{};
  unsigned flags = 0;
};

struct Configuration {
  emulation::LaunchShape shape;
  cudaStream_t stream = nullptr;
  Place place = nullptr;
};

/// There is one in a process, and its functions are called with `mutex` locked, except `end`.
class Session {
 public:
  static Session& current();

  std::recursive_mutex mutex;
  ProgramOptions options;
  Devices devices;
  Heap heap;
  ProgramReport report;
  cudaError_t last_error = cudaSuccess;
  std::map<cudaEvent_t, Event> events;
  std::map<cudaStream_t, StreamProperties> streams;
  std::map<const void*, Kernel> kernels;
  std::map<const void*, plain::Variable> variables;  ///< by the host's address
  std::map<cudaArray_const_t, Array> arrays;
  Graphs graphs;
  plain::TextureTable textures;
  std::unique_ptr<plain::DeviceHeap> device_heap;  ///< of malloc in kernels, from the first launch
  std::size_t heap_limit = std::size_t{8} << 20;
  std::map<const void*, std::uintptr_t> texture_references;  ///< the kernels', by the host's
  std::unique_ptr<plain::KernelLibrary> library;
  std::vector<std::unique_ptr<plain::KernelLibrary>> modules;  ///< of the driver API, in order
  bool is_runtime_used = false;                                ///< which makes the primary context
  const char* driver_call = nullptr;  ///< for which a function of the runtime acts
  // The launch that clang's host code is putting together.
  std::vector<Configuration> configurations;
  std::vector<std::byte> arguments;

  /// The library whose host part is being opened: it registers kernels and variables.
  plain::KernelLibrary& newest_library() { return modules.empty() ? *library : *modules.back(); }
  /// True when these bytes belong to a variable of the GPU.
  bool is_variable(const void* address, std::size_t bytes) const;

  /// A number that no stream, event, graph, array, texture or surface has.
  std::uintptr_t new_handle() { return last_handle_ += 16; }

  /// Notes a mistake, and returns its error.
  cudaError_t mistake(cudaError_t error, const char* call, Place place, std::string message);
  /// Notes one that CUDA does not report.
  void note(cudaError_t error, const char* call, Place place, std::string message);
  /// "my.cu:12". "unknown" for code of another library.
  std::string text_of(Place place);
  emulation::Location location(Place place);

  /// Ends the program: the calling thread stops, and the one in wait_for_end goes on.
  [[noreturn]] void end(int status, std::string reason);
  void wait_for_end();

 private:
  std::mutex end_mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::uintptr_t last_handle_ = 0x1000;
  std::map<const void*, plain::CodePlaces> places_;  ///< by the beginning of a library
};

/// Turns segmentation faults of the host's code into findings. Called by the program's threads.
void watch_host_signals();

/// The table for the bridge.
const Runtime& runtime_table();

}  // namespace triptych::cuda::program
