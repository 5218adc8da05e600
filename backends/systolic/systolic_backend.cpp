// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/systolic_backend.h"

#include <fmt/core.h>

#include "backends/systolic/kernel_list.h"
#include "backends/systolic/systolic_device.h"

namespace triptych::systolic {
namespace {

class SystolicBackend : public Backend {
 public:
  std::string_view name() const override { return "systolic"; }
  std::string_view host() const override { return "cpu"; }
  std::vector<std::string> options() const override {
    return {"machine", "simulate", "tiling", "ranks"};
  }
  Availability availability() const override { return {}; }
  std::vector<DeviceInfo> devices() const override {
    std::vector<DeviceInfo> devices;
    for (const auto& name : mmu::machine_names()) {
      devices.push_back(describe(mmu::find_machine(name), "twin"));
    }
    return devices;
  }
  std::unique_ptr<Device> open(const DeviceOptions& options) const override {
    return std::make_unique<SystolicDevice>(options);
  }
};

KernelLists all_kernels() {
  KernelLists lists;
  add_all_kernels(lists);
  return lists;
}

Verdict needs_int8(const KernelQuery&) {
  return Verdict::no(
      "the machine multiplies bfloat16 operands; add the option machine mmu16-int8 (or tpu-v1)");
}

Verdict needs_bf16(const KernelQuery&) {
  return Verdict::no(
      "the machine multiplies int8 operands; add the option contract int8 (a network's weights go "
      "through triptych quantize), or the option machine mmu16 and the option contract bf16 (or "
      "bf16-exact)");
}

/// Rows of a vector memory that is large enough for every kernel.
constexpr std::uint32_t kLeastVectorRows = 512;

Verdict needs_vector_rows(const KernelQuery&) {
  return Verdict::no(fmt::format(
      "the vector memory has fewer than {} rows; give the machine's file \"vector_rows\": 1024",
      kLeastVectorRows));
}

std::vector<KernelEntry> with_refusals(std::vector<KernelEntry> kernels,
                                       const std::vector<KernelEntry>& others,
                                       Verdict (*refuse)(const KernelQuery&)) {
  for (auto entry : others) {
    entry.accepts = refuse;
    kernels.push_back(entry);
  }
  return kernels;
}

}  // namespace

KernelTable kernel_table(const mmu::MachineConfig& machine) {
  static const auto bf16 = with_refusals(all_kernels().bf16, all_kernels().int8, &needs_int8);
  static const auto int8 = with_refusals(all_kernels().int8, all_kernels().bf16, &needs_bf16);
  static const auto vector = [] {
    auto kernels = bf16;
    const auto added = all_kernels().vector;
    kernels.insert(kernels.end(), added.begin(), added.end());
    return kernels;
  }();
  static const auto few_rows = with_refusals(bf16, all_kernels().vector, &needs_vector_rows);
  if (machine.has_vector_unit()) return machine.vector_rows < kLeastVectorRows ? few_rows : vector;
  return machine.pe == mmu::PeKind::Bf16 ? bf16 : int8;
}

const Backend& backend() {
  static const SystolicBackend instance;
  return instance;
}

}  // namespace triptych::systolic

namespace triptych {

void add_systolic_backends(std::vector<const Backend*>& list) {
  list.push_back(&systolic::backend());
}

}  // namespace triptych
