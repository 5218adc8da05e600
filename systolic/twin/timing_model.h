// The timing model of one array, as seen by what grants its DRAM requests: itself, or the arbiter
// of several arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "systolic/dram/dram.h"
#include "systolic/isa/accesses.h"
#include "systolic/isa/simulator.h"
#include "systolic/twin/operand_pipe.h"
#include "systolic/twin/requests.h"
#include "systolic/twin/weight_tiles.h"

namespace triptych::mmu {

/// Invariant: all events before the next DRAM grant have been simulated. Every cause takes effect a
/// cycle later at the earliest, so grants in order of cycles settle everything.
class Timing {
 public:
  static constexpr std::size_t kLoad = 0, kWeights = 1, kCompute = 2, kStore = 3;
  /// DRAM ports: one for each unit, and the one where the store unit reads.
  static constexpr std::size_t kOperand = kUnits, kPorts = kUnits + 1;
  /// Those that request in the same cycle, in the order of their grants.
  static constexpr std::array kPriority{kWeights, kStore, kOperand, kLoad};

  /// Program, machine and DRAM must outlive it.
  Timing(const Program& program, const MachineConfig& machine, Dram& dram, bool record_times);

  /// Runs an array with a DRAM of its own.
  RunReport run();

  /// Simulates all events before the next DRAM grant or buffer write. Needed at the start, and
  /// after a grant or a write that ends an instruction.
  void settle() {
    while (step_units()) {
    }
  }
  /// From when a request stands at a DRAM port.
  Cycle requests_from(std::size_t port) const {
    return port == kStore && to_buffer_ ? kUnknown : requests_[port].presented;
  }
  /// True if it was the instruction's last request.
  bool grant(std::size_t port, Cycle cycle);
  /// When the answer to the last read of a port arrives.
  Cycle last_arrival(std::size_t port) const { return answered_[port] - 1; }
  /// When the store unit writes its next position to the buffer, by the grants so far.
  Cycle next_buffer_write();
  /// Writes it there, or, granted, to the DRAM. True if it was the store's last position.
  bool write_position(Cycle cycle);
  /// After the last grant.
  RunReport finish();

 private:
  static constexpr std::size_t kInFlight = 8;

  bool step_units();
  void dispatch();
  bool pop_load();
  bool pop_weights();
  bool move_tile();
  bool pop_compute();
  bool pop_store();
  bool pop_matmul(std::size_t index, Cycle seen, Cycle tokens);
  void count(const Matmul& matmul, const TileTimes& tile, std::uint64_t slots);
  void count_vector(const Instruction& instruction, std::uint64_t cycles);
  std::uint64_t slots_of(const Matmul& matmul);
  void start_store(const Store& store, std::size_t index, Cycle cycle);
  void start_rows(std::size_t port, std::size_t index, Cycle first);
  Cycle wait_for_tokens(std::size_t unit, std::size_t index, unsigned givers) const;
  void pop(std::size_t unit, Cycle cycle);
  void end(std::size_t unit, std::size_t index, Cycle cycle, unsigned takers);
  void end(std::size_t unit, std::size_t index, Cycle cycle) { end(unit, index, cycle, 15); }
  bool grant_until_something_ends();
  void end_requests(std::size_t port, Cycle granted, Cycle arrival);
  void present_store();
  Cycle hazard(const Matmul& matmul) const;
  void stall(Stall reason, Cycle until, Cycle limit);

  const Program& program_;
  const MachineConfig& machine_;
  Dram& dram_;
  bool record_times_;
  RunReport report_;

  Cycle chain_;  ///< of a sum down a column
  WeightTiles tiles_;

  std::size_t next_ = 0;  ///< instruction to dispatch
  Cycle offered_ = 0;
  std::array<Queue, kUnits> queues_;
  std::array<std::array<TokenQueue, kUnits>, kUnits> tokens_;  ///< [giver][taker]
  std::array<Cycle, kUnits> idle_{};  ///< from when the unit may pop. kUnknown while it works

  std::array<RequestStream, kPorts> requests_;
  std::array<Outstanding, kPorts> outstanding_;
  std::array<Cycle, kPorts> answered_{};  ///< first cycle after the last answer
  Cycle last_grant_ = 0;
  std::optional<OutputWalk> output_walk_, operand_walk_;
  StoreGeometry geometry_;
  Cycle store_begin_ = 0;                  ///< of the store unit's instruction that runs
  std::uint32_t cycles_per_position_ = 1;  ///< of the store that runs
  bool to_buffer_ = false;                 ///< that is where it writes
  bool whole_rows_ = false;  ///< it moves rows `pitch` bytes apart: no walk, no second operand
  OperandPipe operand_pipe_;

  std::array<MatmulTimes, kInFlight> matmuls_{};
  std::size_t matmul_count_ = 0;
  std::uint64_t next_lane_ = 0;  ///< where the next transposed stream begins
  Cycle drained_ = 0;            ///< the slots of the last output-stationary matmul's sums are over
  Cycle slots_over_ = 0;         ///< all cycles before have been counted as issue or stall
  Cycle last_left_ = 0;
};

}  // namespace triptych::mmu
