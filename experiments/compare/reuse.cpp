// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/reuse.h"

#include <algorithm>
#include <string_view>

#include "experiments/machines/array_machine.h"

namespace triptych::compare {
namespace {

using machines::EnergyAction;
using machines::EnergyPart;
using machines::EnergyTable;

constexpr double kWord = 4;
constexpr double kByteBits = 8;
constexpr std::string_view kArrayPrefix = "mmu_";

double step_macs(const StepAnatomy& anatomy) {
  double macs = 0;
  for (const auto& layer : anatomy.layers) macs += layer.macs;
  return macs;
}

double lanes_of(const StepAnatomy& anatomy) {
  return static_cast<double>(anatomy.facts.simd_lanes.value_or(1));
}

/// The array's actions in the step, for one image.
std::vector<EnergyPart> array_parts(const StepAnatomy& anatomy, double images,
                                    const mmu::MachineConfig& machine, const EnergyTable& table) {
  const auto counts = mmu::counters_from([&](const std::string& name) {
    const auto found = anatomy.counters.find(std::string(kArrayPrefix) + name);
    return found == anatomy.counters.end() ? 0 : static_cast<std::uint64_t>(found->second);
  });
  auto parts = machines::array_energy(counts, machine, table);
  for (auto& part : parts) part.events /= images;
  return parts;
}

/// The sampled multiply-adds and their accesses, for `macs` of them.
std::vector<EnergyPart> sampled_parts(const Reuse& reuse, double macs, const EnergyTable& table) {
  const double scale = macs / reuse.macs;  // factor from the sample to one image
  std::vector<EnergyPart> parts = {{"multiply", macs, table.of(EnergyAction::Float32Multiply)},
                                   {"add", macs, table.of(EnergyAction::Float32Add)}};
  if (reuse.lanes > 0)
    parts.push_back(
        {"instructions of multiply-adds", macs / reuse.lanes, table.of(EnergyAction::Instruction)});
  for (const auto& level : reuse.levels) {
    if (level.price == LevelPrice::None) continue;
    const auto& bit = level.price == LevelPrice::OnChip ? table.memory_bit(level.capacity)
                                                        : table.of(EnergyAction::DramBit);
    parts.push_back({level.level, kByteBits * level.bytes * scale, bit});
  }
  return parts;
}

}  // namespace

std::optional<Reuse> reuse_by_blocking(const StepAnatomy& anatomy, std::int64_t batch) {
  Reuse reuse = {.levels = {}, .images = static_cast<double>(batch), .lanes = lanes_of(anatomy)};
  for (const auto& layer : anatomy.layers) {
    if (layer.macs == 0 || layer.traffic.empty()) continue;
    reuse.macs += layer.macs;
    reuse.levels.resize(layer.traffic.size());
    for (std::size_t i = 0; i < layer.traffic.size(); ++i) {
      const auto& moved = layer.traffic[i];
      auto& level = reuse.levels[i];
      level.level = moved.level;
      level.reads += (moved.read_bytes > 0 ? moved.read_bytes : moved.bytes) / kWord;
      level.bytes += moved.bytes;
    }
  }
  if (reuse.macs == 0) return std::nullopt;
  reuse.covers = reuse.macs / step_macs(anatomy);
  for (auto& level : reuse.levels) {
    level.how = "blocking";
    const bool first = level.level == "L1";
    const bool cache = first || level.level == "L2";
    level.price = cache ? LevelPrice::OnChip : LevelPrice::Dram;
    level.capacity = first   ? anatomy.facts.cache_or(1, 32768)
                     : cache ? anatomy.facts.cache_or(2, 1048576)
                             : 0;
  }
  return reuse;
}

std::optional<Reuse> reuse_of_array(const StepAnatomy& anatomy, std::int64_t batch,
                                    const training::ExecutionConfig& config) {
  const auto counted = [&](const char* name) {
    const auto found = anatomy.counters.find(name);
    return found == anatomy.counters.end() ? 0.0 : found->second;
  };
  Reuse reuse = {.levels = {},
                 .macs = step_macs(anatomy),
                 .covers = 1,
                 .images = static_cast<double>(batch),
                 .executed_macs = counted("mmu_macs"),
                 .array = machines::array_of(config)};
  const std::string how =
      config.simulate == mmu::Simulation::Twin ? "the twin's counters" : "RTL counters";
  if (reuse.executed_macs == 0) return std::nullopt;
  const auto add = [&](const char* name, double reads, double writes, double size) {
    reuse.levels.push_back({.level = name,
                            .reads = reads,
                            .bytes = (reads + writes) * size,
                            .kind = TimeKind::Simulated,
                            .how = how});
  };
  const double operand = reuse.array->element_bytes();
  const double weights = counted("mmu_weight_reads");
  add("weight FIFO", weights, weights, operand);
  add("accumulators", counted("mmu_accumulator_reads"), counted("mmu_accumulator_writes"), kWord);
  add("unified buffer", counted("mmu_buffer_reads"), counted("mmu_buffer_writes"), operand);
  if (reuse.array->has_vector_unit())
    add("vector memory", counted("mmu_vector_reads"), counted("mmu_vector_writes"), kWord);
  const double loaded = counted("mmu_dram_load_bytes") + counted("mmu_dram_weights_bytes");
  reuse.levels.push_back({.level = "DRAM",
                          .reads = loaded / operand,
                          .bytes = loaded + counted("mmu_dram_store_bytes"),
                          .kind = TimeKind::Simulated,
                          .how = how});
  return reuse;
}

std::vector<EnergyPart> energy_per_image(const Reuse& reuse, const StepAnatomy& anatomy,
                                         std::int64_t batch, const EnergyTable& table) {
  const auto images = static_cast<double>(batch);
  auto parts = reuse.array ? array_parts(anatomy, images, *reuse.array, table)
                           : sampled_parts(reuse, step_macs(anatomy) / images, table);
  double flops = 0, bytes = 0;
  for (const auto& layer : anatomy.layers) {
    if (layer.macs > 0 || (reuse.array && layer.device != "host")) continue;
    flops += layer.cost.flops;
    bytes += layer.cost.bytes;
  }
  parts.push_back({"other nodes, arithmetic", flops / images, table.of(EnergyAction::Float32Add)});
  parts.push_back(
      {"other nodes, memory", kByteBits * bytes / images, table.of(EnergyAction::DramBit)});
  return parts;
}

}  // namespace triptych::compare
