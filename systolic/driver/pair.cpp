// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/pair.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "systolic/driver/written.h"
#include "systolic/isa/accesses.h"
#include "systolic/isa/check.h"
#include "systolic/isa/field.h"
#include "systolic/isa/schedule.h"
#include "systolic/isa/simulator.h"

namespace triptych::mmu {
namespace {

// Which PE of which matmul was the first to fail, found by running parts of a program again.

/// An accumulator that differs between two machines after the first instructions of a program.
struct WrongSum {
  std::size_t instructions = 0;
  std::uint32_t row = 0, column = 0;
};

struct Culprit {
  std::size_t matmul = 0;  ///< its number in the program
  std::uint32_t pe_row = 0, pe_column = 0;
  std::uint64_t cycle = 0;  ///< the cycle of that PE's wrong product
  std::uint32_t position = 0;
};

/// Runs a program on both machines from the same memory and says whether that accumulator differs.
using Differs = std::function<bool(const Program& program, const WrongSum& sum)>;

/// A matmul that adds to a sum, and the load of its tile.
struct Link {
  std::size_t matmul = 0, weights = 0;
  std::uint32_t position = 0;
};

/// Everything that was added to the accumulator since it last started from zero.
std::vector<Link> chain_of(const Program& program, const MachineConfig& machine,
                           const WrongSum& sum) {
  std::vector<Link> chain;
  std::deque<std::size_t> tiles;
  std::size_t active = 0;
  for (std::size_t i = 0; i < sum.instructions; ++i) {
    if (program[i].opcode() == Opcode::WeightLoad) tiles.push_back(i);
    if (program[i].opcode() != Opcode::Matmul) continue;
    const auto matmul = decode<Matmul>(program[i]);
    if (!matmul.keep) {
      active = tiles.front();
      tiles.pop_front();
    }
    const std::uint32_t position = (sum.row - matmul.accumulator) & (machine.accumulator_rows - 1);
    if (position >= matmul.count) continue;
    if (!matmul.accumulate) chain.clear();
    chain.push_back({i, active, position});
  }
  return chain;
}

Program first_instructions(const Program& program, std::size_t count) {
  Program part(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(count));
  part.push_back(encode_halt());
  return part;
}

/// The instruction with as many rows of its tile.
Instruction with_rows(const Instruction& instruction, std::uint32_t rows) {
  Instruction cut = instruction;
  for (const Field& field : find_opcode(Opcode::WeightLoad)->fields)
    if (field.name == "rows") set_field(cut, field, rows);
  return cut;
}

/// The chain of matmuls behind the sum is cut until it is right: first after a matmul, then after a
/// row of its tile. nullopt: the sum is right whenever it is looked at alone.
std::optional<Culprit> find_culprit(const Program& program,
                                    const std::vector<InstructionTimes>& times,
                                    const MachineConfig& machine, const WrongSum& sum,
                                    const Differs& differs) {
  const auto chain = chain_of(program, machine, sum);
  const auto link = std::ranges::partition_point(chain, [&](const Link& tried) {
    return !differs(first_instructions(program, tried.matmul + 1), sum);
  });
  if (link == chain.end()) return std::nullopt;
  Program part = first_instructions(program, link->matmul + 1);
  std::vector<std::uint32_t> rows(std::max(decode<WeightLoad>(program[link->weights]).rows, 1U) -
                                  1);  // from 1
  std::iota(rows.begin(), rows.end(), 1U);
  const auto wrong = std::ranges::partition_point(rows, [&](std::uint32_t count) {
    part[link->weights] = with_rows(program[link->weights], count);
    return !differs(part, sum);
  });
  const auto pe_row = static_cast<std::uint32_t>(wrong - rows.begin());
  return Culprit{
      .matmul = link->matmul,
      .pe_row = pe_row,
      .pe_column = sum.column,
      .cycle = pe_cycle(machine, times[link->matmul].start, {link->position, pe_row, sum.column}),
      .position = link->position};
}

constexpr std::size_t kTried = 16;  // wrong values to explain

class Pair : public Machine {
 public:
  Pair(std::unique_ptr<Machine> first, std::unique_ptr<Machine> second)
      : written_(first->config()), first_(std::move(first)), second_(std::move(second)) {}

  const MachineConfig& config() const override { return first_->config(); }
  std::span<std::byte> dram() override { return first_->dram(); }
  std::vector<std::uint16_t> read_buffer() override { return first_->read_buffer(); }
  std::vector<std::uint32_t> read_accumulators() override { return first_->read_accumulators(); }

  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config());
    copy_accessed(program);
    const std::vector<std::byte> before = save_targets(program);
    RunOptions timed = options;
    timed.record_times = true;
    const RunReport other = second_->run(program, timed);
    max_cycles_ = std::min(options.max_cycles, watchdog_cycles(other.counters.cycles));
    timed.max_cycles = max_cycles_;
    RunReport report = first_->run(program, timed);
    reject(difference(report, other, program));
    written_.add(program);
    reject(different_store(program, report.times, before));
    reject(different_accumulator(program, report.times, before));
    reject(different_buffer());
    if (!options.record_times) report.times.clear();
    return report;
  }

 private:
  static void reject(const std::string& difference) {
    if (!difference.empty()) throw Mismatch("[mmu] RTL and twin differ: " + difference);
  }

  /// visit(instruction, address, bytes, is_write) in program order, until it returns false.
  template <class Visit>
  void visit_program(const Program& program, Visit visit) {
    StoreGeometry geometry;
    bool goes_on = true;
    for (std::size_t i = 0; goes_on && i < program.size(); ++i) {
      geometry.set(program[i]);
      visit_accesses(program[i], geometry, config(),
                     [&](std::uint64_t address, std::uint64_t bytes, bool is_write) {
                       return goes_on = visit(i, address, bytes, is_write);
                     });
    }
  }

  void copy_accessed(const Program& program) {
    const std::byte* source = first_->dram().data();
    std::byte* target = second_->dram().data();
    visit_program(program, [&](std::size_t, std::uint64_t address, std::uint64_t bytes, bool) {
      std::memcpy(target + address, source + address, bytes);
      return true;
    });
  }

  /// The bytes that the program will write, one store after the other.
  std::vector<std::byte> save_targets(const Program& program) {
    std::vector<std::byte> saved;
    const std::byte* dram = first_->dram().data();
    visit_program(program,
                  [&](std::size_t, std::uint64_t address, std::uint64_t bytes, bool is_write) {
                    if (is_write) saved.insert(saved.end(), dram + address, dram + address + bytes);
                    return true;
                  });
    return saved;
  }

  void restore_targets(const Program& program, const std::vector<std::byte>& saved) {
    const std::byte* from = saved.data();
    visit_program(program,
                  [&](std::size_t, std::uint64_t address, std::uint64_t bytes, bool is_write) {
                    if (!is_write) return true;
                    std::memcpy(first_->dram().data() + address, from, bytes);
                    std::memcpy(second_->dram().data() + address, from, bytes);
                    from += bytes;
                    return true;
                  });
  }

  /// The first position of a store with different bytes.
  std::string different_store(const Program& program, const std::vector<InstructionTimes>& times,
                              const std::vector<std::byte>& before) {
    const auto found = wrong_stores(program);
    if (found.empty()) return {};
    const WrongStore& first = found.front();
    const Store store = decode<Store>(program[first.instruction]);
    const auto values = [&](Machine& machine) {
      return value_text(store, machine.dram().data() + first.address);
    };
    const std::string what = fmt::format(
        "position {}, column {} of instruction {} ({}), DRAM byte {}: {}", first.position,
        first.column, first.instruction, disassemble(program[first.instruction]), first.address,
        expected_and_got(values(*second_), values(*first_)));
    std::vector<WrongSum> sums;
    sums.reserve(found.size());
    for (const auto& wrong : found)
      sums.push_back({wrong.instruction, wrong.accumulator, wrong.column});
    return what + culprit_text(program, times, sums, before);
  }

  struct WrongStore {
    std::size_t instruction = 0;
    std::uint64_t address = 0;  ///< of the value
    std::uint32_t position = 0, column = 0, accumulator = 0;
  };

  /// The first ones, at most one of each position.
  std::vector<WrongStore> wrong_stores(const Program& program) {
    std::vector<WrongStore> found;
    StoreGeometry geometry;
    for (std::size_t i = 0; i < program.size(); ++i) {
      geometry.set(program[i]);
      if (program[i].opcode() != Opcode::Store) continue;
      const auto store = decode<Store>(program[i]);
      if (store.buffer) continue;
      OutputWalk walk(geometry, store);
      OutputWalk rows = OutputWalk::accumulators(geometry, store);
      for (std::uint32_t m = 0; m < store.count && found.size() < kTried;
           ++m, walk.next(), rows.next()) {
        const std::byte* first = first_->dram().data() + walk.address();
        const std::byte* second = second_->dram().data() + walk.address();
        const std::byte* end = first + position_bytes(store, config());
        const auto [got, expected] = std::mismatch(first, end, second);
        if (got == end) continue;
        const auto byte = static_cast<std::uint32_t>(got - first);
        const std::uint32_t column = column_of(store, byte, *got ^ *expected);
        found.push_back({i, walk.address() + byte - byte % value_bytes(store), m, column,
                         rows.address() & (config().accumulator_rows - 1)});
      }
    }
    return found;
  }

  std::uint32_t value_bytes(const Store& store) const {
    if (store.mask) return 1;
    return store.narrow ? config().element_bytes() : 4;
  }
  std::uint32_t column_of(const Store& store, std::uint32_t byte, std::byte bits) const {
    if (!store.mask) return byte / value_bytes(store);
    return 8 * byte + static_cast<std::uint32_t>(std::countr_zero(std::to_integer<unsigned>(bits)));
  }
  std::string value_text(const Store& store, const std::byte* value) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, value, value_bytes(store));
    if (store.mask) return fmt::format("mask {:#010b}", bits);
    if (config().pe == PeKind::Bf16) return sum_text(store.narrow ? bits << 16 : bits);
    return fmt::format(
        "{}", store.narrow ? static_cast<std::int8_t>(bits) : static_cast<std::int32_t>(bits));
  }
  /// An accumulator's bits.
  std::string sum_text(std::uint32_t bits) const {
    if (config().pe == PeKind::Int8) return fmt::format("{}", static_cast<std::int32_t>(bits));
    return fmt::format("{} ({:#010x})", std::bit_cast<float>(bits), bits);
  }
  static std::string expected_and_got(const std::string& expected, const std::string& got) {
    return fmt::format("expected {} (twin), got {} (RTL)", expected, got);
  }

  bool accumulators_differ(const WrongSum& sum) {
    const std::size_t at = std::size_t{sum.row} * config().columns + sum.column;
    return first_->read_accumulators()[at] != second_->read_accumulators()[at];
  }

  /// Which PE did it. A wrong value at one position may be right when the program runs again,
  /// because registers of the array hold values of the previous run. Then it examines the next one.
  std::string culprit_text(const Program& program, const std::vector<InstructionTimes>& times,
                           const std::vector<WrongSum>& sums,
                           const std::vector<std::byte>& before) {
    const bool sum_was_wrong = accumulators_differ(sums.front());
    const auto differs = [&](const Program& part, const WrongSum& looked_at) {
      restore_targets(program, before);
      first_->run(part, {.max_cycles = max_cycles_});
      second_->run(part, {});
      return accumulators_differ(looked_at);
    };
    for (const WrongSum& sum : sums) {
      const auto culprit = find_culprit(program, times, config(), sum, differs);
      if (!culprit) continue;
      return fmt::format(
          "; first wrong is PE row {}, column {}, in cycle {}, at position {} of instruction {} "
          "({})",
          culprit->pe_row, culprit->pe_column, culprit->cycle, culprit->position, culprit->matmul,
          disassemble(program[culprit->matmul]));
    }
    return fmt::format(
        "; the sum in accumulator row {}, column {}, is {}", sums.front().row, sums.front().column,
        sum_was_wrong ? "wrong, too, but right when the program runs again: it hangs on what "
                        "registers held before"
                      : "right: the output unit did it");
  }

  std::string different_accumulator(const Program& program,
                                    const std::vector<InstructionTimes>& times,
                                    const std::vector<std::byte>& before) {
    const auto got = first_->read_accumulators(), expected = second_->read_accumulators();
    std::vector<WrongSum> sums;
    for (std::size_t i = 0; i < got.size() && sums.size() < kTried; ++i) {
      const std::size_t row = i / config().columns, column = i % config().columns;
      if (got[i] == expected[i] || !written_.accumulator(row, column)) continue;
      sums.push_back(
          {program.size(), static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column)});
    }
    if (sums.empty()) return {};
    const auto [end, row, column] = sums.front();
    const std::size_t at = std::size_t{row} * config().columns + column;
    return fmt::format("accumulator row {}, column {}: {}", row, column,
                       expected_and_got(sum_text(expected[at]), sum_text(got[at]))) +
           culprit_text(program, times, sums, before);
  }

  std::string different_buffer() {
    const auto got = first_->read_buffer(), expected = second_->read_buffer();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t row = i / config().rows;
      if (got[i] == expected[i] || !written_.buffer_row(row)) continue;
      return fmt::format(
          "buffer row {}, bank {}: {}", row, i % config().rows,
          expected_and_got(fmt::format("{:#06x}", expected[i]), fmt::format("{:#06x}", got[i])));
    }
    return {};
  }

  Written written_;
  std::uint64_t max_cycles_ = 0;
  std::unique_ptr<Machine> first_, second_;
};

}  // namespace

std::string difference(const RunReport& first, const RunReport& second, const Program& program) {
  for (std::size_t i = 0; i < std::min(first.times.size(), second.times.size()); ++i) {
    const InstructionTimes& a = first.times[i];
    const InstructionTimes& b = second.times[i];
    if (a != b)
      return fmt::format("instruction {} ({}): cycles {} to {} and {} to {}", i,
                         disassemble(program[i]), a.start, a.end, b.start, b.end);
  }
  std::map<std::string, std::array<std::uint64_t, 2>> values;  // some names stand in one list only
  for (const auto& [name, value] : named_counts(first.counters)) values[name][0] = value;
  for (const auto& [name, value] : named_counts(second.counters)) values[name][1] = value;
  for (const auto& [name, value] : values)
    if (value[0] != value[1]) return fmt::format("{}: {} and {}", name, value[0], value[1]);
  return {};
}

std::unique_ptr<Machine> open_pair(std::unique_ptr<Machine> first,
                                   std::unique_ptr<Machine> second) {
  return std::make_unique<Pair>(std::move(first), std::move(second));
}

}  // namespace triptych::mmu
