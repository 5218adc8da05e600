// The array of the stepper with its lanes, its buffer and its accumulators: one call is one cycle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Weights as raw bits with their enable bits: those inside rows x columns.
struct StepperTile {
  std::uint32_t rows = 0, columns = 0;
  bool stream = false;  ///< for an output-stationary matmul
  std::vector<std::uint16_t> weights;
  bool enabled(std::uint32_t r, std::uint32_t c) const { return r < rows && c < columns; }
  std::uint16_t weight(std::uint32_t r, std::uint32_t c) const { return weights[r * columns + c]; }
};

/// A value's place in kernel and channels, as a register of a lane.
struct LaneTap {
  std::int16_t dy = 0, dx = 0;
  std::uint32_t offset = 0;
  std::uint32_t channel = 0, kernel_x = 0;
};

/// A position of the stream.
struct StepperPosition {
  std::int16_t y = 0, x = 0;
  std::uint32_t address = 0;
};

/// Outputs of the address generator in one cycle.
struct Slot {
  bool valid = false;
  Matmul matmul;
  std::shared_ptr<const StepperTile> tile;
  std::uint32_t index = 0;  ///< p
  std::uint32_t lane = 0;   ///< transposed: where value p is read
  StepperPosition position;
  /// Transposed: the R positions, as far as they have left.
  std::shared_ptr<const std::vector<StepperPosition>> positions;

  bool stays() const { return valid && matmul.output_stationary; }
  /// Slots that are no padding.
  std::uint32_t used() const { return matmul.output_stationary ? tile->rows : matmul.count; }
};

/// A value that a lane reads, at one position after the other.
struct LaneValue {
  LaneTap tap;
  std::shared_ptr<const std::vector<StepperPosition>> positions;
  std::size_t next = 0;
};

class StepperArray {
 public:
  explicit StepperArray(const MachineConfig& config);

  /// One cycle. `slot` leaves the address generator in it.
  void step(const Slot& slot, const SetStream& stream, const SetTaps& taps);

  std::vector<std::uint16_t> buffer;        ///< [row][bank], raw bits
  std::vector<std::uint32_t> accumulators;  ///< [row][column], raw bits

 private:
  /// The slot that left the address generator `ago` cycles before this one.
  const Slot& slot(std::uint32_t ago) const { return history_[ago]; }
  void write_accumulators();
  void write_accumulator(const Slot& done, std::uint32_t column);
  void multiply();
  void multiply_own(const Slot& now, std::uint32_t r, std::uint32_t c, std::uint16_t activation);
  std::vector<std::uint32_t> read_accumulators() const;
  void read_lanes(const SetStream& stream, const SetTaps& taps);
  void begin_value(const Slot& slot, const SetTaps& taps);
  std::uint16_t read(std::uint32_t lane, const StepperPosition& position, const LaneTap& tap,
                     const SetStream& stream) const;
  LaneTap next_tap(LaneTap tap, const SetTaps& taps) const;
  std::uint32_t chain(std::uint32_t psum, std::uint16_t activation, std::uint16_t weight) const;

  MachineConfig config_;
  std::uint32_t latency_;                 ///< of a sum through a PE
  std::uint32_t product_;                 ///< cycles from a PE's activation to its sum's arrival
  std::deque<Slot> history_;              ///< newest first
  std::vector<LaneTap> lane_taps_;        ///< of forward streams
  std::vector<LaneValue> lane_values_;    ///< of transposed ones
  std::vector<std::uint16_t> lane_data_;  ///< output of each lane's bank in this cycle
  /// Activations that each array row took from the transposer, newest first, while they wait.
  std::vector<std::deque<std::uint16_t>> row_data_;
  std::vector<std::vector<std::uint16_t>> activations_;  ///< registers of the PEs
  std::vector<std::vector<std::uint16_t>> multiplied_;   ///< activations in stages for products
  /// Sums on their way through a PE, newest first: the last one shows below.
  std::vector<std::vector<std::deque<std::uint32_t>>> psums_;
  std::vector<std::vector<std::uint32_t>> own_, held_;  ///< output-stationary sums of the PEs
  std::vector<std::uint32_t> feedback_;  ///< output of each accumulator bank in this cycle
};

}  // namespace triptych::mmu
