// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/device_facts.h"

#include <fmt/core.h>

namespace triptych {

std::optional<double> DeviceFacts::peak_flops(std::string_view of) const {
  if (rows && columns && clock_mhz)
    return 2 * static_cast<double>(*rows * *columns) * *clock_mhz * 1e6;
  return of == "bf16" ? peak_bf16_flops : peak_f32_flops;
}

double DeviceFacts::cache_or(int level, double otherwise) const {
  const auto found = cache_bytes.find(level);
  return found == cache_bytes.end() ? otherwise : found->second;
}

std::map<std::string, std::string> to_properties(const DeviceFacts& facts) {
  auto properties = facts.libraries;
  const auto add = [&](const char* name, const auto& fact, const char* text = "{}") {
    if (fact) properties[name] = fmt::format(fmt::runtime(text), *fact);
  };
  add("threads", facts.threads);
  add("simd", facts.simd);
  add("tile_unit", facts.tile_unit);
  add("dot_unit", facts.dot_unit);
  for (const auto& [level, bytes] : facts.cache_bytes)
    properties[fmt::format("l{}{}_bytes", level, level == 1 ? "d" : "")] =
        fmt::format("{:.0f}", bytes);
  add("compute_capability", facts.compute_capability);
  add("multiprocessors", facts.multiprocessors);
  add("memory_bytes", facts.memory_bytes);
  add("l2_bytes", facts.l2_bytes);
  add("shared_bytes_per_block", facts.shared_bytes_per_block);
  add("memory_bus_bits", facts.memory_bus_bits);
  add("peak_f32_flops", facts.peak_f32_flops, "{:.4g}");
  add("peak_bf16_flops", facts.peak_bf16_flops, "{:.4g}");
  add("peak_memory_bytes_per_second", facts.peak_memory_bytes_per_second, "{:.4g}");
  add("emulation", facts.emulation);
  add("machine", facts.machine);
  add("simulate", facts.simulate);
  add("format", facts.format);
  add("clock_mhz", facts.clock_mhz);
  add("rows", facts.rows);
  add("columns", facts.columns);
  add("vector_lanes", facts.vector_lanes);
  add("dram", facts.dram);
  add("buffer_bytes", facts.buffer_bytes);
  add("accumulator_bytes", facts.accumulator_bytes);
  return properties;
}

}  // namespace triptych
