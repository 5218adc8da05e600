// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/isa.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "systolic/isa/field.h"
#include "systolic/isa/layout.h"

namespace triptych::mmu {
namespace {

template <class T>
constexpr auto fields_of() {
  std::array<Field, Layout<T>::kOperands.size()> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = Layout<T>::kOperands[i].field;
  return fields;
}
template <class T>
inline constexpr auto kFields = fields_of<T>();

constexpr std::array kOpcodes{
    OpcodeInfo{Opcode::Halt, "halt", Unit::Load, {}, "waits until every unit is idle, then ends"},
    OpcodeInfo{Opcode::Load, "load", Unit::Load, kFields<Load>, "DRAM to unified buffer"},
    OpcodeInfo{Opcode::WeightLoad, "weight_load", Unit::Weights, kFields<WeightLoad>,
               "DRAM to weight FIFO, one tile"},
    OpcodeInfo{Opcode::SetStream, "set_stream", Unit::Compute, kFields<SetStream>,
               "how a matmul walks over output positions"},
    OpcodeInfo{Opcode::SetTaps, "set_taps", Unit::Compute, kFields<SetTaps>,
               "how a matmul walks over kernel row, kernel column, channel"},
    OpcodeInfo{Opcode::Matmul, "matmul", Unit::Compute, kFields<Matmul>,
               "streams activations through the array"},
    OpcodeInfo{Opcode::SetOutput, "set_output", Unit::Store, kFields<SetOutput>,
               "how a store walks over DRAM or the buffer"},
    OpcodeInfo{Opcode::LoadRegisters, "load_registers", Unit::Store, kFields<LoadRegisters>,
               "DRAM to column registers of the output unit"},
    OpcodeInfo{Opcode::Store, "store", Unit::Store, kFields<Store>,
               "accumulators to output unit to DRAM or unified buffer"},
    OpcodeInfo{Opcode::SetOperand, "set_operand", Unit::Store, kFields<SetOperand>,
               "how a store walks over its second operand"},
    OpcodeInfo{Opcode::VectorLoad, "vector_load", Unit::Store, kFields<VectorLoad>,
               "DRAM to vector memory"},
    OpcodeInfo{Opcode::VectorStore, "vector_store", Unit::Store, kFields<VectorStore>,
               "vector memory to DRAM"},
    OpcodeInfo{Opcode::VectorOp, "vector_op", Unit::Store, kFields<VectorOp>,
               "one operation on rows of the vector memory"}};

Instruction encode_head(Opcode opcode, Tokens tokens) {
  if (tokens.wait > 15 || tokens.signal > 15)
    throw std::invalid_argument(
        fmt::format("[isa] wait {} or signal {} has bits beyond the four units; use 1 << unit",
                    tokens.wait, tokens.signal));
  Instruction instruction;
  instruction.words[0] =
      static_cast<std::uint32_t>(opcode) | tokens.wait << 8 | tokens.signal << 12;
  return instruction;
}

inline std::int64_t extract(const Instruction& instruction, const Field& field) {
  const std::uint32_t word = instruction.words[static_cast<std::size_t>(field.word)];
  const auto mask = (std::uint64_t{1} << field.bits) - 1;
  const auto value = static_cast<std::int64_t>(word >> field.shift & mask);
  const bool negative = field.is_signed && (value >> (field.bits - 1)) != 0;
  return negative ? value - (std::int64_t{1} << field.bits) : value;
}

constexpr std::int64_t smallest(const Field& field) {
  return field.is_signed ? -(std::int64_t{1} << (field.bits - 1)) : 0;
}
constexpr std::int64_t largest(const Field& field) {
  return (std::int64_t{1} << (field.bits - (field.is_signed ? 1 : 0))) - 1;
}

inline void insert(Instruction& instruction, const Field& field, std::int64_t value) {
  if (value < smallest(field) || value > largest(field))
    throw std::invalid_argument("[isa] " + misfit(field, value));
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << field.bits) - 1);
  std::uint32_t& word = instruction.words[static_cast<std::size_t>(field.word)];
  word &= ~(mask << field.shift);
  word |= (static_cast<std::uint32_t>(value) & mask) << field.shift;
}

// Each run encodes its program, and the twin decodes millions of instructions: the loops over the
// operands are unrolled when this is compiled.

template <class T, std::size_t... I>
Instruction encode_operands(const T& operands, Tokens tokens, std::index_sequence<I...>) {
  Instruction instruction = encode_head(Layout<T>::kOpcode, tokens);
  const auto set = [&]<std::size_t kIndex>() {
    constexpr FieldMember<T> operand = Layout<T>::kOperands[kIndex];
    constexpr auto member = std::get<operand.member.index()>(operand.member);
    insert(instruction, operand.field, static_cast<std::int64_t>(operands.*member));
  };
  (set.template operator()<I>(), ...);
  return instruction;
}

template <class T>
Instruction encode_operands(const T& operands, Tokens tokens) {
  return encode_operands(operands, tokens, std::make_index_sequence<Layout<T>::kOperands.size()>());
}

template <class T, std::size_t... I>
T decode_operands(const Instruction& instruction, std::index_sequence<I...>) {
  T operands;
  const auto set = [&]<std::size_t kIndex>() {
    constexpr FieldMember<T> operand = Layout<T>::kOperands[kIndex];
    constexpr Field field = operand.field;
    constexpr auto member = std::get<operand.member.index()>(operand.member);
    using Value = std::remove_reference_t<decltype(operands.*member)>;
    operands.*member = static_cast<Value>(extract(instruction, field));
  };
  (set.template operator()<I>(), ...);
  return operands;
}

}  // namespace

std::span<const OpcodeInfo> opcodes() { return kOpcodes; }

const OpcodeInfo* find_opcode(Opcode opcode) {
  static_assert(std::ranges::all_of(kOpcodes, [](const OpcodeInfo& info) {
    return &info == &kOpcodes[static_cast<std::size_t>(info.opcode) - 1];
  }));
  const auto i = static_cast<std::size_t>(opcode) - 1;
  return i < kOpcodes.size() ? &kOpcodes[i] : nullptr;
}

std::string_view to_string(Unit unit) {
  constexpr std::array<std::string_view, kUnits> names{"load", "weights", "compute", "store"};
  return names.at(static_cast<std::size_t>(unit));
}

std::string misfit(const Field& field, std::int64_t value) {
  const std::int64_t low = smallest(field), high = largest(field);
  if (value >= low && value <= high) return {};
  return fmt::format("{} = {} does not fit: give {} to {}", field.name, value, low, high);
}

void set_field(Instruction& instruction, const Field& field, std::int64_t value) {
  insert(instruction, field, value);
}

std::int64_t get_field(const Instruction& instruction, const Field& field) {
  return extract(instruction, field);
}

Instruction encode_halt() { return encode_head(Opcode::Halt, {}); }
Instruction encode(const Load& load, Tokens tokens) { return encode_operands(load, tokens); }
Instruction encode(const WeightLoad& load, Tokens tokens) { return encode_operands(load, tokens); }
Instruction encode(const SetStream& set, Tokens tokens) { return encode_operands(set, tokens); }
Instruction encode(const SetTaps& set, Tokens tokens) { return encode_operands(set, tokens); }
Instruction encode(const Matmul& matmul, Tokens tokens) { return encode_operands(matmul, tokens); }
Instruction encode(const SetOutput& set, Tokens tokens) { return encode_operands(set, tokens); }
Instruction encode(const LoadRegisters& load, Tokens tokens) {
  return encode_operands(load, tokens);
}
Instruction encode(const Store& store, Tokens tokens) { return encode_operands(store, tokens); }
Instruction encode(const SetOperand& set, Tokens tokens) { return encode_operands(set, tokens); }
Instruction encode(const VectorLoad& load, Tokens tokens) { return encode_operands(load, tokens); }
Instruction encode(const VectorStore& store, Tokens tokens) {
  return encode_operands(store, tokens);
}
Instruction encode(const VectorOp& op, Tokens tokens) { return encode_operands(op, tokens); }

template <class T>
T decode(const Instruction& instruction) {
  return decode_operands<T>(instruction, std::make_index_sequence<Layout<T>::kOperands.size()>());
}

template Load decode<Load>(const Instruction&);
template WeightLoad decode<WeightLoad>(const Instruction&);
template SetStream decode<SetStream>(const Instruction&);
template SetTaps decode<SetTaps>(const Instruction&);
template Matmul decode<Matmul>(const Instruction&);
template SetOutput decode<SetOutput>(const Instruction&);
template LoadRegisters decode<LoadRegisters>(const Instruction&);
template Store decode<Store>(const Instruction&);
template SetOperand decode<SetOperand>(const Instruction&);
template VectorLoad decode<VectorLoad>(const Instruction&);
template VectorStore decode<VectorStore>(const Instruction&);
template VectorOp decode<VectorOp>(const Instruction&);

}  // namespace triptych::mmu
