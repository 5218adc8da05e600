// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/synchronise.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "systolic/isa/accesses.h"
#include "systolic/twin/geometry.h"

namespace triptych::mmu {
namespace {

/// The last instruction of each unit that read, and that wrote, a place. 0 is none, i stands for
/// instruction i - 1.
struct Place {
  std::array<std::size_t, kUnits> read{}, written{};
};

class Synchroniser {
 public:
  Synchroniser(const Program& program, const MachineConfig& machine)
      : program_(program),
        machine_(machine),
        buffer_(machine.buffer_rows),
        accumulators_(machine.accumulator_rows) {}

  Program run() {
    for (std::size_t i = 0; i < program_.size(); ++i) {
      Instruction& instruction = program_[i];
      const unsigned wishes = instruction.wait();
      instruction.words[0] &= ~0xFF00U;
      if (instruction.opcode() == Opcode::Halt) continue;
      index_ = i;
      unit_ = static_cast<std::size_t>(find_opcode(instruction.opcode())->unit);
      needs_ = {};
      for (std::size_t giver = 0; giver < kUnits; ++giver)
        if (wishes >> giver & 1) needs_[giver] = latest_[giver];
      touch_dram();
      touch_memories();
      for (std::size_t giver = 0; giver < kUnits; ++giver) order(giver);
      latest_[unit_] = i + 1;
    }
    return program_;
  }

 private:
  /// This instruction comes after needs_[giver]. Tokens carry no names: the n-th wait gets the n-th
  /// token, so edges of one pair never cross.
  void order(std::size_t giver) {
    const std::size_t need = needs_[giver];
    std::size_t& last = ordered_[giver][unit_];
    if (giver == unit_ || need <= last) return;
    last = need;
    program_[need - 1].words[0] |= 1U << (12 + unit_);
    program_[index_].words[0] |= 1U << (8 + giver);
  }

  void touch(Place& place, bool is_write) {
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      needs_[unit] = std::max(needs_[unit], place.written[unit]);
      if (is_write) needs_[unit] = std::max(needs_[unit], place.read[unit]);
    }
    (is_write ? place.written : place.read)[unit_] = index_ + 1;
  }

  void touch_dram() {
    geometry_.set(program_[index_]);
    constexpr std::uint64_t kBlock = 16;
    visit_accesses(program_[index_], geometry_, machine_,
                   [&](std::uint64_t address, std::uint64_t bytes, bool is_write) {
                     for (std::uint64_t block = address / kBlock; block * kBlock < address + bytes;
                          ++block)
                       touch(dram_[block], is_write);
                     return true;
                   });
  }

  void touch_memories() {
    const Instruction& instruction = program_[index_];
    visit_buffer_writes(instruction, geometry_, machine_,
                        [&](std::uint32_t row) { touch(buffer_[row], true); });
    visit_vector_sums(instruction, [&](std::uint32_t row) { touch(accumulators_[row], false); });
    if (instruction.opcode() == Opcode::SetStream) {
      stream_ = decode<SetStream>(instruction);
    } else if (instruction.opcode() == Opcode::SetTaps) {
      taps_ = decode<SetTaps>(instruction);
    } else if (instruction.opcode() == Opcode::Matmul) {
      touch_operands(decode<Matmul>(instruction));
    } else if (instruction.opcode() == Opcode::Store) {
      const auto store = decode<Store>(instruction);
      OutputWalk walk = OutputWalk::accumulators(geometry_, store);
      for (std::uint32_t m = 0; m < store.count; ++m, walk.next())
        for (std::uint32_t i = 0; i < rows_of_position(store); ++i)
          touch(accumulators_[position_rows(geometry_.output, walk.address(), machine_)[i]], false);
    }
  }

  void touch_operands(const Matmul& matmul) {
    const auto [positions, values] = reads_of(matmul, machine_.rows);
    PositionWalk walk(stream_, matmul);
    for (std::uint32_t m = 0; m < positions; ++m, walk.next()) {
      TapWalk taps(taps_, matmul, machine_);
      for (std::uint32_t k = 0; k < values; ++k, taps.next())
        if (inside(stream_, walk.position(), taps.tap()))
          touch(buffer_[(walk.position().address + taps.tap().offset) % machine_.buffer_rows],
                false);
    }
    for (std::uint32_t m = 0; m < rows_written(matmul); ++m)
      touch(accumulators_[matmul.accumulator + m], true);
  }

  Program program_;
  const MachineConfig& machine_;
  std::vector<Place> buffer_, accumulators_;
  std::map<std::uint64_t, Place> dram_;
  std::array<std::size_t, kUnits> latest_{}, needs_{};
  std::array<std::array<std::size_t, kUnits>, kUnits> ordered_{};  ///< [giver][taker]
  std::size_t index_ = 0, unit_ = 0;
  SetStream stream_;
  SetTaps taps_;
  StoreGeometry geometry_;
};

}  // namespace

Program synchronise(const Program& program, const MachineConfig& machine) {
  return Synchroniser(program, machine).run();
}

}  // namespace triptych::mmu
