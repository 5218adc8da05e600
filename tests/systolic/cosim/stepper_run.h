// A program on a machine in one place, a cycle at a time: the four units share the state of one
// cycle, so one class contains them. Array, output, store and vector unit have their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "systolic/dram/dram.h"
#include "systolic/isa/simulator.h"
#include "tests/systolic/cosim/stepper_array.h"
#include "tests/systolic/cosim/stepper_store.h"
#include "tests/systolic/cosim/stepper_vector.h"

namespace triptych::mmu {

/// All state of one program's run. "Shows from cycle X on" is an action scheduled for X.
class StepperRun {
 public:
  StepperRun(const Program& program, const MachineConfig& config, std::span<std::byte> memory,
             StepperArray& array, StepperVector& vector);

  RunReport execute();

 private:
  static constexpr std::size_t kLoad = 0, kWeights = 1, kCompute = 2, kStore = 3;
  static constexpr std::size_t kOperand = kUnits;  ///< the DRAM port where the store unit reads
  static constexpr std::uint64_t kTimeout = 65536;

  struct InFlight {
    std::uint64_t start = 0, leaves = 0;
    std::uint32_t accumulator = 0, count = 0;
    std::uint32_t drain_slots = 0;  ///< before the first result
  };

  /// State of a unit that talks to the DRAM, with one request per grant.
  struct DramUnit {
    bool busy = false;  ///< requests are still to be granted
    std::size_t instruction = 0;
    std::uint64_t request = 0, requests = 0;  ///< granted, of
    std::uint64_t presented_from = 0;
    std::uint32_t outstanding = 0;
  };

  const Instruction& head(std::size_t unit) const { return program_[queues_[unit].front()]; }
  void step();
  void at(std::uint64_t cycle, std::function<void()> action);
  bool dispatch() const;
  bool halt();

  // --- tokens --------------------------------------------------------------------------------

  bool has_tokens(std::size_t taker, unsigned givers) const;
  std::size_t pop(std::size_t unit);
  void give(std::size_t unit, std::size_t index, std::uint64_t cycle, unsigned takers);
  void end(std::size_t unit, std::size_t index, std::uint64_t cycle);

  // --- DRAM ----------------------------------------------------------------------------------

  void start_requests(std::size_t unit, std::size_t index, std::uint64_t requests,
                      std::uint64_t from);
  bool presents(std::size_t unit) const;
  void grant();
  /// Books a grant. A read's `arrived` happens at the end of the cycle in which its data arrive.
  void book(std::size_t port, std::uint32_t address, std::uint32_t bytes, bool write,
            const std::function<void()>& arrived);
  /// Grants the request or position at the port. True if it is the instruction's last.
  bool leave_port(std::size_t port);
  std::vector<std::byte> bytes_at(std::uint32_t address, std::uint32_t bytes) const;
  std::uint16_t element(const std::byte* data, std::uint32_t index) const;

  // --- load ----------------------------------------------------------------------------------

  void pop_load();
  void grant_load();
  void write_buffer_row(std::uint32_t row, std::uint32_t group, const std::vector<std::byte>& data);

  // --- weights and loader --------------------------------------------------------------------

  void pop_weights();
  void grant_weights();
  void start_loader();
  void take_tile();

  // --- compute -------------------------------------------------------------------------------

  std::vector<InFlight> in_flight() const;
  bool hazard(const Matmul& matmul) const;
  /// True when the head of the queue starts now. If not, records the reason.
  bool may_compute();
  /// True when the tile is in the FIFO and the loader can begin in the next cycle.
  bool may_stream() const { return !fifo_.empty() && fifo_.front()->stream && loader_rows_ <= 1; }
  void step_compute();
  void set_registers(std::size_t index);
  void start_matmul(std::size_t index);
  /// The tile that the matmul takes at its start.
  std::shared_ptr<StepperTile> tile_of(const Matmul& matmul);
  /// Unless the next matmul abuts, all lanes are through and all R positions under way at the end.
  std::uint64_t slots_of(const Matmul& matmul) const;
  void swap_weights();
  void issue_slot();
  void count_slot();

  // --- store ---------------------------------------------------------------------------------

  void pop_store();
  void grant_operand();
  void grant_store();
  /// A position goes to the unified buffer in this cycle. The values of no column are zero.
  void fill_buffer();
  void start_vector(std::size_t index);
  void start_operation(std::size_t index, const VectorOp& op);
  void grant_vector_load();
  void grant_vector_store();

  const Program& program_;
  const MachineConfig& config_;
  std::span<std::byte> memory_;
  StepperArray& array_;
  StepperVector& vector_;
  Dram dram_;
  RunReport report_;
  std::uint64_t cycle_ = 0;
  std::uint64_t moved_in_ = 0;  ///< last cycle with any progress
  bool halted_ = false;
  std::multimap<std::uint64_t, std::function<void()>> actions_;

  std::size_t next_ = 0;
  std::array<std::deque<std::size_t>, kUnits> queues_;
  std::array<std::array<int, kUnits>, kUnits> tokens_{};  ///< [giver][taker]
  std::array<DramUnit, kUnits + 1> units_{};              ///< by DRAM port
  std::set<std::uint64_t> load_arrivals_;  ///< cycles with a load on the buffer's write port

  Load load_;
  WeightLoad weight_load_;
  std::uint32_t fifo_used_ = 0;
  std::deque<std::shared_ptr<StepperTile>> fifo_;
  std::shared_ptr<StepperTile> arriving_, shadow_, active_;
  std::uint32_t loader_rows_ = 0;  ///< cycles left, this one included
  bool shadow_free_ = true, shadow_full_ = false;
  bool streams_ = false;  ///< the loader takes a tile for an output-stationary matmul next

  SetStream stream_;
  SetTaps taps_;
  std::vector<InFlight> matmuls_;
  std::uint64_t slots_left_ = 0;
  std::uint64_t drained_ = 0;  ///< first cycle after the last drain slots
  Slot slot_;
  Walk walk_;
  std::shared_ptr<std::vector<StepperPosition>> positions_;  ///< of the matmul that streams
  std::uint32_t next_lane_ = 0;  ///< where the next transposed one begins

  bool reading_registers_ = false;
  LoadRegisters register_load_;
  StepperStore store_;
  bool vector_runs_ = false;  ///< the ports of the store unit are the vector unit's
  VectorLoad vector_rows_;    ///< of the load or the store that runs there
};

}  // namespace triptych::mmu
