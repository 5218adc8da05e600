// Facts that a device tells of itself, for models of it and for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace triptych {

/// Each fact where it is known and applies.
struct DeviceFacts {
  std::optional<std::int64_t> threads;  ///< of the processor that computes

  // A processor.
  std::optional<std::string> simd;         ///< "AVX-512"
  std::optional<std::string> tile_unit;    ///< "AMX", or why there is none
  std::optional<std::string> dot_unit;     ///< its products of pairs, or why there are none
  std::optional<std::int64_t> simd_lanes;  ///< float32 values of one of its vectors
  /// Bytes of the data cache of each level from 1 on, per core or shared.
  std::map<int, double> cache_bytes;

  // A GPU, or its emulation.
  std::optional<std::string> compute_capability;  ///< "9.0"
  std::optional<std::int64_t> multiprocessors;
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> shared_bytes_per_block;
  std::optional<std::int64_t> memory_bus_bits;
  /// Peaks that its clocks promise (modelled), in FLOP/s and byte/s.
  std::optional<double> peak_f32_flops, peak_bf16_flops, peak_memory_bytes_per_second;
  std::map<std::string, std::string> libraries;  ///< the versions of those that were found
  std::optional<std::string> emulation;          ///< "plain", "counted" or "checked"

  // A systolic array.
  std::optional<std::string> machine;   ///< "mmu16"
  std::optional<std::string> simulate;  ///< "twin", "rtl" or "both"
  std::optional<std::string> format;    ///< operand type: "bf16" or "int8"
  std::optional<double> clock_mhz;
  std::optional<std::int64_t> rows, columns;
  std::optional<std::int64_t> vector_lanes;  ///< values that its host's vector unit takes a cycle
  std::optional<std::string> dram;           ///< preset and bandwidth
  std::optional<std::int64_t> buffer_bytes, accumulator_bytes;

  /// Peak FLOP/s on operands of "f32" or "bf16" from clocks and units (modelled): two per cycle for
  /// each element of an array, for every format.
  std::optional<double> peak_flops(std::string_view of) const;
  /// Bytes of the data cache of that level, or `otherwise` where they are not known.
  double cache_or(int level, double otherwise) const;
};

/// Facts that are known, by name, as `triptych devices` prints them.
std::map<std::string, std::string> to_properties(const DeviceFacts& facts);

}  // namespace triptych
