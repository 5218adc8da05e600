// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_store.h"

#include <utility>

namespace triptych::mmu {

void Walk::next(const SetStream& set) {
  if (columns_left > 1) {
    columns_left -= 1;
    x = static_cast<std::int16_t>(x + set.stride_x);
    address += static_cast<std::uint32_t>(set.step_x);
  } else if (rows_left > 1) {
    columns_left = set.out_width;
    rows_left -= 1;
    x = static_cast<std::int16_t>(set.restart_x);
    y = static_cast<std::int16_t>(y + set.stride_y);
    address += static_cast<std::uint32_t>(set.wrap_y);
  } else {
    columns_left = set.out_width;
    rows_left = set.out_height;
    x = static_cast<std::int16_t>(set.restart_x);
    y = static_cast<std::int16_t>(set.restart_y);
    address += static_cast<std::uint32_t>(set.wrap_n);
  }
}

StepperStore::StepperStore(const MachineConfig& config, const StepperArray& array)
    : output(config),
      config_(config),
      array_(array),
      rows_on_their_way_(config.pe_latency > 1 ? 11 : 1) {}

void StepperStore::set(const SetOutput& set) {
  result_.out_height = operand_.out_height = pool_rows_.out_height = set.out_height;
  result_.out_width = operand_.out_width = pool_rows_.out_width = set.out_width;
  result_.step_x = set.step_x;
  result_.wrap_y = set.wrap_y;
  result_.wrap_n = set.wrap_n;
  pool_rows_.step_x = 2;
  pool_rows_.wrap_y = static_cast<std::int32_t>(set.pool_wrap_y);
  pool_rows_.wrap_n = static_cast<std::int32_t>(set.pool_wrap_n);
  pool_pitch_ = set.pool_pitch;
}

void StepperStore::set(const SetOperand& set) {
  operand_.step_x = set.step_x;
  operand_.wrap_y = set.wrap_y;
  operand_.wrap_n = set.wrap_n;
}

void StepperStore::start(const Store& store) {
  store_ = store;
  walk_ = {store.address, store.rows_left, store.columns_left};
  operand_walk_ = {store.operand, store.rows_left, store.columns_left};
  row_walk_ = {store.accumulator, store.rows_left, store.columns_left};
  rows_left_ = store.count * rows_per_position();
  starts_ = true;
}

std::uint32_t StepperStore::operand_bytes() const {
  if (store_.select) return (store_.columns + 7) / 8;
  return store_.columns * (store_.narrow ? config_.element_bytes() : 4);
}

void StepperStore::operand_granted(std::vector<std::byte> row) {
  operands_.push_back(std::move(row));
  ++operands_asked_;
  operand_walk_.next(operand_);
}

void StepperStore::step() {
  if (rows_on_their_way_.back() == Row::Last && shown_) return;
  shown_ = shown_ || rows_on_their_way_.back() == Row::Last;
  rows_on_their_way_.pop_back();
  rows_on_their_way_.push_front(read_row());
}

StepperStore::Row StepperStore::read_row() {
  if (std::exchange(starts_, false) || rows_left_ == 0) return Row::None;
  const bool last = (rows_left_ - 1) % rows_per_position() == 0;
  if (last && has_operand()) {
    if (operands_there_ == 0) return Row::None;
    --operands_there_;
    --operands_asked_;
  }
  --rows_left_;
  return last ? Row::Last : Row::Other;
}

std::vector<std::byte> StepperStore::write_position() {
  std::vector<std::byte> operand;
  if (has_operand()) {
    operand = std::move(operands_.front());
    operands_.pop_front();
  }
  std::vector<std::byte> bytes;
  for (std::uint32_t c = 0; c < store_.columns; ++c)
    append_value(bytes, output.value(store_, position_accumulators(c), operand, c), c);
  walk_.next(result_);
  if (store_.pool)
    row_walk_.next(pool_rows_);
  else
    row_walk_.address += 1;
  shown_ = false;
  return bytes;
}

/// Row-major.
std::vector<std::uint32_t> StepperStore::position_accumulators(std::uint32_t column) {
  const std::uint32_t row = row_walk_.address;
  std::vector<std::uint32_t> rows{row};
  if (store_.pool) rows = {row, row + 1, row + pool_pitch_, row + pool_pitch_ + 1};
  for (std::uint32_t& value : rows)
    value =
        array_
            .accumulators[std::size_t{value % config_.accumulator_rows} * config_.columns + column];
  accumulator_reads += rows.size();
  return rows;
}

void StepperStore::append_value(std::vector<std::byte>& bytes, std::uint32_t value,
                                std::uint32_t column) const {
  if (store_.mask) {
    if (column % 8 == 0) bytes.push_back(std::byte{0});
    bytes.back() |= std::byte(value << column % 8);
    return;
  }
  const std::uint32_t size = store_.narrow ? config_.element_bytes() : 4;
  for (std::uint32_t i = 0; i < size; ++i) bytes.push_back(std::byte(value >> 8 * i & 0xFF));
}

}  // namespace triptych::mmu
