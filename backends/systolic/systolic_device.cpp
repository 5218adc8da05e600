// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/systolic_device.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "backends/systolic/lowering/tiling_choice.h"
#include "backends/systolic/systolic_backend.h"
#include "core/base/memory_budget.h"
#include "core/runtime/host_buffer.h"
#include "systolic/driver/machines.h"

namespace triptych::systolic {
namespace {

void check(const DeviceOptions& options) {
  for (const auto& [name, value] : options.extra) {
    if (std::ranges::count(backend().options(), name) > 0) continue;
    throw InvalidArgument(fmt::format("the systolic backend has no option \"{}\"; it takes {}",
                                      name, fmt::join(backend().options(), ", ")));
  }
}

std::string option(const DeviceOptions& options, const std::string& name,
                   const std::string& otherwise) {
  const auto found = options.extra.find(name);
  return found == options.extra.end() || found->second.empty() ? otherwise : found->second;
}

mmu::MachineConfig find_machine(const DeviceOptions& options) {
  check(options);
  try {
    return mmu::find_machine(option(options, "machine", std::string(mmu::kDefaultMachine)));
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument(error.what());
  }
}

/// Number of ranks that have an array each of this machine. 1: they have machines of their own.
std::uint32_t sharing_ranks(const DeviceOptions& options, const mmu::MachineConfig& machine) {
  const auto ranks = static_cast<std::uint32_t>(std::stoul(option(options, "ranks", "1")));
  const auto index = static_cast<std::uint32_t>(options.index);
  if (machine.arrays == 1 || ranks == 1) {
    if (index == 0) return 1;
    throw InvalidArgument(fmt::format(
        "systolic:{} does not exist; one machine is opened at a time, chosen by the option machine",
        index));
  }
  if (ranks > machine.arrays)
    throw InvalidArgument(fmt::format(
        "{} ranks on the {} arrays of the machine {}; take fewer, or give its file more \"arrays\" "
        "(at most 8)",
        ranks, machine.arrays, machine.name));
  if (option(options, "simulate", "twin") != "twin")
    throw InvalidArgument(
        "only the twin simulates several arrays on one memory; leave out the option simulate, or "
        "the ranks");
  return ranks;
}

/// The machine of one rank, with its part of the memory.
mmu::MachineConfig part_of(mmu::MachineConfig machine, std::uint32_t ranks) {
  if (ranks > 1) machine.dram_bytes = mmu::dram_part_bytes(machine);
  return machine;
}

mmu::Simulation simulation_from(const std::string& name) {
  for (const auto& [simulation, known] : mmu::kSimulationNames)
    if (name == known) return simulation;
  throw InvalidArgument(
      fmt::format("unknown simulation \"{}\"; the option simulate takes twin, rtl or both", name));
}

std::unique_ptr<mmu::Machine> open(const mmu::MachineConfig& machine, const std::string& simulate) {
  const auto simulation = simulation_from(simulate);
  try {
    return mmu::open_machine(machine, simulation);
  } catch (const std::runtime_error& error) {
    throw DeviceError(error.what());
  }
}

/// Numbers of a machine that breaks its promises are wrong ones.
mmu::RunReport run_exactly(mmu::Machine& machine, const mmu::Program& program,
                           const mmu::RunOptions& options) {
  try {
    return machine.run(program, options);
  } catch (const mmu::Mismatch& mismatch) {
    throw NumericError(mismatch.what());
  } catch (const mmu::HardwareFault& fault) {
    throw NumericError(fault.what());
  }
}

}  // namespace

SystolicDevice::SystolicDevice(const DeviceOptions& options)
    : shared_(find_machine(options)),
      ranks_(sharing_ranks(options, shared_)),
      array_(static_cast<std::uint32_t>(options.index)),
      config_(part_of(shared_, ranks_)),
      machine_(open(config_, option(options, "simulate", "twin"))),
      info_(describe(config_, option(options, "simulate", "twin"))),
      lowering_(config_, tiling_choice(option(options, "tiling", ""))) {}

SystolicDevice::~SystolicDevice() { memory_budget().give_back(counted_dram_); }

void SystolicDevice::count_dram(std::int64_t bytes) {
  const auto needed = static_cast<std::size_t>(bytes);
  if (needed <= counted_dram_) return;
  memory_budget().take(needed - counted_dram_, "the DRAM of the simulated machine");
  counted_dram_ = needed;
}

KernelTable SystolicDevice::own_kernels() const { return kernel_table(config_); }

std::unique_ptr<DeviceBuffer> SystolicDevice::allocate(std::size_t bytes) {
  try {
    return std::make_unique<HostBuffer>(bytes);
  } catch (const MemoryLimitReached&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw DeviceError(fmt::format(
        "systolic: {} MiB are needed at once, more than there are; use a smaller batch or model",
        bytes >> 20));
  }
}

void SystolicDevice::upload(std::byte* device_target, const std::byte* host_source,
                            std::size_t bytes) {
  if (bytes > 0) std::memcpy(device_target, host_source, bytes);
}

void SystolicDevice::download(std::byte* host_target, const std::byte* device_source,
                              std::size_t bytes) {
  if (bytes > 0) std::memcpy(host_target, device_source, bytes);
}

void SystolicDevice::submit(int, const std::function<void(Stream*)>& enqueue) { enqueue(nullptr); }

RunTotals& RunTotals::operator+=(const RunTotals& other) {
  counters += other.counters;
  bytes_in += other.bytes_in;
  bytes_out += other.bytes_out;
  useful_macs += other.useful_macs;
  runs += other.runs;
  return *this;
}

RunTotals SystolicDevice::run(const RunTotals& work, const mmu::Program& program,
                              const std::optional<mmu::Counters>& counted) {
  mmu::RunOptions options = watcher_ ? watcher_->starts(program) : mmu::RunOptions{};
  std::optional<mmu::Counters> known = counted;
  if (!known && ranks_ > 1) known = mmu::counters_among(program, shared_, ranks_, array_);
  if (known) {
    options.counted = &*known;
    options.max_cycles = mmu::watchdog_cycles(known->cycles);
  }
  mmu::RunReport report = run_exactly(*machine_, program, options);
  if (ranks_ > 1) report.counters = *known;
  if (watcher_) watcher_->ended(program, report);
  const RunTotals totals = {report.counters, work.bytes_in, work.bytes_out, work.useful_macs, 1};
  totals_ += totals;
  return totals;
}

Duration SystolicDevice::elapsed() {
  return {static_cast<double>(totals_.counters.cycles) / (config_.clock_mhz * 1e6),
          TimeKind::Simulated};
}

std::map<std::string, double> SystolicDevice::counters() const {
  return named_counters(config_, totals_);
}

std::vector<LevelBandwidth> SystolicDevice::level_bandwidths() const {
  const double clock = config_.clock_mhz * 1e6;
  const double row = static_cast<double>(config_.rows) * config_.element_bytes();
  // Each bank reads one element and writes one per cycle: of a triad's three, two are read.
  std::vector<LevelBandwidth> levels = {{.level = "unified buffer",
                                         .capacity_bytes = row * config_.buffer_rows,
                                         .copy_bytes_per_s = 2 * row * clock,
                                         .triad_bytes_per_s = 1.5 * row * clock,
                                         .kind = TimeKind::Modelled}};
  const double dram = config_.dram.bytes_per_cycle * clock;
  if (dram > 0) {  // else it is unlimited
    levels.push_back({.level = "memory",
                      .capacity_bytes = static_cast<double>(config_.dram_bytes),
                      .copy_bytes_per_s = dram,
                      .triad_bytes_per_s = dram,
                      .kind = TimeKind::Modelled});
  }
  return levels;
}

DeviceInfo describe(const mmu::MachineConfig& machine, std::string_view simulation) {
  DeviceInfo info = {.name = "systolic:" + machine.name, .time_kind = TimeKind::Simulated};
  info.description =
      fmt::format("{} x {} {} systolic array at {}, simulated by {}", machine.rows, machine.columns,
                  machine.pe == mmu::PeKind::Bf16 ? "bf16" : "int8", mmu::clock_text(machine),
                  simulation == "both" ? "RTL and twin" : simulation);
  auto& facts = info.facts;
  facts.machine = machine.name;
  facts.simulate = simulation;
  facts.format = machine.pe == mmu::PeKind::Bf16 ? "bf16" : "int8";
  facts.clock_mhz = machine.clock_mhz;
  facts.rows = machine.rows;
  facts.columns = machine.columns;
  facts.vector_lanes = machine.vector_lanes;
  facts.dram =
      fmt::format("{}, {:.4g} bytes per cycle", machine.dram.preset, machine.dram.bytes_per_cycle);
  facts.buffer_bytes = std::int64_t{machine.buffer_rows} * machine.rows * machine.element_bytes();
  facts.accumulator_bytes = std::int64_t{machine.accumulator_rows} * machine.columns * 4;
  return info;
}

std::map<std::string, double> named_counters(const mmu::MachineConfig& machine,
                                             const RunTotals& totals) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  std::map<std::string, double> named = {
      {"runs", number(totals.runs)},
      {"bytes_packed", number(totals.bytes_in)},
      {"bytes_unpacked", number(totals.bytes_out)},
      {"mmu_useful_macs", number(totals.useful_macs)},
      {"mmu_pe_cycles", number(totals.counters.cycles) * machine.rows * machine.columns}};
  for (const auto& [name, count] : mmu::named_counts(totals.counters))
    named["mmu_" + name] = number(count);
  return named;
}

}  // namespace triptych::systolic
