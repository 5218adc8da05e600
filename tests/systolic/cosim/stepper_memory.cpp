// The units of loads and of stores in a run.
// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_run.h"

#include <algorithm>
#include <cstring>

namespace triptych::mmu {

void StepperRun::pop_load() {
  if (queues_[kLoad].empty() || units_[kLoad].busy || !has_tokens(kLoad, 15)) return;
  const std::size_t index = pop(kLoad);
  load_ = decode<Load>(program_[index]);
  start_requests(kLoad, index, std::uint64_t{load_.units} * load_.lines, cycle_ + 1);
}

void StepperRun::grant_load() {
  const auto request = static_cast<std::uint32_t>(units_[kLoad].request);
  const std::uint32_t line = request / load_.units;
  const std::uint32_t unit = request % load_.units;
  const std::uint32_t group = config_.group(load_.log2_group);
  const std::uint32_t bytes = group * config_.element_bytes();
  const std::uint32_t address = load_.address + line * load_.pitch + unit * bytes;
  const std::uint32_t row = load_.buffer_row + line * load_.buffer_pitch + unit;
  const auto data = bytes_at(address, bytes);
  report_.counters.buffer_writes += config_.rows;
  book(kLoad, address, bytes, false,
       [this, row, group, data] { write_buffer_row(row, group, data); });
}

void StepperRun::write_buffer_row(std::uint32_t row, std::uint32_t group,
                                  const std::vector<std::byte>& data) {
  for (std::uint32_t lane = 0; lane < config_.rows; ++lane)
    array_.buffer[std::size_t{row % config_.buffer_rows} * config_.rows + lane] =
        element(data.data(), lane % group);
}

void StepperRun::pop_store() {
  if (queues_[kStore].empty() || units_[kStore].busy || reading_registers_ || vector_runs_ ||
      !has_tokens(kStore, 15))
    return;
  const Opcode opcode = head(kStore).opcode();
  const std::size_t index = pop(kStore);
  if (opcode == Opcode::SetOutput || opcode == Opcode::SetOperand) {
    if (opcode == Opcode::SetOutput) store_.set(decode<SetOutput>(program_[index]));
    if (opcode == Opcode::SetOperand) store_.set(decode<SetOperand>(program_[index]));
    end(kStore, index, cycle_ + 1);
  } else if (opcode == Opcode::LoadRegisters) {
    register_load_ = decode<LoadRegisters>(program_[index]);
    reading_registers_ = true;
    start_requests(kOperand, index, 1 + register_load_.more, cycle_ + 1);
  } else if (opcode != Opcode::Store) {
    start_vector(index);
  } else {
    const auto store = decode<Store>(program_[index]);
    store_.start(store);
    start_requests(kStore, index, store.count, cycle_ + 1);
    if (store_.has_operand()) start_requests(kOperand, index, store.count, cycle_ + 1);
  }
}

/// Loads and stores of vectors have the same operands.
void StepperRun::start_vector(std::size_t index) {
  vector_runs_ = true;
  const Instruction& instruction = program_[index];
  if (instruction.opcode() == Opcode::VectorOp)
    return start_operation(index, decode<VectorOp>(instruction));
  if (instruction.opcode() == Opcode::VectorLoad) {
    vector_rows_ = decode<VectorLoad>(instruction);
    return start_requests(kOperand, index, vector_rows_.count, cycle_ + 1);
  }
  const auto rows = decode<VectorStore>(instruction);
  vector_rows_ = {rows.narrow, rows.address, rows.pitch, rows.row, rows.count, rows.columns};
  start_requests(kStore, index, rows.count, cycle_ + 2);
}

/// A write shows from the cycle behind it on, before the reads of that cycle.
void StepperRun::start_operation(std::size_t index, const VectorOp& op) {
  const std::uint64_t cycles = StepperVector::has_c(op) ? 2 : 1;
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const std::uint64_t read = cycle_ + cycles * (i + std::uint64_t{1});
    if (cycles == 2) at(read - 1, [this, op, i] { vector_.read_c(op, i); });
    at(read, [this, op, i, read] {
      moved_in_ = cycle_;
      at(read + 4,
         [this, op, i, result = vector_.compute(op, i, array_)] { vector_.write(op, i, result); });
    });
  }
  const std::uint64_t idle = cycle_ + cycles * op.count + 4;
  at(idle, [this] { vector_runs_ = false; });
  end(kStore, index, idle);
  vector_.counts.cycles += idle - cycle_;
}

void StepperRun::grant_vector_load() {
  const auto row = static_cast<std::uint32_t>(units_[kOperand].request);
  const bool last = row + 1 == vector_rows_.count;
  const std::uint32_t address = vector_.place(vector_rows_, row);
  const std::uint32_t bytes = vector_.bytes(vector_rows_);
  const std::uint64_t start = report_.times[units_[kOperand].instruction].start;
  book(kOperand, address, bytes, false, [=, this, data = bytes_at(address, bytes)] {
    vector_.write(vector_rows_, row, data);
    if (!last) return;
    vector_runs_ = false;
    vector_.counts.cycles += cycle_ - start;
  });
}

void StepperRun::grant_vector_store() {
  const auto row = static_cast<std::uint32_t>(units_[kStore].request);
  const std::uint32_t address = vector_.place(vector_rows_, row);
  const auto bytes = vector_.read(vector_rows_, row);
  std::ranges::copy(bytes, memory_.begin() + address);
  book(kStore, address, static_cast<std::uint32_t>(bytes.size()), true, {});
  if (row + 1 < vector_rows_.count) return;
  at(cycle_ + 1, [this] { vector_runs_ = false; });
  vector_.counts.cycles += cycle_ + 1 - report_.times[units_[kStore].instruction].start;
}

void StepperRun::grant_operand() {
  if (vector_runs_) return grant_vector_load();
  if (reading_registers_) {
    const auto request = static_cast<std::uint32_t>(units_[kOperand].request);
    const std::uint32_t address = register_load_.address + request * register_load_.pitch;
    const auto data = bytes_at(address, 4 * register_load_.columns);
    book(kOperand, address, 4 * register_load_.columns, false, [this, data, request] {
      const std::uint32_t file = register_load_.file + request;
      std::memcpy(store_.output.registers[file].data(), data.data(), data.size());
      reading_registers_ = request < register_load_.more;
    });
    return;
  }
  const std::uint32_t address = store_.operand_address();
  store_.operand_granted(bytes_at(address, store_.operand_bytes()));
  book(kOperand, address, store_.operand_bytes(), false, [this] { store_.operand_arrived(); });
}

void StepperRun::grant_store() {
  if (vector_runs_) return grant_vector_store();
  const std::uint32_t address = store_.position_address();
  const std::vector<std::byte> bytes = store_.write_position();
  std::ranges::copy(bytes, memory_.begin() + address);
  book(kStore, address, static_cast<std::uint32_t>(bytes.size()), true, {});
}

void StepperRun::fill_buffer() {
  const std::uint32_t row = store_.position_address();
  const std::uint32_t group = config_.group(store_.log2_group());
  std::vector<std::byte> bytes = store_.write_position();
  bytes.resize(std::size_t{group} * config_.element_bytes());
  report_.counters.buffer_writes += config_.rows;
  at(cycle_ + 1, [this, row, group, bytes] { write_buffer_row(row, group, bytes); });
  if (leave_port(kStore)) end(kStore, units_[kStore].instruction, cycle_ + 1);
  moved_in_ = cycle_;
}

}  // namespace triptych::mmu
