// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <stdexcept>

#include "systolic/isa/field.h"
#include "systolic/isa/isa.h"
#include "systolic/isa/listing.h"

namespace triptych::mmu {
namespace {

std::string units_text(unsigned mask) {
  std::string text;
  for (int unit = 0; unit < kUnits; ++unit) {
    if ((mask >> unit & 1) == 0) continue;
    if (!text.empty()) text += ',';
    text += to_string(static_cast<Unit>(unit));
  }
  return text;
}

}  // namespace

std::string disassemble(const Instruction& instruction) {
  const OpcodeInfo* info = find_opcode(instruction.opcode());
  if (info == nullptr) return fmt::format("unknown opcode={}", instruction.words[0] & 0xFF);
  std::string text(info->mnemonic);
  if (instruction.wait() != 0) text += " wait=" + units_text(instruction.wait());
  if (instruction.signal() != 0) text += " signal=" + units_text(instruction.signal());
  for (const Field& field : info->fields) {
    const std::int64_t value = get_field(instruction, field);
    if (static_cast<std::size_t>(value) < field.names.size())
      text += fmt::format(" {}={}", field.name, field.names[static_cast<std::size_t>(value)]);
    else if (value != 0)
      text += fmt::format(" {}={}", field.name, value);
  }
  return text;
}

Instruction assemble(std::string_view line) {
  const Program program = assemble_program(line);
  if (program.size() != 1) throw std::invalid_argument("[isa] give one instruction");
  return program.front();
}

Program assemble_program(std::string_view text) { return read_listing(text).program; }

}  // namespace triptych::mmu
