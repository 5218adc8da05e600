// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/package.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "systolic/isa/isa.h"

namespace triptych::mmu {
namespace {

constexpr std::string_view kBegin = "<!-- isa tables begin -->\n";
constexpr std::string_view kEnd = "<!-- isa tables end -->";

std::string upper(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string constant(const std::string& name, int value) {
  return fmt::format("  localparam int unsigned {} = {};\n", name, value);
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

}  // namespace

std::string systemverilog_package() {
  std::string text =
      "// The instruction set's constants, written by systolic/isa/generate_package.cpp from the\n"
      "// instruction table; <X>_LSB and <X>_BITS place an operand in the 256 bits of a word.\n"
      "// SPDX-License-Identifier: Apache-2.0\n"
      "package mmu_pkg;\n"
      "  localparam int unsigned INSTRUCTION_BITS = 256;\n";
  text += constant("OPCODE_LSB", 0) + constant("OPCODE_BITS", 8) + constant("WAIT_LSB", 8) +
          constant("SIGNAL_LSB", 12) + constant("UNITS", kUnits) + "\n";
  for (int unit = 0; unit < kUnits; ++unit)
    text += constant("UNIT_" + upper(to_string(static_cast<Unit>(unit))), unit);
  text += "\n";
  for (const OpcodeInfo& info : opcodes())
    text += fmt::format("  localparam logic [7:0] OP_{} = 8'd{};\n", upper(info.mnemonic),
                        static_cast<int>(info.opcode));
  for (const OpcodeInfo& info : opcodes()) {
    if (!info.fields.empty()) text += "\n";
    for (const Field& field : info.fields) {
      const std::string name = upper(info.mnemonic) + "_" + upper(field.name);
      text += constant(name + "_LSB", 32 * field.word + field.shift);
      text += constant(name + "_BITS", field.bits);
    }
  }
  return text + "endpackage\n";
}

std::string manual_tables() {
  std::string text = opcode_table();
  for (const OpcodeInfo& info : opcodes())
    if (!info.fields.empty()) text += field_table(info);
  return text;
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
