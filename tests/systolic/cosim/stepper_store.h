// The store unit of the stepper: rows of accumulators and of a second operand on their way through
// the output unit to the port.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "tests/systolic/cosim/stepper_array.h"
#include "tests/systolic/cosim/stepper_output.h"

namespace triptych::mmu {

/// A walk as the manual writes it, for the address generator (with y and x) and for stores.
struct Walk {
  std::uint32_t address = 0, rows_left = 0, columns_left = 0;
  std::int16_t y = 0, x = 0;

  void next(const SetStream& set);
};

class StepperStore {
 public:
  StepperStore(const MachineConfig& config, const StepperArray& array);

  void set(const SetOutput& set);
  void set(const SetOperand& set);
  /// Called in the cycle of the pop. The next one is the first to read accumulators.
  void start(const Store& store);
  bool has_operand() const { return store_.residual || store_.select; }

  /// At the port for operands: whether there is space for a requested row, and its place.
  bool has_room() const { return operands_asked_ < 64; }
  std::uint32_t operand_address() const { return operand_walk_.address; }
  std::uint32_t operand_bytes() const;
  void operand_granted(std::vector<std::byte> row);
  void operand_arrived() { ++operands_there_; }

  /// Whether results go to the unified buffer. The port is then its write port.
  bool writes_buffer() const { return store_.buffer; }
  std::uint32_t log2_group() const { return store_.log2_group; }
  /// At the port for results: whether a position stands there.
  bool shows_position() const { return shown_; }
  std::uint32_t position_address() const { return walk_.address; }
  /// Its bytes. It is granted, and leaves with this cycle.
  std::vector<std::byte> write_position();

  /// After the grants of a cycle: a row goes through the output unit, another one is read.
  void step();

  StepperOutput output;
  std::uint64_t accumulator_reads = 0;

 private:
  std::uint32_t rows_per_position() const { return store_.pool ? 4 : 1; }
  std::vector<std::uint32_t> position_accumulators(std::uint32_t column);
  void append_value(std::vector<std::byte>& bytes, std::uint32_t value, std::uint32_t column) const;

  const MachineConfig& config_;
  const StepperArray& array_;
  Store store_;
  SetStream result_, operand_, pool_rows_;  ///< their walks. y and x are unused
  Walk walk_, operand_walk_, row_walk_;
  std::uint32_t pool_pitch_ = 0;

  /// Before the output unit and in its stages, newest first.
  enum class Row { None, Other, Last };
  Row read_row();
  std::deque<Row> rows_on_their_way_;
  std::uint32_t rows_left_ = 0;                  ///< accumulator rows to be read
  bool starts_ = false;                          ///< in this cycle
  bool shown_ = false;                           ///< a position stands behind it, at the port
  std::deque<std::vector<std::byte>> operands_;  ///< the positions are not written
  std::uint32_t operands_asked_ = 0;             ///< and not taken
  std::uint32_t operands_there_ = 0;             ///< arrived and not taken
};

}  // namespace triptych::mmu
