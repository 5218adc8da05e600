// One CPU device: a task arena of its own, in whose threads subnormals are flushed to zero, so that
// every contract computes with the same rule on every thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <memory>
#include <optional>

#include "core/runtime/device.h"

namespace triptych::cpu {

/// Sets flush-to-zero and denormals-are-zero of this thread while it lives, then restores both.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t previous_;
};

/// Memory is host memory, submit() returns when the work is done.
class CpuDevice : public Device {
 public:
  /// Throws InvalidArgument for options that the CPU does not have.
  explicit CpuDevice(const DeviceOptions& options);

  const DeviceInfo& info() const override { return info_; }
  KernelTable kernels() const override;
  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override;
  void upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) override;
  void download(std::byte* host_target, const std::byte* device_source, std::size_t bytes) override;
  void submit(int segment, const std::function<void(Stream*)>& enqueue) override;
  void synchronize() override {}
  Duration elapsed() override;

  /// Threads that work on one kernel; tbb::this_task_arena::current_thread_index() stays below it.
  int threads() const { return threads_; }

 private:
  int threads_;
  DeviceInfo info_;
  std::chrono::steady_clock::time_point opened_;
  std::optional<tbb::global_control> more_workers_;  ///< when more than the machine's are asked for
  tbb::task_arena arena_;
};

/// Name, processor, threads, instruction set and caches of a device with so many threads.
DeviceInfo describe_cpu(int threads);

/// Processors that this process may run on.
int usable_processors();

}  // namespace triptych::cpu
