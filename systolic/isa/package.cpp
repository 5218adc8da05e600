// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/package.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/vector_operations.h"

namespace triptych::mmu {
namespace {

constexpr std::string_view kBegin = "<!-- isa tables begin -->\n";
constexpr std::string_view kEnd = "<!-- isa tables end -->";

/// Where word 0 has the takers that the instruction waits for and signals, and its flags. Where the
/// operands begin and the instruction ends.
constexpr int kWait = 8, kSignal = 12, kFlags = 16, kOperands = 32, kBits = 256;

constexpr int place(const Field& field) { return 32 * field.word + field.shift; }

std::string upper(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string constant(const std::string& name, int value) {
  return fmt::format("  localparam int unsigned {} = {};\n", name, value);
}

std::string member(const std::string& name, int bits) {
  const std::string range = bits == 1 ? "" : fmt::format("[{}:0] ", bits - 1);
  return fmt::format("    logic {}{};\n", range, name);
}

/// The members that lie in bits [low, high) of an instruction, the highest first, and unused bits.
std::string members(std::span<const Field> fields, int low, int high) {
  std::vector<Field> inside;
  for (const Field& field : fields)
    if (const int lsb = place(field); lsb >= low && lsb < high) inside.push_back(field);
  std::ranges::sort(inside, std::greater(), place);
  std::string text;
  int top = high;
  const auto fill = [&](int end) {
    if (end < top) text += member(fmt::format("unused_{}", end), top - end);
  };
  for (const Field& field : inside) {
    fill(place(field) + field.bits);
    text += member(std::string(field.name), field.bits);
    top = place(field);
  }
  fill(low);
  return text;
}

/// An instruction's operands by name: struct <mnemonic>_t, and its flags, <mnemonic>_flags_t.
std::string instruction_struct(std::string_view mnemonic, std::span<const Field> fields) {
  const bool has_flags =
      std::ranges::any_of(fields, [](const Field& field) { return field.word == 0; });
  std::string text = "\n";
  if (has_flags)
    text += fmt::format("  typedef struct packed {{\n{}  }} {}_flags_t;\n",
                        members(fields, kFlags, kOperands), mnemonic);
  return text + fmt::format("  typedef struct packed {{\n{}{}{}{}{}  }} {}_t;\n",
                            members(fields, kOperands, kBits),
                            has_flags ? fmt::format("    {}_flags_t flags;\n", mnemonic)
                                      : member("flags", kOperands - kFlags),
                            member("signal", kFlags - kSignal),
                            member("wait_mask", kSignal - kWait), member("opcode", kWait),
                            mnemonic);
}

std::string opcode_enum() {
  std::string text = "  typedef enum logic [7:0] {\n";
  for (const OpcodeInfo& info : opcodes())
    text += fmt::format("    OP_{} = 8'd{}{}\n", upper(info.mnemonic),
                        static_cast<int>(info.opcode), &info == &opcodes().back() ? "" : ",");
  return text + "  } opcode_e;\n";
}

/// A constant for each name of an operand's numbers: OPERATION_MOVE = 5'd0.
std::string named_numbers() {
  std::string text;
  for (const OpcodeInfo& info : opcodes())
    for (const Field& field : info.fields)
      for (std::size_t i = 0; i < field.names.size(); ++i)
        text += fmt::format("  localparam logic [{}:0] {}_{} = {}'d{};\n", field.bits - 1,
                            upper(field.name), upper(field.names[i]), field.bits, i);
  return text;
}

/// The operations of the vector unit that have a property, as bits by number.
std::string set_of_operations(std::string_view name, auto has) {
  std::uint32_t numbers = 0;
  for (const VectorOperationInfo& info : kVectorOperations)
    numbers |= static_cast<std::uint32_t>(has(info)) << static_cast<int>(info.operation);
  return fmt::format("  localparam logic [31:0] OPERATIONS_{} = 32'h{:08X};\n", name, numbers);
}

/// For the counters: what an operation reads, and its arithmetic.
std::string sets_of_operations() {
  const auto reads = [](std::string_view name, unsigned operand) {
    return set_of_operations(name, [&](const auto& info) { return (info.reads & operand) != 0; });
  };
  const auto works = [](std::string_view name, VectorWork work) {
    return set_of_operations(name, [&](const auto& info) { return info.work == work; });
  };
  return reads("READ_A", kReadsA) + reads("READ_B", kReadsB) + reads("READ_C", kReadsC) +
         works("ADD", VectorWork::Add) + works("MULTIPLY", VectorWork::Multiply) +
         works("FMA", VectorWork::Fma) + works("OTHER", VectorWork::Other);
}

std::string opcode_table() {
  std::string text = "| opcode | instruction | unit | what it does |\n|---|---|---|---|\n";
  for (const OpcodeInfo& info : opcodes())
    text +=
        fmt::format("| {} | `{}` | {} | {} |\n", static_cast<int>(info.opcode), info.mnemonic,
                    info.opcode == Opcode::Halt ? "dispatch" : to_string(info.unit), info.summary);
  return text;
}

std::string field_table(const OpcodeInfo& info) {
  std::string text =
      fmt::format("\n**`{}`**\n\n| operand | word | bits | | meaning |\n", info.mnemonic);
  text += "|---|---|---|---|---|\n";
  for (const Field& field : info.fields) {
    const int high = field.shift + field.bits - 1;
    const std::string bits =
        field.bits == 1 ? std::to_string(high) : fmt::format("{}:{}", high, field.shift);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", field.name, field.word, bits,
                        field.is_signed ? "signed" : "", field.meaning);
  }
  return text;
}

std::string vector_operation_table() {
  std::string text =
      "\nThe vector unit computes in each lane:\n\n| number | `operation` | reads | result |\n"
      "|---|---|---|---|\n";
  for (const VectorOperationInfo& info : kVectorOperations) {
    std::vector<std::string_view> reads;
    if ((info.reads & kReadsA) != 0) reads.emplace_back("a");
    if ((info.reads & kReadsB) != 0) reads.emplace_back("b");
    if ((info.reads & kReadsC) != 0) reads.emplace_back("c");
    text += fmt::format("| {} | `{}` | {} | {} |\n", static_cast<int>(info.operation), info.name,
                        fmt::join(reads, ", "), info.result);
  }
  return text;
}

}  // namespace

std::string systemverilog_package() {
  std::string text =
      "// The instruction set, written by systolic/isa/generate_package.cpp from its table: a\n"
      "// word of the program as each instruction, a packed struct (bits that it leaves unused\n"
      "// are called unused_<lowest bit>).\n"
      "// SPDX-License-Identifier: Apache-2.0\n"
      "package mmu_pkg;\n";
  text += constant("INSTRUCTION_BITS", kBits) + "\n";
  for (int unit = 0; unit < kUnits; ++unit)
    text += constant("UNIT_" + upper(to_string(static_cast<Unit>(unit))), unit);
  text += "\n";
  text += opcode_enum();
  text += "\n" + named_numbers() + sets_of_operations();
  for (const OpcodeInfo& info : opcodes())
    if (!info.fields.empty()) text += instruction_struct(info.mnemonic, info.fields);
  return text + instruction_struct("instruction", {}) + "endpackage\n";
}

std::string manual_tables() {
  std::string text = opcode_table();
  for (const OpcodeInfo& info : opcodes())
    if (!info.fields.empty()) text += field_table(info);
  return text + vector_operation_table();
}

std::string with_manual_tables(const std::string& manual) {
  const std::size_t begin = manual.find(kBegin);
  const std::size_t end = manual.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::invalid_argument(fmt::format("[isa] the manual lacks its marker lines '{}' and '{}'",
                                            kBegin.substr(0, kBegin.size() - 1), kEnd));
  return manual.substr(0, begin + kBegin.size()) + manual_tables() + manual.substr(end);
}

}  // namespace triptych::mmu
