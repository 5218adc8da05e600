// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/cpu_device.h"

namespace triptych::cpu {
namespace {

class CpuBackend : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Availability availability() const override { return {}; }
  std::vector<DeviceInfo> devices() const override { return {describe_cpu(usable_processors())}; }
  std::unique_ptr<Device> open(const DeviceOptions& options) const override {
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
