// Interface of every simulator of an MMU, the RTL and the twin: its memory, programs, counters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Why the array issued nothing in a cycle. See "Counters" in docs/reference/mmu.md.
enum class Stall : std::uint8_t {
  Drain,        ///< nothing to compute: dispatch, descriptors, fill, drain, the last stores
  Activations,  ///< waits for a token of the load unit
  Output,       ///< waits for a token of the store unit
  Dram,         ///< no weight tile has arrived
  Weights,      ///< the tile is on its way into the array
  Accumulator,  ///< the accumulators it adds to are still in flight
  InFlight,     ///< too many matmuls have not finished
};
inline constexpr int kStalls = 7;
std::string_view to_string(Stall stall);

/// Work of the vector unit. Values are lanes of a row: all of them, in use or not.
struct VectorCounts {
  std::uint64_t cycles = 0;             ///< in which one of its instructions runs
  std::uint64_t reads = 0, writes = 0;  ///< of its memory
  std::uint64_t adds = 0, multiplies = 0, fmas = 0;
  std::uint64_t others = 0;  ///< comparisons, selections, operations on bits and integers

  VectorCounts& operator+=(const VectorCounts& other);
  bool operator==(const VectorCounts&) const = default;
};

struct Counters {
  std::uint64_t cycles = 0;
  std::uint64_t issue_cycles = 0;    ///< cycles that put a position into the array
  std::uint64_t padding_cycles = 0;  ///< issue slots of a transposed stream beyond its count
  std::array<std::uint64_t, kStalls> stall_cycles{};
  std::uint64_t macs = 0;  ///< of rows and columns in use, taps in the padding included
  std::uint64_t buffer_reads = 0, buffer_writes = 0;  ///< elements
  std::uint64_t accumulator_reads = 0, accumulator_writes = 0;
  std::uint64_t weight_reads = 0;                  ///< elements out of the FIFO into the array
  std::array<std::uint64_t, kUnits> dram_bytes{};  ///< asked for, by unit
  std::uint64_t dram_bursts = 0, dram_row_misses = 0;
  /// Cycles with a request while another array had the DRAM's ports.
  std::uint64_t arbiter_wait_cycles = 0;
  std::array<std::uint64_t, kUnits> instructions{};
  VectorCounts vector;

  Counters& operator+=(const Counters& other);
  bool operator==(const Counters&) const = default;
};

struct NamedCount {
  std::string name;  ///< "stall_drain_cycles"
  std::uint64_t value = 0;
};
/// Every counter, in the order of the manual. Those of a vector unit are 0 on other machines. That
/// of the arbiter is there where an array has waited.
std::vector<NamedCount> named_counts(const Counters& counters);
/// True for a name of any counter.
bool is_counter(std::string_view name);
/// The counters with these values, by the names of named_counts. value_of gives 0 for names that
/// are not there.
Counters counters_from(const std::function<std::uint64_t(const std::string&)>& value_of);

/// Start: the cycle in which the unit removes it from its queue. End: the first cycle in which a
/// token that it gives is visible (for a matmul the store unit's).
struct InstructionTimes {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool operator==(const InstructionTimes&) const = default;
};

/// Cycles from begin up to end without an issue of the array, for one cause.
struct StallInterval {
  Stall cause = Stall::Drain;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Registers of one cell of the array behind a clock edge, as bits.
struct CellState {
  std::uint16_t activation = 0;  ///< bf16 or int8
  std::uint16_t weight = 0;      ///< the one in use
  bool enabled = false;          ///< multiplies. Else passes the sum of the row above on
  std::uint32_t sum = 0;         ///< passed to the row below at the last edge
  /// Weights behind the bit that enables them: the one that waits for its turn, and the one that
  /// passes by on its way down.
  std::uint32_t waiting = 0, passing = 0;
};

struct RunReport {
  Counters counters;
  std::vector<InstructionTimes> times;  ///< per instruction, when asked for
  std::vector<StallInterval> stalls;    ///< in order, with the times, by the twin only
  /// Per cycle from cells_begin on, row by row, by an RTL machine with the fast array only.
  std::vector<CellState> cells = {};
};

/// A multiply-add of one PE: numbers of bf16 and binary32, or whole ones.
struct PeStep {
  std::uint64_t cycle = 0;
  std::size_t instruction = 0;  ///< the matmul
  std::uint32_t slot = 0;       ///< of it
  std::uint32_t row = 0, column = 0;
  double activation = 0, weight = 0, sum_in = 0, sum_out = 0;
};
using PeWatcher = std::function<void(const PeStep&)>;

struct RunOptions {
  bool record_times = false;
  /// Counters of an earlier run of this very program: no latency depends on data, so the twin
  /// need not check and time it again. Requested times are always simulated.
  const Counters* counted = nullptr;
  const PeWatcher* pes = nullptr;  ///< told of every multiply-add, matmul by matmul (twin only)
  std::string waves;       ///< FST file to write (RTL only), a save file next to it. Empty: none
  std::string waves_name;  ///< path that the save file gives the FST file. Empty: the same
  std::uint64_t waves_begin = 0, waves_end = ~std::uint64_t{0};
  std::uint64_t cells_begin = 0, cells_end = 0;  ///< cycles with recorded cells
  std::uint64_t max_cycles = ~std::uint64_t{0};  ///< an end before this one, or HardwareFault (RTL)
};

/// max_cycles of RTL for a program that takes `foreseen` cycles on the twin: enough for slower
/// hardware, too, and for the machine's own timeout to come first.
inline std::uint64_t watchdog_cycles(std::uint64_t foreseen) { return 4 * foreseen + 200'000; }

/// The RTL behaves in a way that no program can cause: it breaks an assertion of its own, leaves
/// the DRAM, or never ends. The message names the cycle. For a machine that waits, the cause for
/// each unit.
class HardwareFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Two simulators of one machine differ, in bits or in cycles. The message names the first place.
class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A machine with its memory. Not thread-safe. Buffer, accumulators and DRAM keep their contents
/// between programs. Counters and cycles start at 0 for each.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual const MachineConfig& config() const = 0;
  /// The DRAM, config().dram_bytes long. Pages are only backed once touched.
  virtual std::span<std::byte> dram() = 0;
  /// Runs to the Halt. Throws std::invalid_argument for a malformed program (verify says why) and
  /// std::runtime_error when the machine stops with an error status, HardwareFault when the RTL is
  /// wrong.
  virtual RunReport run(const Program& program, const RunOptions& options = {}) = 0;
  /// Raw contents, for comparison: `rows` x buffer_rows elements row by row. Accumulators have 32
  /// bits.
  virtual std::vector<std::uint16_t> read_buffer() = 0;
  virtual std::vector<std::uint32_t> read_accumulators() = 0;
};

/// The arrays of a machine, config().arrays, on one DRAM. Each keeps its memories between programs.
/// Not thread-safe.
class Arrays {
 public:
  virtual ~Arrays() = default;
  virtual const MachineConfig& config() const = 0;
  virtual std::span<std::byte> dram() = 0;
  /// Starts a program on each array in the same cycle, and runs all to their Halts. Throws as
  /// Machine::run, and std::invalid_argument for a program that touches bytes of the DRAM which
  /// another one writes. The only options are record_times and max_cycles.
  virtual std::vector<RunReport> run(std::span<const Program> programs,
                                     const RunOptions& options = {}) = 0;
  virtual std::vector<std::uint16_t> read_buffer(std::size_t array) = 0;
  virtual std::vector<std::uint32_t> read_accumulators(std::size_t array) = 0;
};

}  // namespace triptych::mmu
