// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <stdexcept>
#include <vector>

#include "systolic/isa/accesses.h"
#include "systolic/isa/vector_operations.h"

namespace triptych::mmu {
namespace {

constexpr int kMaxTokens = 255;

/// The first complaint wins.
class Complaint {
 public:
  void unless(bool fine, std::string_view text) {
    if (!fine && text_.empty()) text_ = text;
  }
  void unless_within(std::string_view name, std::uint64_t value, std::uint64_t high) {
    if (value == 0 || value > high)
      unless(false, fmt::format("{} = {}: give 1 to {}", name, value, high));
  }
  void unless_left(std::uint32_t rows, std::uint32_t columns) {
    if (rows == 0 || columns == 0)
      unless(false, fmt::format("{} = 0: it counts from this position on, at least 1",
                                rows == 0 ? "rows_left" : "columns_left"));
  }
  void unless_group(std::uint32_t log2_group, const MachineConfig& machine) {
    if (machine.has_group(log2_group)) return;
    std::vector<std::string> groups;
    for (std::uint32_t log2 = 0; log2 <= 8; ++log2)
      if (machine.has_group(log2))
        groups.push_back(fmt::format("{} for {}", log2, machine.group(log2)));
    unless(false, fmt::format("log2_group = {}: of {} rows there are groups {}", log2_group,
                              machine.rows, fmt::join(groups, ", ")));
  }
  void unless_dataflow(const MachineConfig& machine) {
    if (machine.has_output_stationary()) return;
    unless(false, fmt::format("{} has the weight-stationary dataflow only; give its file "
                              "\"dataflows\": \"both\"",
                              machine.name));
  }
  void unless_vector_unit(const MachineConfig& machine) {
    if (machine.has_vector_unit()) return;
    unless(false,
           fmt::format("{} has no vector unit; give its file \"vector_rows\": 1024", machine.name));
  }
  void unless_rows(std::uint32_t first, std::uint32_t count, const MachineConfig& machine) {
    if (first + count > machine.accumulator_rows)
      unless(false, fmt::format("accumulator rows {} to {} of {}", first, first + count - 1,
                                machine.accumulator_rows));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void check_matmul(Complaint& complaint, const Matmul& matmul, const MachineConfig& machine) {
  complaint.unless(matmul.count > 0, "count is 0");
  complaint.unless_left(matmul.rows_left, matmul.columns_left);
  complaint.unless_rows(matmul.accumulator, matmul.count, machine);
  complaint.unless(!matmul.abut || (matmul.transpose && matmul.count >= machine.rows),
                   "only a transposed stream of at least as many values as rows abuts");
  if (!matmul.output_stationary)
    return complaint.unless(!matmul.drain, "drain moves the sums of an output-stationary matmul");
  complaint.unless_dataflow(machine);
  complaint.unless(!matmul.keep && !matmul.abut,
                   "an output-stationary matmul streams a tile of its own: it neither keeps nor "
                   "abuts");
  complaint.unless_within("count", matmul.count, machine.rows);
}

void check_store(Complaint& complaint, const Store& store, const MachineConfig& machine) {
  complaint.unless(store.count > 0, "count is 0");
  complaint.unless_left(store.rows_left, store.columns_left);
  complaint.unless_within("columns", store.columns, machine.columns);
  complaint.unless(!store.residual || !store.select,
                   "residual and select: a store has one operand");
  if (store.buffer) {
    complaint.unless(store.narrow && !store.mask,
                     "the buffer holds activations: a store to it is narrow and makes no mask");
    complaint.unless_group(store.log2_group, machine);
    complaint.unless(store.columns <= machine.group(store.log2_group),
                     "more columns than the group's channels: a position is one buffer row");
  }
  complaint.unless_rows(store.accumulator, store.count, machine);
}

void check_vector_op(Complaint& complaint, const VectorOp& op, const MachineConfig& machine) {
  complaint.unless_vector_unit(machine);
  complaint.unless(op.count > 0, "count is 0");
  if (op.operation >= kVectorOperations.size())
    return complaint.unless(false, fmt::format("operation = {}: give 0 to {}", op.operation,
                                               kVectorOperations.size() - 1));
  if (crosses_lanes(vector_operation(op.operation).operation) && op.scalar >= machine.columns)
    complaint.unless(
        false, fmt::format("scalar = {}: there are lanes 0 to {}", op.scalar, machine.columns - 1));
}

/// Rows of a memory that an instruction visits, one after the other.
struct RowWalk {
  std::string_view name;
  std::uint32_t first;
  std::int32_t step;

  std::int64_t row(std::int64_t i) const { return first + step * i; }
  /// Empty: all of `count` rows are among the memory's.
  std::string leaves(std::uint32_t count, std::uint32_t rows, std::string_view memory) const {
    const std::int64_t last = row(count - 1);
    if (first < rows && last >= 0 && last < rows) return {};
    return fmt::format("{} is rows {} to {} of the {}, which has {}", name, first, last, memory,
                       rows);
  }
  /// True when one of the first `count` visits is to this row.
  bool visits(std::int64_t visited, std::uint32_t count) const {
    const std::int64_t i = step == 0 ? 0 : (visited - first) / step;
    return i >= 0 && i < count && row(i) == visited;
  }
};

/// The operands in the vector memory, at most three.
class VectorOperands {
 public:
  explicit VectorOperands(const VectorOp& op) {
    const unsigned reads = vector_operation(op.operation).reads;
    if ((reads & kReadsA) != 0 && !op.accumulators) add({"a", op.a, op.a_step});
    if ((reads & kReadsB) != 0 && !op.constant) add({"b", op.b, op.b_step});
    if ((reads & kReadsC) != 0) add({"c", op.c, op.c_step});
  }
  auto begin() const { return walks_.begin(); }
  auto end() const { return walks_.begin() + count_; }

 private:
  void add(const RowWalk& walk) { walks_[static_cast<std::size_t>(count_++)] = walk; }

  std::array<RowWalk, 3> walks_{};
  std::ptrdiff_t count_ = 0;
};

/// Rows are read ahead of the writes.
std::string check_vector_rows(const VectorOp& op, const MachineConfig& machine) {
  const RowWalk result{"destination", op.destination, op.step};
  std::string problem = result.leaves(op.count, machine.vector_rows, "vector memory");
  const VectorOperands operands(op);
  for (const RowWalk& operand : operands)
    if (problem.empty()) problem = operand.leaves(op.count, machine.vector_rows, "vector memory");
  if (problem.empty() && op.accumulators)
    problem =
        RowWalk{"a", op.a, op.a_step}.leaves(op.count, machine.accumulator_rows, "accumulators");
  if (!problem.empty()) return problem;
  for (const RowWalk& operand : operands)
    for (std::uint32_t i = 0; i < op.count; ++i)
      if (result.visits(operand.row(i), i))
        return fmt::format("reads row {} of the vector memory as {}, after it has written it",
                           operand.row(i), operand.name);
  return {};
}

std::string check_vector_rows(std::uint32_t first, std::uint32_t count,
                              const MachineConfig& machine) {
  return RowWalk{"row", first, 1}.leaves(count, machine.vector_rows, "vector memory");
}

/// Executes a program one instruction after the other, in tokens, tiles and addresses only.
class Checker {
 public:
  Checker(const Program& program, const MachineConfig& machine)
      : program_(program), machine_(machine) {}

  /// The fault of the instruction of that number, which comes after those before it. Empty: none.
  std::string check(std::size_t number) {
    const Instruction& instruction = program_[number];
    number_ = number;
    if (std::string problem = illegal(instruction, machine_); !problem.empty()) return problem;
    if (std::string problem = exchange_tokens(instruction); !problem.empty()) return problem;
    switch (instruction.opcode()) {
      case Opcode::WeightLoad:
        tiles_.push_back(decode<WeightLoad>(instruction));
        break;
      case Opcode::Matmul:
        return check_matmul_order(decode<Matmul>(instruction));
      case Opcode::LoadRegisters:
        if (std::string problem = check_registers(decode<LoadRegisters>(instruction));
            !problem.empty())
          return problem;
        break;
      case Opcode::Store:
        if (std::string problem = check_store_order(decode<Store>(instruction)); !problem.empty())
          return problem;
        break;
      case Opcode::SetOutput:
        output_set_ = true;
        geometry_.set(instruction);
        break;
      case Opcode::SetOperand:
        operand_set_ = true;
        geometry_.set(instruction);
        break;
      case Opcode::SetStream:
        stream_set_ = true;
        break;
      case Opcode::SetTaps:
        taps_set_ = true;
        break;
      case Opcode::VectorLoad:
      case Opcode::VectorStore:
      case Opcode::VectorOp:
        if (std::string problem = check_vector(instruction); !problem.empty()) return problem;
        break;
      default:
        break;
    }
    const std::size_t room =
        machine_.weight_tiles + (!tiles_.empty() && tiles_.front().stream ? 0 : 1);
    if (tiles_.size() > room)
      return fmt::format("{} tiles wait for matmuls, the FIFO {}hold{} {}", tiles_.size(),
                         room > machine_.weight_tiles ? "and the shadow weights " : "",
                         room > machine_.weight_tiles ? "" : "s", room);
    return check_spans(instruction);
  }

 private:
  /// Tokens of one unit for another.
  struct Tokens {
    int waiting = 0;                   ///< given and not taken
    std::optional<std::size_t> taker;  ///< the last instruction that took one
  };

  std::string no_token(const Tokens& tokens, std::string_view giver) const {
    if (!tokens.taker)
      return fmt::format("waits for a token of {} that no earlier instruction gives", giver);
    return fmt::format(
        "waits for a token of {}, and each that earlier instructions give is taken, the last one "
        "by instruction {} ({})",
        giver, *tokens.taker, disassemble(program_[*tokens.taker]));
  }

  std::string exchange_tokens(const Instruction& instruction) {
    if (instruction.opcode() == Opcode::Halt)
      return instruction.wait() | instruction.signal() ? "halt takes and gives no tokens" : "";
    const auto self = static_cast<std::size_t>(find_opcode(instruction.opcode())->unit);
    if (((instruction.wait() | instruction.signal()) >> self & 1) != 0)
      return "a unit exchanges no tokens with itself";
    for (std::size_t other = 0; other < kUnits; ++other) {
      const auto name = [&] { return to_string(static_cast<Unit>(other)); };
      auto& taken = tokens_[other][self];
      if ((instruction.wait() >> other & 1) != 0) {
        if (taken.waiting == 0) return no_token(taken, name());
        --taken.waiting;
        taken.taker = number_;
      }
      if ((instruction.signal() >> other & 1) != 0 && ++tokens_[self][other].waiting > kMaxTokens)
        return fmt::format("more than {} tokens wait for {}", kMaxTokens, name());
    }
    return {};
  }

  std::string check_spans(const Instruction& instruction) const {
    if (instruction.opcode() == Opcode::WeightLoad) {  // millions of them: their end first
      const auto load = decode<WeightLoad>(instruction);
      const std::uint64_t last = load.address + std::uint64_t{load.rows - 1} * load.pitch;
      const std::uint64_t end = last + load.columns * machine_.element_bytes();
      if (end <= std::min(machine_.dram_bytes, std::uint64_t{1} << 32)) return {};
    }
    std::string problem;
    visit_accesses(instruction, geometry_, machine_,
                   [&](std::uint64_t address, std::uint64_t bytes, bool) {
                     if (address + bytes > machine_.dram_bytes)
                       problem = fmt::format("DRAM bytes {} to {} of {}", address,
                                             address + bytes - 1, machine_.dram_bytes);
                     return problem.empty();
                   });
    return problem;
  }

  std::string check_matmul_order(const Matmul& matmul) {
    if (!stream_set_ || !taps_set_) return "no set_stream or no set_taps precedes it";
    if (abuts_ && (!matmul.transpose || matmul.output_stationary))
      return "the matmul before it abuts on a transposed one";
    abuts_ = matmul.abut;
    if (matmul.keep) return swapped_ ? "" : "keeps weights, but no matmul swapped any in";
    if (tiles_.empty())
      return fmt::format("no weight_load precedes it whose tile is unused{}",
                         swapped_ ? "; keep=1 goes on with the tile that is in the array" : "");
    const WeightLoad tile = tiles_.front();
    tiles_.pop_front();
    if (tile.stream != matmul.output_stationary)
      return fmt::format(
          "the tile is loaded with stream={}, {} matmul needs stream={}", tile.stream ? 1 : 0,
          matmul.output_stationary ? "an output-stationary" : "this", tile.stream ? 0 : 1);
    if (matmul.output_stationary) return check_chain(matmul, tile.columns);
    swapped_ = true;
    return {};
  }

  /// Sums in the PEs: one chain at a time.
  std::string check_chain(const Matmul& matmul, std::uint32_t columns) {
    if (matmul.accumulate &&
        (!chain_ || chain_->results != matmul.count || chain_->columns != columns))
      return fmt::format("goes on with {} x {} sums in the array, {}", matmul.count, columns,
                         chain_
                             ? fmt::format("which holds {} x {}", chain_->results, chain_->columns)
                             : "and no output-stationary matmul without accumulate precedes it");
    chain_ = {matmul.count, columns};
    if (matmul.drain) chain_.reset();
    return {};
  }

  std::string check_store_order(const Store& store) const {
    if (!output_set_) return "no set_output precedes it";
    if (store.bias && store.columns > loaded_[LoadRegisters::kBias])
      return fmt::format("adds {} biases, load_registers loaded {}", store.columns,
                         loaded_[LoadRegisters::kBias]);
    if (has_operand(store) && !operand_set_) return "no set_operand precedes it";
    if (has_operand(store) && !store.buffer && overwrites_operand(store))
      return "its result overlaps its operand, other than position for position";
    if (!store.scale) return {};
    if (store.columns > loaded_[LoadRegisters::kMultiplier])
      return fmt::format("scales {} columns, load_registers loaded {} multipliers", store.columns,
                         loaded_[LoadRegisters::kMultiplier]);
    if (machine_.pe == PeKind::Int8 && store.columns > loaded_[LoadRegisters::kShift])
      return fmt::format("scales {} columns, load_registers loaded {} shifts", store.columns,
                         loaded_[LoadRegisters::kShift]);
    return {};
  }

  /// Operands are read ahead of the writes: the two must be apart, or the same position for
  /// position.
  bool overwrites_operand(const Store& store) const {
    const auto written = positions_of(OutputWalk(geometry_, store), store.count);
    const auto read = positions_of(OutputWalk::operand(geometry_, store), store.count);
    const std::uint32_t size = position_bytes(store, machine_);
    if (written == read && operand_bytes(store, machine_) == size) return !are_apart(written, size);
    const auto [low, high] = std::ranges::minmax(written);
    const auto [first, last] = std::ranges::minmax(read);
    return low < std::uint64_t{last} + operand_bytes(store, machine_) &&
           first < std::uint64_t{high} + size;
  }
  static std::vector<std::uint32_t> positions_of(OutputWalk walk, std::uint32_t count) {
    std::vector<std::uint32_t> positions(count);
    for (std::uint32_t& position : positions) {
      position = walk.address();
      walk.next();
    }
    return positions;
  }
  static bool are_apart(std::vector<std::uint32_t> positions, std::uint32_t bytes) {
    std::ranges::sort(positions);
    const auto closer = [&](std::uint32_t a, std::uint32_t b) { return b - a < bytes; };
    return std::ranges::adjacent_find(positions, closer) == positions.end();
  }

  std::string check_vector(const Instruction& instruction) const {
    if (instruction.opcode() == Opcode::VectorOp)
      return check_vector_rows(decode<VectorOp>(instruction), machine_);
    if (instruction.opcode() == Opcode::VectorStore) {
      const auto store = decode<VectorStore>(instruction);
      return check_vector_rows(store.row, store.count, machine_);
    }
    const auto load = decode<VectorLoad>(instruction);
    return check_vector_rows(load.row, load.count, machine_);
  }

  std::string check_registers(const LoadRegisters& load) {
    const std::uint32_t last = load.file + load.more;
    if (last == LoadRegisters::kShift && machine_.pe == PeKind::Bf16)
      return "a bf16 machine has no shift registers";
    for (std::uint32_t file = load.file; file <= last; ++file)
      loaded_[file] = std::max(loaded_[file], load.columns);
    return {};
  }

  const Program& program_;
  const MachineConfig& machine_;
  std::size_t number_ = 0;                                   ///< of the instruction that is checked
  std::array<std::array<Tokens, kUnits>, kUnits> tokens_{};  ///< [giver][taker]
  /// Sums that stay in the array.
  struct Chain {
    std::uint32_t results = 0, columns = 0;
  };

  std::deque<WeightLoad> tiles_;  ///< those that wait
  std::optional<Chain> chain_;
  std::array<std::uint32_t, LoadRegisters::kFiles> loaded_{};  ///< registers, by file
  bool stream_set_ = false, taps_set_ = false, swapped_ = false;
  bool output_set_ = false, operand_set_ = false;
  bool abuts_ = false;
  StoreGeometry geometry_;
};

}  // namespace

std::string illegal(const Instruction& instruction, const MachineConfig& machine) {
  Complaint complaint;
  complaint.unless(find_opcode(instruction.opcode()) != nullptr, "unknown opcode");
  switch (instruction.opcode()) {
    case Opcode::Load: {
      const auto load = decode<Load>(instruction);
      complaint.unless(load.units > 0 && load.lines > 0, "units or lines is 0");
      complaint.unless_group(load.log2_group, machine);
      break;
    }
    case Opcode::WeightLoad: {
      const auto load = decode<WeightLoad>(instruction);
      complaint.unless_within("rows", load.rows, machine.rows);
      complaint.unless_within("columns", load.columns, machine.columns);
      if (load.stream) complaint.unless_dataflow(machine);
      break;
    }
    case Opcode::SetStream: {
      const auto set = decode<SetStream>(instruction);
      complaint.unless(set.in_height > 0 && set.in_width > 0, "in_height or in_width is 0");
      complaint.unless(set.out_height > 0 && set.out_width > 0, "out_height or out_width is 0");
      break;
    }
    case Opcode::SetTaps: {
      const auto set = decode<SetTaps>(instruction);
      complaint.unless(set.channels > 0 && set.kernel_width > 0, "channels or kernel_width is 0");
      complaint.unless_group(set.log2_group, machine);
      break;
    }
    case Opcode::Matmul:
      check_matmul(complaint, decode<Matmul>(instruction), machine);
      break;
    case Opcode::SetOutput: {
      const auto set = decode<SetOutput>(instruction);
      complaint.unless(set.out_height > 0 && set.out_width > 0, "out_height or out_width is 0");
      break;
    }
    case Opcode::LoadRegisters: {
      const auto load = decode<LoadRegisters>(instruction);
      complaint.unless_within("columns", load.columns, machine.columns);
      complaint.unless(load.file + load.more < LoadRegisters::kFiles,
                       "files beyond 2: 0 is bias, 1 multiplier, 2 shift");
      break;
    }
    case Opcode::Store:
      check_store(complaint, decode<Store>(instruction), machine);
      break;
    case Opcode::VectorLoad: {
      const auto load = decode<VectorLoad>(instruction);
      complaint.unless_vector_unit(machine);
      complaint.unless(load.count > 0, "count is 0");
      complaint.unless_within("columns", load.columns, machine.columns);
      break;
    }
    case Opcode::VectorStore: {
      const auto store = decode<VectorStore>(instruction);
      complaint.unless_vector_unit(machine);
      complaint.unless(store.count > 0, "count is 0");
      complaint.unless_within("columns", store.columns, machine.columns);
      break;
    }
    case Opcode::VectorOp:
      check_vector_op(complaint, decode<VectorOp>(instruction), machine);
      break;
    case Opcode::SetOperand:
    case Opcode::Halt:
      break;
  }
  return complaint.take();
}

void check_program(const Program& program, const MachineConfig& machine) {
  Checker checker(program, machine);
  const auto reject = [&](std::size_t i, std::string_view problem) {
    throw std::invalid_argument(
        fmt::format("instruction {} ({}): {}", i, disassemble(program[i]), problem));
  };
  if (program.empty()) throw std::invalid_argument("[mmu] an empty program: end it with a halt");
  for (std::size_t i = 0; i < program.size(); ++i) {
    const bool halts = program[i].opcode() == Opcode::Halt;
    if (halts && i + 1 < program.size()) reject(i, "instructions follow the halt");
    if (!halts && i + 1 == program.size()) reject(i, "a program ends with a halt");
    const std::string problem = checker.check(i);
    if (!problem.empty()) reject(i, problem);
  }
}

}  // namespace triptych::mmu
