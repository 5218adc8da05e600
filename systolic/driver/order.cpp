// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/order.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <stdexcept>
#include <vector>

#include "systolic/isa/accesses.h"
#include "systolic/twin/geometry.h"

namespace triptych::mmu {
namespace {

// Instructions count from 1 here. 0 is none. A clock says for each unit up to which instruction it
// is known to have ended. Compute has two entries: its matmuls have read the buffer before they
// have written the accumulators, and tell the load unit so (Compute under "Time" in the manual).
constexpr std::size_t kCompute = static_cast<std::size_t>(Unit::Compute);
constexpr std::size_t kStore = static_cast<std::size_t>(Unit::Store);
constexpr std::size_t kComputeWrites = kUnits;
using Clock = std::array<std::size_t, kUnits + 1>;

void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// The last instruction of each unit that read, and that wrote, a place.
struct Place {
  std::array<std::size_t, kUnits> read{}, written{};

  bool is_written() const {
    return std::ranges::any_of(written, [](auto i) { return i != 0; });
  }
};

/// Places of the DRAM: pieces of it with the same accesses.
class DramPlaces {
 public:
  DramPlaces() { pieces_[0] = {}; }
  /// visit(first byte, the one after the last, place) for the pieces of a range.
  template <class Visit>
  void visit(std::uint64_t begin, std::uint64_t end, Visit visit) {
    split(begin);
    split(end);
    for (auto piece = pieces_.find(begin); piece->first != end;) {
      auto& [first, place] = *piece++;
      visit(first, piece->first, place);
    }
  }

 private:
  void split(std::uint64_t at) {
    const auto after = pieces_.upper_bound(at);
    pieces_.try_emplace(at, std::prev(after)->second);
  }

  std::map<std::uint64_t, Place> pieces_;  ///< by first byte, up to the next one's
};

class OrderChecker {
 public:
  OrderChecker(const Program& program, const MachineConfig& machine,
               std::span<const DramArray> arrays)
      : program_(program),
        machine_(machine),
        buffer_(machine.buffer_rows),
        accumulators_(machine.accumulator_rows),
        columns_written_(machine.accumulator_rows),
        vector_written_(machine.vector_rows),
        arrays_(arrays) {}

  void run() {
    for (std::size_t i = 0; i < program_.size(); ++i) {
      const Instruction& instruction = program_[i];
      if (instruction.opcode() == Opcode::Halt) continue;
      index_ = i + 1;
      unit_ = static_cast<std::size_t>(find_opcode(instruction.opcode())->unit);
      take_tokens(instruction);
      touch_dram(instruction);
      touch_memories(instruction);
      give_tokens(instruction);
    }
  }

  void require_written(const DramArray& output) {
    dram_.visit(output.address, output.address + output.bytes(),
                [&](std::uint64_t first, std::uint64_t last, const Place& place) {
                  if (place.is_written()) return;
                  const std::uint64_t byte = first_unknown(first, last);
                  if (byte == last) return;
                  const auto element =
                      output.element((byte - output.address) / bytes_of(output.type));
                  throw std::invalid_argument(
                      fmt::format("no store writes {}, which is DRAM byte {}", element, byte));
                });
  }

 private:
  void take_tokens(const Instruction& instruction) {
    taken_ = {};
    for (std::size_t giver = 0; giver < kUnits; ++giver) {
      if ((instruction.wait() >> giver & 1) == 0) continue;
      auto& tokens = tokens_[giver][unit_];
      taken_[giver] = tokens.front()[giver];
      join(clocks_[unit_], tokens.front());
      tokens.pop_front();
    }
  }

  void give_tokens(const Instruction& instruction) {
    Clock& clock = clocks_[unit_];
    for (std::size_t taker = 0; taker < kUnits; ++taker) {
      if ((instruction.signal() >> taker & 1) == 0) continue;
      Clock token = clock;
      token[unit_] = index_;
      if (unit_ == kCompute && (taker == kStore || instruction.opcode() != Opcode::Matmul))
        token[kComputeWrites] = index_;
      tokens_[unit_][taker].push_back(token);
    }
  }

  /// "instruction 5 (matmul ...)". `index` counts from 1.
  std::string name_of(std::size_t index) const {
    return fmt::format("instruction {} ({})", index - 1, disassemble(program_[index - 1]));
  }
  [[noreturn]] void reject(const std::string& problem) const {
    throw std::invalid_argument(fmt::format("{}: {}", name_of(index_), problem));
  }

  /// Changes that make this instruction wait for `other`, which is of `unit`. A unit receives
  /// tokens in the order in which another gives them.
  std::string advice(std::size_t unit, std::size_t other) const {
    const auto own = to_string(static_cast<Unit>(unit_)),
               giver = to_string(static_cast<Unit>(unit));
    if (taken_[unit] != 0)
      return fmt::format(
          "the token of {} that it takes is that of {}; let that one give none and the other one "
          "signal={}, or let them touch different places",
          giver, name_of(taken_[unit]), own);
    const auto& waiting = tokens_[unit][unit_];
    if (waiting.empty())
      return fmt::format(
          "give signal={} to that one (or a later one of its unit) and wait={} to this one", own,
          giver);
    if (waiting.front()[unit] >= other)
      return fmt::format("give wait={} to this one; the token is there", giver);
    return fmt::format(
        "give signal={} to that one and wait={} to this one; but first the token of {} must be "
        "taken, or not be given",
        own, giver, name_of(waiting.front()[unit]));
  }

  /// The other unit's instruction `other` is to have ended before this one begins.
  void require_after(std::size_t unit, std::size_t other, bool other_writes, bool writes,
                     const std::string& place) const {
    const std::size_t entry = unit == kCompute && other_writes ? kComputeWrites : unit;
    if (unit == unit_ || other <= clocks_[unit_][entry]) return;
    reject(fmt::format("{} {}, which {} {}, and no token makes it wait for that: {}",
                       writes ? "writes" : "reads", place, name_of(other),
                       other_writes ? "writes" : "reads", advice(unit, other)));
  }

  template <class Name>
  void touch(Place& place, bool writes, Name name) {
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      if (place.written[unit] != 0) require_after(unit, place.written[unit], true, writes, name());
      if (writes && place.read[unit] != 0)
        require_after(unit, place.read[unit], false, writes, name());
    }
    (writes ? place.written : place.read)[unit_] = index_;
  }

  bool is_input(std::uint64_t begin, std::uint64_t end) const {
    return std::ranges::any_of(arrays_, [&](const DramArray& array) {
      return array.is_input && begin >= array.address && end <= array.address + array.bytes();
    });
  }

  void touch_dram(const Instruction& instruction) {
    geometry_.set(instruction);
    visit_accesses(instruction, geometry_, machine_,
                   [&](std::uint64_t address, std::uint64_t bytes, bool writes) {
                     touch_bytes(address, address + bytes, writes);
                     return true;
                   });
  }

  void touch_bytes(std::uint64_t begin, std::uint64_t end, bool writes) {
    const bool known = writes || is_input(begin, end);
    dram_.visit(begin, end, [&](std::uint64_t first, std::uint64_t last, Place& place) {
      if (!known && !place.is_written()) require_input(first, last);
      touch(place, writes, [&] { return fmt::format("DRAM byte {}", first); });
    });
  }
  /// The first byte that is no input. `end`: none.
  std::uint64_t first_unknown(std::uint64_t byte, std::uint64_t end) const {
    while (byte < end && is_input(byte, byte + 1)) ++byte;
    return byte;
  }
  /// No store has written these bytes.
  void require_input(std::uint64_t first, std::uint64_t end) const {
    const std::uint64_t byte = first_unknown(first, end);
    if (byte < end)
      reject(
          fmt::format("reads DRAM byte {}, which no input holds and no store has written", byte));
  }

  void touch_memories(const Instruction& instruction) {
    visit_buffer_writes(instruction, geometry_, machine_,
                        [&](std::uint32_t row) { touch_row(row, true); });
    visit_vector_rows(instruction,
                      [&](std::uint32_t row, bool is_write) { touch_vector(row, is_write); });
    visit_vector_sums(instruction, [&](std::uint32_t row) {
      require_sums(row, 1, "reads");
      touch_sums(row, false);
    });
    switch (instruction.opcode()) {
      case Opcode::WeightLoad:
        return tiles_.push_back(decode<WeightLoad>(instruction));
      case Opcode::SetStream:
        stream_ = decode<SetStream>(instruction);
        return;
      case Opcode::SetTaps:
        taps_ = decode<SetTaps>(instruction);
        return;
      case Opcode::Matmul:
        return matmul(decode<Matmul>(instruction));
      case Opcode::Store:
        return store(decode<Store>(instruction));
      default:
        return;
    }
  }

  void touch_row(std::size_t row, bool writes) {
    if (!writes && !buffer_[row].is_written())
      reject(fmt::format("reads buffer row {}, which no load and no store has written", row));
    touch(buffer_[row], writes, [&] { return fmt::format("buffer row {}", row); });
  }

  void matmul(const Matmul& matmul) {
    WeightLoad tile = active_;
    if (!matmul.keep) {
      tile = tiles_.front();
      tiles_.pop_front();
    }
    if (!matmul.output_stationary) active_ = tile;
    const auto [positions, values] = reads_of(matmul, tile.rows);
    PositionWalk walk(stream_, matmul);
    for (std::uint32_t m = 0; m < positions; ++m, walk.next()) {
      TapWalk taps(taps_, matmul, machine_);
      for (std::uint32_t k = 0; k < values; ++k, taps.next())
        if (inside(stream_, walk.position(), taps.tap()))
          touch_row((walk.position().address + taps.tap().offset) % machine_.buffer_rows, false);
    }
    for (std::uint32_t m = 0; m < rows_written(matmul); ++m) {
      const std::uint32_t row = matmul.accumulator + m;
      if (reads_accumulators(matmul)) require_sums(row, tile.columns, "adds to");
      touch_sums(row, true);
      columns_written_[row] = std::max(columns_written_[row], tile.columns);
    }
  }

  void store(const Store& store) {
    OutputWalk walk = OutputWalk::accumulators(geometry_, store);
    for (std::uint32_t m = 0; m < store.count; ++m, walk.next())
      for (std::uint32_t i = 0; i < rows_of_position(store); ++i) {
        const std::uint32_t row = position_rows(geometry_.output, walk.address(), machine_)[i];
        require_sums(row, store.columns, "reads");
        touch_sums(row, false);
      }
  }
  /// One unit alone uses the vector memory, in order.
  void touch_vector(std::uint32_t row, bool writes) {
    if (!writes && !vector_written_[row])
      reject(fmt::format(
          "reads row {} of the vector memory, which no vector instruction has written", row));
    vector_written_[row] = true;
  }
  void require_sums(std::uint32_t row, std::uint32_t columns, std::string_view does) const {
    if (columns <= columns_written_[row]) return;
    reject(fmt::format("{} {} columns of accumulator row {}, of which matmuls have written {}",
                       does, columns, row, columns_written_[row]));
  }
  void touch_sums(std::uint32_t row, bool writes) {
    touch(accumulators_[row], writes, [&] { return fmt::format("accumulator row {}", row); });
  }

  const Program& program_;
  const MachineConfig& machine_;
  std::vector<Place> buffer_, accumulators_;
  std::vector<std::uint32_t> columns_written_;  ///< by accumulator row, from column 0 on
  std::vector<bool> vector_written_;            ///< by row of the vector memory
  DramPlaces dram_;
  std::span<const DramArray> arrays_;
  std::array<Clock, kUnits> clocks_{};  ///< the knowledge of each unit
  /// Givers of the tokens that this instruction takes, by unit.
  std::array<std::size_t, kUnits> taken_{};
  std::array<std::array<std::deque<Clock>, kUnits>, kUnits> tokens_;  ///< [giver][taker]
  std::deque<WeightLoad> tiles_;                                      ///< those that wait
  WeightLoad active_;
  SetStream stream_;
  SetTaps taps_;
  StoreGeometry geometry_;
  std::size_t index_ = 0, unit_ = 0;
};

}  // namespace

void check_order(const Program& program, const MachineConfig& machine,
                 std::span<const DramArray> arrays) {
  OrderChecker checker(program, machine, arrays);
  checker.run();
  for (const DramArray& array : arrays)
    if (!array.is_input) checker.require_written(array);
}

}  // namespace triptych::mmu
