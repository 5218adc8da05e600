// The backends "cuda", a real GPU, and "cuda-emulated", the same kernels on this processor.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/emulated_device.h"
#include "backends/cuda/library/libraries.h"
#if defined(TRIPTYCH_WITH_CUDA)
#include "backends/cuda/device/gpu_device.h"
#endif

namespace triptych::cuda {
namespace {

class GpuBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::vector<std::string> options() const override { return {"graph"}; }
#if defined(TRIPTYCH_WITH_CUDA)
  std::vector<BackendLibrary> libraries() const override { return cuda::libraries(); }
  Availability availability() const override {
    const auto [count, reason] = gpu::count_gpus();
    if (count == 0) return {false, reason, "install NVIDIA's driver, then see nvidia-smi"};
    const auto problem = gpu::architecture_problem(0);
    return {problem.empty(), problem, ""};
  }
  std::vector<DeviceInfo> devices() const override {
    std::vector<DeviceInfo> list;
    const auto count = gpu::count_gpus().count;
    list.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) list.push_back(gpu::describe_gpu(i));
    return list;
  }
  std::unique_ptr<Device> open(const DeviceOptions& options) const override {
    return std::make_unique<gpu::GpuDevice>(options);
  }
#else
  Availability availability() const override { return without_toolkit(); }
  std::vector<DeviceInfo> devices() const override { return {}; }
  std::unique_ptr<Device> open(const DeviceOptions&) const override {
    const auto here = availability();
    throw DeviceError("cuda: " + here.reason + "; " + here.remedy);
  }
#endif
};

class EmulatedBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda-emulated"; }
  std::string_view emulates() const override { return "cuda"; }
  std::vector<std::string> options() const override { return {"emulation"}; }
  Availability availability() const override {
#if defined(__x86_64__)
    // The kernels are compiled for processors with fused multiply-add (x86-64-v3).
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
      return {false, "this processor has no AVX2 with fused multiply-add", ""};
    }
#endif
    return {};
  }
  std::vector<DeviceInfo> devices() const override {
    if (!availability().available) return {};
    return {emulation::describe_emulated(usable_processors(), emulation::Mode::Plain)};
  }
  std::unique_ptr<Device> open(const DeviceOptions& options) const override {
    const auto here = availability();
    if (!here.available) throw DeviceError("cuda-emulated: " + here.reason);
    return std::make_unique<emulation::EmulatedDevice>(options);
  }
};

}  // namespace

}  // namespace triptych::cuda

namespace triptych {

void add_cuda_backends(std::vector<const Backend*>& list) {
  static const cuda::GpuBackend gpu;
  static const cuda::EmulatedBackend emulated;
  list.push_back(&gpu);
  list.push_back(&emulated);
}

}  // namespace triptych
