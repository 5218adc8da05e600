// A device that is this processor: its memory is host memory, and it has its own team of threads.
// They flush subnormals to zero, so that every contract computes with the same rule on every
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backends/host/thread_team.h"
#include "core/runtime/device.h"

namespace triptych {

/// submit() returns when the work is done.
class HostDevice : public Device {
 public:
  /// Throws InvalidArgument for options that it does not have. `name`: of the backend.
  HostDevice(std::string name, const DeviceOptions& options);

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override;
  void upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) override;
  void download(std::byte* host_target, const std::byte* device_source, std::size_t bytes) override;
  void submit(int segment, const std::function<void(Stream*)>& enqueue) override;
  void synchronize() override {}
  Duration elapsed() override;

  /// Threads that work on one kernel: max_threads() of its loops.
  int threads() const { return threads_; }

 protected:
  /// Context for kernels.
  virtual Stream* stream() { return nullptr; }

 private:
  std::string name_;
  int threads_;
  std::chrono::steady_clock::time_point opened_;
  ThreadTeam team_;
};

}  // namespace triptych
