// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "systolic/isa/field.h"
#include "systolic/isa/isa.h"

namespace triptych::mmu {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string units_text(unsigned mask) {
  std::string text;
  for (int unit = 0; unit < kUnits; ++unit) {
    if ((mask >> unit & 1) == 0) continue;
    if (!text.empty()) text += ',';
    text += to_string(static_cast<Unit>(unit));
  }
  return text;
}

unsigned parse_units(std::string_view text) {
  unsigned mask = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, comma);
    int unit = 0;
    while (unit < kUnits && to_string(static_cast<Unit>(unit)) != name) ++unit;
    if (unit == kUnits)
      throw std::invalid_argument(
          fmt::format("[isa] no unit '{}': use load, weights, compute, store", name));
    mask |= 1U << unit;
    if (comma == text.size()) return mask;
    text.remove_prefix(comma + 1);
  }
}

std::int64_t parse_number(std::string_view name, std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size() || value >> 33 != 0)
    throw std::invalid_argument(fmt::format("[isa] {}: '{}' is no number", name, text));
  const auto magnitude = static_cast<std::int64_t>(value);
  return negative ? -magnitude : magnitude;
}

/// The next word of the line, which loses it; empty at the end.
std::string_view next_word(std::string_view& line) {
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return line = {};
  line.remove_prefix(begin);
  const std::size_t length = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(length);
  return word;
}

void assemble_operand(Instruction& instruction, const OpcodeInfo& info, std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos)
    throw std::invalid_argument(fmt::format("[isa] '{}': write name=value", word));
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "wait" || name == "signal") {
    instruction.words[0] |= parse_units(value) << (name == "wait" ? 8 : 12);
    return;
  }
  const auto field = std::ranges::find(info.fields, name, &Field::name);
  if (field == info.fields.end())
    throw std::invalid_argument(fmt::format("[isa] {} has no operand '{}'", info.mnemonic, name));
  set_field(instruction, *field, parse_number(name, value));
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
    if (value != 0) text += fmt::format(" {}={}", field.name, value);
  }
  return text;
}

Instruction assemble(std::string_view line) {
  const std::string_view mnemonic = next_word(line);
  const auto info = std::ranges::find(opcodes(), mnemonic, &OpcodeInfo::mnemonic);
  if (info == opcodes().end())
    throw std::invalid_argument(fmt::format("[isa] no instruction '{}'", mnemonic));
  Instruction instruction;
  instruction.words[0] = static_cast<std::uint32_t>(info->opcode);
  for (auto word = next_word(line); !word.empty(); word = next_word(line))
    assemble_operand(instruction, *info, word);
  return instruction;
}

Program assemble_program(std::string_view text) {
  Program program;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    line = line.substr(0, std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(kBlanks) == std::string_view::npos) continue;
    try {
      program.push_back(assemble(line));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("line {}: {}", number, error.what()));
    }
  }
  return program;
}

}  // namespace triptych::mmu
