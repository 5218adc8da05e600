// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_backend.h"

#include "backends/cuda/emulation/emulated_device.h"

namespace triptych::cuda {
namespace {

class EmulatedBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda-emulated"; }
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

const Backend& emulated_backend() {
  static const EmulatedBackend instance;
  return instance;
}

}  // namespace triptych::cuda
