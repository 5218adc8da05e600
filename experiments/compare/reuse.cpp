// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/reuse.h"

#include <algorithm>

namespace triptych::compare {
namespace {

using machines::EnergyPart;

constexpr double kWord = 4;
constexpr double kOperandBytes = 2;  // of the array's

double step_macs(const StepAnatomy& anatomy) {
  double macs = 0;
  for (const auto& layer : anatomy.layers) macs += layer.macs;
  return macs;
}

double lanes_of(const StepAnatomy& anatomy) {
  return static_cast<double>(anatomy.facts.simd_lanes.value_or(1));
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
    level.event = level.level == "L1"   ? &machines::sram_of(anatomy.facts.cache_or(1, 32768))
                  : level.level == "L2" ? &machines::sram_of(anatomy.facts.cache_or(2, 1048576))
                                        : &machines::dram();
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
                 .half = true};
  const std::string how =
      config.simulate == mmu::Simulation::Twin ? "the twin's counters" : "RTL counters";
  if (reuse.executed_macs == 0) return std::nullopt;
  const auto add = [&](const char* name, double reads, double writes, double size,
                       const machines::EnergyEvent& event) {
    reuse.levels.push_back(
        {name, reads, (reads + writes) * size, &event, TimeKind::Simulated, how});
  };
  const double weights = counted("mmu_weight_reads");
  add("weight FIFO", weights, weights, kOperandBytes, machines::sram_of(1));
  add("accumulators", counted("mmu_accumulator_reads"), counted("mmu_accumulator_writes"), kWord,
      machines::sram_of(static_cast<double>(anatomy.facts.accumulator_bytes.value_or(131072))));
  add("unified buffer", counted("mmu_buffer_reads"), counted("mmu_buffer_writes"), kOperandBytes,
      machines::sram_of(static_cast<double>(anatomy.facts.buffer_bytes.value_or(262144))));
  const double loaded = counted("mmu_dram_load_bytes") + counted("mmu_dram_weights_bytes");
  reuse.levels.push_back({"DRAM", loaded / kOperandBytes, loaded + counted("mmu_dram_store_bytes"),
                          &machines::dram(), TimeKind::Simulated, how});
  return reuse;
}

std::vector<EnergyPart> energy_per_image(const Reuse& reuse, const StepAnatomy& anatomy,
                                         std::int64_t batch) {
  const auto images = static_cast<double>(batch);
  const double macs = step_macs(anatomy) / images;
  const double scale = macs / reuse.macs;  // factor from the sample to one image
  const double executed = reuse.executed_macs > 0 ? reuse.executed_macs * scale : macs;
  std::vector<EnergyPart> parts = {
      {"multiply", executed,
       &machines::energy_of(reuse.half ? "float16 multiply" : "float32 multiply")},
      {"add", executed, &machines::energy_of("float32 add")}};
  if (reuse.lanes > 0)
    parts.push_back({"instructions of multiply-adds", executed / reuse.lanes,
                     &machines::energy_of("instruction")});
  for (const auto& level : reuse.levels) {
    if (level.event == nullptr) continue;
    parts.push_back({level.level, level.bytes * scale / machines::kEnergyAccessBytes, level.event});
  }
  double flops = 0, bytes = 0;
  for (const auto& layer : anatomy.layers) {
    if (layer.macs > 0) continue;
    flops += layer.cost.flops;
    bytes += layer.cost.bytes;
  }
  parts.push_back({"other nodes, arithmetic", flops / images, &machines::energy_of("float32 add")});
  parts.push_back(
      {"other nodes, memory", bytes / images / machines::kEnergyAccessBytes, &machines::dram()});
  return parts;
}

}  // namespace triptych::compare
