// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/sharing.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "systolic/isa/accesses.h"
#include "systolic/isa/field.h"

namespace triptych::mmu {
namespace {

/// Bytes [begin, end) that an array touches.
struct Touched {
  std::uint64_t begin = 0, end = 0;
  std::size_t array = 0;
  bool is_write = false;
};

/// Joins pieces that follow each other.
void add(std::vector<Touched>& pieces, const Touched& piece) {
  if (!pieces.empty() && pieces.back().end == piece.begin && pieces.back().array == piece.array &&
      pieces.back().is_write == piece.is_write)
    pieces.back().end = piece.end;
  else
    pieces.push_back(piece);
}

std::vector<Touched> touched_by(std::span<const Program> programs, const MachineConfig& machine) {
  std::vector<Touched> pieces;
  for (std::size_t array = 0; array < programs.size(); ++array) {
    StoreGeometry geometry;
    for (const Instruction& instruction : programs[array]) {
      geometry.set(instruction);
      visit_accesses(instruction, geometry, machine,
                     [&](std::uint64_t address, std::uint64_t bytes, bool is_write) {
                       add(pieces, {address, address + bytes, array, is_write});
                       return true;
                     });
    }
  }
  return pieces;
}

/// The furthest end so far of each array and kind, for pieces in order of their begin.
class Ends {
 public:
  explicit Ends(std::size_t arrays) : ends_(2 * arrays) {}

  /// The piece of another array that overlaps this one, if one of both writes.
  const Touched* conflict(const Touched& piece) const {
    for (const Touched& other : ends_)
      if (other.end > piece.begin && other.array != piece.array &&
          (other.is_write || piece.is_write))
        return &other;
    return nullptr;
  }
  void add(const Touched& piece) {
    Touched& last = ends_[2 * piece.array + (piece.is_write ? 1 : 0)];
    if (piece.end > last.end) last = piece;
  }

 private:
  std::vector<Touched> ends_;
};

/// True for an operand that is a place in DRAM, not in the buffer, and in use.
bool is_in_dram(const Instruction& instruction, std::string_view operand) {
  if (operand != "address" && operand != "operand") return false;
  if (instruction.opcode() == Opcode::Matmul) return false;
  if (instruction.opcode() != Opcode::Store) return true;
  const auto store = decode<Store>(instruction);
  return operand == "address" ? !store.buffer : has_operand(store);
}

[[noreturn]] void reject(const Touched& first, const Touched& second) {
  const Touched& writer = first.is_write ? first : second;
  const Touched& other = first.is_write ? second : first;
  throw std::invalid_argument(fmt::format(
      "array {} writes DRAM bytes that array {} {} in the same run, {} to {}: nothing orders the "
      "arrays; use other bytes, or one run after the other",
      writer.array, other.array, other.is_write ? "writes, too," : "reads", second.begin,
      std::min(first.end, second.end) - 1));
}

}  // namespace

void check_sharing(std::span<const Program> programs, const MachineConfig& machine) {
  if (programs.size() != machine.arrays)
    throw std::invalid_argument(fmt::format(
        "{} programs for the {} arrays of the machine: give one for each; an idle array has a halt",
        programs.size(), machine.arrays));
  std::vector<Touched> pieces = touched_by(programs, machine);
  std::ranges::sort(pieces, {}, &Touched::begin);
  Ends ends(programs.size());
  for (const Touched& piece : pieces) {
    if (const Touched* other = ends.conflict(piece)) reject(*other, piece);
    ends.add(piece);
  }
}

Program move_in_dram(Program program, std::uint64_t bytes) {
  for (Instruction& instruction : program)
    for (const Field& field : find_opcode(instruction.opcode())->fields)
      if (is_in_dram(instruction, field.name))
        set_field(instruction, field,
                  get_field(instruction, field) + static_cast<std::int64_t>(bytes));
  return program;
}

}  // namespace triptych::mmu
