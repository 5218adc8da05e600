// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/gpu_memory.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "parallel/comm/gpu_sum.h"

namespace triptych::parallel {
namespace {

class GpuBuffer : public MessageBuffer {
 public:
  /// Clear when it is there: the stream is waited for, since others use the memory, too.
  GpuBuffer(std::size_t bytes, cudaStream_t stream) : size_(bytes) {
    if (bytes == 0) return;
    check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
    check_cuda(cudaMemsetAsync(data_, 0, bytes, stream), "cudaMemsetAsync");
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  ~GpuBuffer() override { cudaFree(data_); }  // waits for the device
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  std::span<std::byte> bytes() override { return {static_cast<std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

class GpuMemory : public MessageMemory {
 public:
  explicit GpuMemory(int index) : index_(index) {
    use_gpu(index);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~GpuMemory() override { cudaStreamDestroy(stream_); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  bool on_host() const override { return false; }
  std::unique_ptr<MessageBuffer> allocate(std::size_t bytes) override {
    use_gpu(index_);
    return std::make_unique<GpuBuffer>(bytes, stream_);
  }
  void copy(std::span<std::byte> target, std::span<const std::byte> source) override {
    TRIPTYCH_ASSERT(target.size() == source.size());
    if (target.empty()) return;
    use_gpu(index_);
    check_cuda(
        cudaMemcpyAsync(target.data(), source.data(), target.size(), cudaMemcpyDefault, stream_),
        "cudaMemcpyAsync");
    finish();
  }
  void add(std::span<std::byte> target, std::span<const std::byte> source, DType dtype) override {
    TRIPTYCH_ASSERT(target.size() == source.size());
    if (target.empty()) return;
    use_gpu(index_);
    check_cuda(
        gpu_add(target.data(), source.data(), target.size() / dtype_size(dtype), dtype, stream_),
        "the addition");
    finish();
  }
  void scale(std::span<std::byte> target, float factor) override {
    if (target.empty()) return;
    use_gpu(index_);
    check_cuda(gpu_scale(target.data(), target.size() / sizeof(float), factor, stream_),
               "the scaling");
    finish();
  }
  void write(std::span<std::byte> target, std::span<const std::byte> host_source) override {
    copy(target, host_source);
  }
  void read(std::span<std::byte> host_target, std::span<const std::byte> source) override {
    copy(host_target, source);
  }

 private:
  void finish() { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  int index_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next launch reports it
  throw DeviceError(fmt::format("cuda: {}: {}", call, cudaGetErrorString(status)));
}

int count_gpus() {
  int count = 0;
  const auto status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());  // or the next call reports it
  const char* reason = status == cudaSuccess || status == cudaErrorNoDevice
                           ? "the driver finds no GPU"
                       : status == cudaErrorInsufficientDriver
                           ? "there is no NVIDIA driver, or it is older than this build's CUDA"
                           : cudaGetErrorString(status);
  throw DeviceError(fmt::format("nccl: {}", reason));
}

void use_gpu(int index) { check_cuda(cudaSetDevice(index), "cudaSetDevice"); }

std::unique_ptr<MessageMemory> open_gpu_memory(int index) {
  return std::make_unique<GpuMemory>(index);
}

}  // namespace triptych::parallel
