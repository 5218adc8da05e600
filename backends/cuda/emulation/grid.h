// A GPU that is this processor: blocks run in parallel on its threads, each on one of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <memory>

#include "backends/cuda/emulation/block.h"
#include "core/runtime/device.h"
#include "core/runtime/kernel_counters.h"

namespace triptych::cuda::emulation {

class GlobalShadow;
class Recorder;
class RequestWatcher;

enum class Mode {
  Plain,    ///< values only
  Counted,  ///< and counters
  Checked,  ///< and faults. Counters only where the stream counts
};

/// Demands of a kernel launch.
struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  std::size_t shared_bytes = 0;
  bool is_cooperative = false;  ///< all blocks are resident at once and may wait for each other
};

/// Where emulated kernels are launched. A launch returns when it is done.
class EmulatedStream : public Stream {
 public:
  /// `counts`: whether Mode::Checked keeps counters, too, for which it follows each warp.
  explicit EmulatedStream(Mode mode, bool counts = true);
  ~EmulatedStream() override;
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;

  Mode mode() const { return mode_; }
  const Schedule& schedule() const { return schedule_; }
  /// Sets the schedule of the launches from now on.
  void follow(const Schedule& schedule) { schedule_ = schedule; }
  /// Tells `watcher`, which outlives it, of every request of the launches from now on.
  void tell(RequestWatcher* watcher) { watcher_ = watcher; }
  /// Runs `body` for every thread of every block. Call it in the arena of the device. Throws
  /// InvalidArgument for a shape that no GPU takes, and the first block's KernelFault. `instance`:
  /// of the kernel's template, as registers.csv names it, where that is known.
  void run(const char* kernel, const LaunchShape& shape, FunctionRef<void()> body,
           const std::string& instance = {});

  /// The sum over all launches (Schedule::barriers_skip_ended).
  SkippedThreads skipped() const;
  /// The same (Schedule::strict).
  std::vector<Remark> equal_stores() const;
  std::vector<Remark> undefined_reads() const;
  /// The same (Schedule::keeps_going).
  NotedFaults noted_faults() const;

  /// Counts since the stream was made.
  const KernelCounterTable& counters() const { return counters_; }

 private:
  struct Worker;
  void run_block(Worker& worker, const char* kernel, const LaunchShape& shape,
                 FunctionRef<void()> body, std::uint64_t number);

  struct Worker {
    Worker();
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    Block block;
    std::unique_ptr<Recorder> recorder;
  };

  Mode mode_;
  bool counts_;
  Schedule schedule_;
  RequestWatcher* watcher_ = nullptr;
  std::unique_ptr<GlobalShadow> global_;
  tbb::enumerable_thread_specific<Worker> workers_;
  KernelCounterTable counters_;
};

}  // namespace triptych::cuda::emulation
