// Parameters of one MMU, with a JSON file per machine in systolic/machines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::mmu {

enum class PeKind { Bf16, Int8 };

/// When the next weight tile may enter the array behind the one in use. All three use the same
/// wires. The slower two wait as simpler hardware would have to.
enum class WeightScheme {
  PassThrough,  ///< at once: hidden when a stream has at least `rows` positions
  PerColumn,    ///< when the swap has passed the rows: needs 2 rows
  Drained,      ///< when the swap has left the array: needs rows + columns + rows
};

/// Dataflows of the array. Both kinds but the first can run programs of either dataflow.
enum class Dataflows {
  WeightStationary,  ///< PEs hold weights, sums move down the columns
  OutputStationary,  ///< PEs hold sums, weights move down the columns: what the planner uses
  Both,              ///< the planner chooses
};

/// Reads that may be outstanding at each DRAM port of several arrays (Reads in mmu_arbiter.sv).
inline constexpr std::uint32_t kSharedReads = 256;

/// Two arrays in RTL with the same bits and cycles: one block that simulates fast, or a grid of
/// PEs, each a module of its own in the waves.
enum class ArrayKind { Fast, Grid };

std::string_view to_string(PeKind pe);
std::string_view to_string(WeightScheme scheme);
std::string_view to_string(Dataflows dataflows);
std::string_view to_string(ArrayKind array);
/// Throws std::invalid_argument with the names that exist.
ArrayKind array_kind(std::string_view name);

struct DramConfig {
  std::string preset;              ///< "ddr3", "hbm", "ideal", or "custom"
  double bytes_per_cycle = 0;      ///< 0: unlimited
  std::uint32_t latency = 1;       ///< cycles from grant to data, without the transfer
  std::uint32_t burst_bytes = 64;  ///< power of two
  std::uint32_t row_bytes = 2048;  ///< power of two
  std::uint32_t banks = 8;
  std::uint32_t row_miss = 0;  ///< cycles that opening another row of a bank blocks the bus
};

struct MachineConfig {
  std::string name;
  std::uint32_t rows = 16;     ///< 2 .. 256
  std::uint32_t columns = 16;  ///< 2 .. 256
  PeKind pe = PeKind::Bf16;
  std::uint32_t pe_latency = 1;  ///< cycles that a sum takes through a PE, 1 .. 3
  double clock_mhz = 700;
  std::string clock_source;     ///< where that comes from, in words. Empty: nobody says
  std::string clock_closed_in;  ///< the library of gates that it closes in. Empty: it is a target
  std::uint32_t buffer_rows = 8192;       ///< of `rows` elements each, a power of two
  std::uint32_t accumulator_rows = 2048;  ///< of `columns` values each, a power of two, <= 32768
  std::uint32_t weight_tiles = 4;         ///< slots of the weight FIFO
  std::uint32_t queue_depth = 16;         ///< instructions per unit
  WeightScheme weight_scheme = WeightScheme::PassThrough;
  Dataflows dataflows = Dataflows::WeightStationary;
  std::uint32_t vector_lanes = 16;  ///< of the modelled host vector unit
  /// Rows of the array's own vector unit, of `columns` values each, a power of two. 0: it has none.
  std::uint32_t vector_rows = 0;
  DramConfig dram;
  std::uint64_t dram_bytes = std::uint64_t{1} << 30;
  std::uint32_t arrays = 1;        ///< that share the DRAM, 1 .. 8
  std::optional<ArrayKind> array;  ///< the RTL that may simulate it. nullopt: either
  std::string rtl;                 ///< folder of modules over ours, of the RTL alone. Empty: none
  std::vector<std::string> plusargs;  ///< "fault=3": of $value$plusargs in its RTL, in no file
  std::string source;                 ///< the argument of find_machine. Empty: nothing

  std::uint32_t element_bytes() const { return pe == PeKind::Bf16 ? 2 : 1; }
  bool has_vector_unit() const { return vector_rows > 0; }
  bool has_output_stationary() const { return dataflows != Dataflows::WeightStationary; }
  /// Channels of one buffer row under a `log2_group`: a power of two, or all rows.
  std::uint32_t group(std::uint32_t log2_group) const {
    return std::min(std::uint32_t{1} << log2_group, rows);
  }
  /// Is there such a group, and does it divide the rows? One name each: of 12 rows 0, 1, 2 and 4.
  bool has_group(std::uint32_t log2_group) const {
    return log2_group <= 8 && std::uint32_t{1} << log2_group < 2 * rows &&
           rows % group(log2_group) == 0;
  }
  /// A sum's way down a column, in cycles.
  std::uint32_t chain_cycles() const { return rows * pe_latency; }
  /// The cycle that computes a product before its sum arrives: a PE of several stages has one.
  std::uint32_t product_cycles() const { return pe_latency > 1 ? 1 : 0; }
  /// Stages of the output unit.
  std::uint32_t output_cycles() const { return pe_latency > 1 ? 11 : 1; }
};

/// Throws std::invalid_argument with the name of the value out of range.
void validate(const MachineConfig& machine);
/// From JSON text or a file. Unknown keys are errors. Throws std::invalid_argument.
MachineConfig parse_machine(std::string_view json);
std::string to_json(const MachineConfig& machine);
/// A shipped machine ("mmu16"), JSON itself, or the path of a JSON file. `rtl` in it is relative to
/// the file. With a folder of modules over ours "mmu16+FOLDER". Throws std::invalid_argument with
/// the names that exist.
MachineConfig find_machine(std::string_view name_or_path);
std::vector<std::string> machine_names();
/// The preset's figures at this clock. Throws std::invalid_argument with the names that exist.
DramConfig dram_preset(std::string_view name, double clock_mhz);

}  // namespace triptych::mmu
