// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/systolic_backend.h"

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/systolic_device.h"

namespace triptych::systolic {
namespace {

class SystolicBackend : public Backend {
 public:
  std::string_view name() const override { return "systolic"; }
  std::string_view host() const override { return "cpu"; }
  std::vector<std::string> options() const override { return {"machine", "simulate"}; }
  Availability availability() const override { return {}; }
  std::vector<DeviceInfo> devices() const override {
    std::vector<DeviceInfo> devices;
    for (const auto& name : mmu::machine_names()) {
      const auto machine = mmu::find_machine(name);
      if (machine.pe == mmu::PeKind::Bf16) devices.push_back(describe(machine, "twin"));
    }
    return devices;
  }
  std::unique_ptr<Device> open(const DeviceOptions& options) const override {
    return std::make_unique<SystolicDevice>(options);
  }
};

}  // namespace

const Backend& backend() {
  static const SystolicBackend instance;
  return instance;
}

KernelTable kernel_table() {
  static const KernelList list = [] {
    KernelList entries;
    add_conv_kernels(entries);
    add_conv_transpose_kernels(entries);
    add_conv_weight_gradient_kernels(entries);
    add_matmul_kernels(entries);
    return entries;
  }();
  return list;
}

}  // namespace triptych::systolic
