// A device with kernels that run on a simulated MMU. Its memory is the memory of the machine's
// host: float32 tensors as the CPU has them. Operands cross into the machine's own DRAM in each
// kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "backends/systolic/lowering/stream_plan.h"
#include "core/runtime/device.h"
#include "systolic/driver/driver.h"
#include "systolic/driver/watcher.h"

namespace triptych::systolic {

/// Sums over programs.
struct RunTotals {
  mmu::Counters counters;
  std::int64_t bytes_in = 0;   ///< of operands, packed into DRAM
  std::int64_t bytes_out = 0;  ///< of results
  std::int64_t useful_macs = 0;
  std::int64_t runs = 0;

  RunTotals& operator+=(const RunTotals& other);
};

/// Instructions of the longest program that a kernel keeps: 2 MiB. Longer ones belong to arrays of
/// few PEs, where a network has gigabytes of instructions, and making one again takes a small part
/// of the time of simulating it.
inline constexpr std::size_t kKeptInstructions = std::size_t{1} << 16;

class SystolicDevice : public Device, public mmu::Watched {
 public:
  /// Options: "machine" (a shipped machine's name or the path of a JSON file, mmu16 when absent),
  /// "simulate" (twin when absent, rtl or both), "tiling" (sizes in the form of
  /// lowering/tiling_choice.h) and "ranks". On a machine with several arrays the device of rank
  /// `index` is one of them. Its cycles are those of a run in which every rank's array executes
  /// the same program, from the same cycle on. Throws InvalidArgument for others and DeviceError
  /// when this build has no RTL of the machine.
  explicit SystolicDevice(const DeviceOptions& options);
  ~SystolicDevice() override;

  const DeviceInfo& info() const override { return info_; }
  KernelTable own_kernels() const override;
  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override;
  void upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) override;
  void download(std::byte* host_target, const std::byte* device_source, std::size_t bytes) override;
  void submit(int segment, const std::function<void(Stream*)>& enqueue) override;
  void synchronize() override {}
  Duration elapsed() override;
  std::map<std::string, double> counters() const override;
  std::vector<LevelBandwidth> level_bandwidths() const override;

  const mmu::MachineConfig& machine() const override { return config_; }
  void watch(mmu::Watcher* watcher) override { watcher_ = watcher; }
  PlanLowering& lowering() { return lowering_; }
  /// The machine's DRAM. Kernels run one after the other and share it from address 0 on.
  std::span<std::byte> dram() override { return machine_->dram(); }
  /// Counts the first `bytes` of the DRAM, which a kernel will use, against the memory budget.
  void count_dram(std::int64_t bytes);
  /// Runs a program. `work`: its bytes and multiply-adds. `counted`: the counts of an earlier run,
  /// if there was one.
  RunTotals run(const RunTotals& work, const mmu::Program& program,
                const std::optional<mmu::Counters>& counted);

 private:
  mmu::MachineConfig shared_;  ///< the whole machine, with the memory of all its arrays
  std::uint32_t ranks_ = 1;    ///< that have an array each
  std::uint32_t array_ = 0;    ///< of this device
  mmu::MachineConfig config_;
  std::unique_ptr<mmu::Machine> machine_;
  DeviceInfo info_;
  PlanLowering lowering_;
  RunTotals totals_;
  std::size_t counted_dram_ = 0;  ///< bytes
  mmu::Watcher* watcher_ = nullptr;
};

/// Name and facts of a device with this machine.
DeviceInfo describe(const mmu::MachineConfig& machine, std::string_view simulation);

/// Counters by name, all whole numbers: "mmu_" before those of mmu::named_counts, mmu_pe_cycles
/// (cycles x PEs), mmu_useful_macs (StreamPlan::macs), bytes_packed, bytes_unpacked, runs
/// (programs).
std::map<std::string, double> named_counters(const mmu::MachineConfig& machine,
                                             const RunTotals& totals);

}  // namespace triptych::systolic
