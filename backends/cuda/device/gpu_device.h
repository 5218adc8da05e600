// A real GPU: one context, one stream, its memory. The launches of a plan segment run as they are
// when it is submitted first, since libraries load their kernels then. They are recorded as a CUDA
// graph the second time, and replayed from then on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <typeindex>

#include "backends/cuda/device/launch.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/runtime/device.h"

namespace triptych::cuda::gpu {

/// Page-locked host memory through which copies pass: two pieces, so that one is filled while the
/// other is on its way.
class Staging {
 public:
  Staging();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void upload(std::byte* target, const std::byte* source, std::size_t bytes, cudaStream_t stream);
  void download(std::byte* target, const std::byte* source, std::size_t bytes, cudaStream_t stream);

 private:
  std::byte* pieces_[2] = {};
  cudaEvent_t copied_[2] = {};
};

class GpuDevice : public Device {
 public:
  /// Options: index, and "graph": "on" (default) or "off". Throws DeviceError when there is no such
  /// GPU.
  explicit GpuDevice(const DeviceOptions& options);
  ~GpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  KernelTable own_kernels() const override;
  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override;
  void upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) override;
  void download(std::byte* host_target, const std::byte* device_source, std::size_t bytes) override;
  void submit(int segment, const std::function<void(Stream*)>& enqueue) override;
  void release(int segment) override;
  void synchronize() override;
  Duration elapsed() override;
  std::map<std::string, double> counters() const override;
  bool chooses_by_measurement() const override { return true; }

  /// Persistent memory of kernels, may be empty.
  const std::shared_ptr<TextCache>& cache() const { return cache_; }
  /// The one T(GpuDevice&) that all kernels on this device share, a library's handle for example.
  template <class T>
  T& shared() {
    make_current();  // a library's handle belongs to the device that is current when it is made
    auto& slot = shared_[typeid(T)];
    if (!slot) slot = std::make_shared<T>(*this);
    return *static_cast<T*>(slot.get());
  }

 private:
  /// Calls of this thread go to this GPU from now on.
  void make_current() const;
  cudaGraphExec_t record(const std::function<void(Stream*)>& enqueue);

  int index_;
  bool graphs_;
  std::vector<KernelEntry> kernels_;
  DeviceInfo info_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Staging> staging_;
  std::shared_ptr<TextCache> cache_;
  std::map<std::type_index, std::shared_ptr<void>> shared_;
  std::set<int> warm_;  ///< segments that have run once
  std::map<int, cudaGraphExec_t> segments_;
  std::chrono::steady_clock::time_point opened_;
  double uploaded_ = 0, downloaded_ = 0;  ///< bytes
};

/// GPUs that the driver knows. The reason when it cannot tell.
struct GpuCount {
  int count = 0;
  std::string reason;
};
GpuCount count_gpus();

/// Name, compute capability, memories and clocks of a GPU that is there.
DeviceInfo describe_gpu(int index);

/// Why the kernels of this build cannot run on it. Empty when they can.
std::string architecture_problem(int index);

}  // namespace triptych::cuda::gpu
