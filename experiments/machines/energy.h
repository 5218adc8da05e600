// Energy tables: the cost of each action of a machine in one process. A table is a file with the
// source of every figure. It compares organisations, not chips: no compared machine is built in
// that process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::machines {

/// The actions that a table prices. Accesses to memories on the chip are priced by capacity.
enum class EnergyAction {
  Float32Multiply,
  Float32Add,
  Bf16Multiply,
  Int8Multiply,
  Int32Add,
  Instruction,    ///< fetch, decoding and register file of a processor
  RegisterBit,    ///< a bit that moves from one register to the next
  FifoBit,        ///< a bit that enters or leaves the weight FIFO
  DramBit,        ///< a bit from or to the memory outside the chip
  HbmBit,         ///< the same of stacked memory. A table may leave it out
  FlipFlopClock,  ///< one flip-flop in one cycle
  GateLeakage,    ///< one gate of two inputs in one second
  RamBitLeakage,  ///< one bit of a memory on the chip in one second
};
inline constexpr std::size_t kEnergyActions = 13;
std::string_view to_string(EnergyAction action);

/// One line of a table.
struct EnergyEvent {
  std::string name;  ///< "bf16 multiply", "32 KiB SRAM bit"
  double joule = 0;  ///< each
  std::string source;
};

class EnergyTable {
 public:
  /// From the text of a file. `origin` names it in messages. Throws InvalidArgument with the place
  /// of a missing, unknown or impossible member.
  EnergyTable(std::string_view json, const std::string& origin);

  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }
  /// A bit of stacked memory costs as much as one of other DRAM where the table has no price.
  const EnergyEvent& of(EnergyAction action) const;
  /// A bit read from or written to a memory on the chip of that capacity in bytes: the price of the
  /// table's nearest size, by ratio.
  const EnergyEvent& memory_bit(double capacity) const;
  /// Every line, in the order of the enumeration, then the memories.
  std::vector<EnergyEvent> events() const;

 private:
  struct Memory {
    double bytes = 0;
    EnergyEvent bit;
  };
  std::string name_, description_;
  std::array<std::optional<EnergyEvent>, kEnergyActions> actions_;
  std::vector<Memory> memories_;
};

inline constexpr std::string_view kDefaultEnergyTable = "45nm";
/// A shipped table by name ("7nm"), or a path to a file. Throws InvalidArgument with the names that
/// exist.
EnergyTable find_energy_table(std::string_view name_or_path);
std::vector<std::string> energy_table_names();

/// A share of the energy of some work.
struct EnergyPart {
  std::string name;  ///< "L2 cache"
  double events = 0;
  EnergyEvent event;

  double joule() const { return events * event.joule; }
};

/// The sum of the parts, in joule.
double total_joule(const std::vector<EnergyPart>& parts);

}  // namespace triptych::machines
