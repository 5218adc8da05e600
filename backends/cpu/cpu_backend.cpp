// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/simd.h"
#include "core/base/error.h"

namespace triptych::cpu {
namespace {

/// The instruction set that this file, and in a build for one processor all kernels, need.
constexpr Simd compiled_level() {
#if defined(__AVX512F__)
  return Simd::Avx512;
#elif defined(__AVX2__)
  return Simd::Avx2;
#else
  return Simd::Baseline;
#endif
}

class CpuBackend : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Availability availability() const override {
    if (simd_level() >= compiled_level()) return {};
    return {false, "this build is for a processor with other vector instructions",
            "configure with -DTRIPTYCH_SIMD_LEVELS=ALL and build again"};
  }
  std::vector<DeviceInfo> devices() const override {
    if (!availability().available) return {};
    return {describe_cpu(usable_processors())};
  }
  std::unique_ptr<Device> open(const DeviceOptions& options) const override {
    if (const auto here = availability(); !here.available)
      throw DeviceError("cpu: " + here.reason + "; " + here.remedy);
    return std::make_unique<CpuDevice>(options);
  }
};

}  // namespace

const Backend& backend() {
  static const CpuBackend instance;
  return instance;
}

}  // namespace triptych::cpu

namespace triptych {

void add_cpu_backends(std::vector<const Backend*>& list) { list.push_back(&cpu::backend()); }

}  // namespace triptych
