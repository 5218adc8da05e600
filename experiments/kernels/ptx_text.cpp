// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cuda/plain/ptx.h"
#include "experiments/kernels/assembly_text.h"
#include "experiments/kernels/ptx_names.h"

namespace triptych::kernels {
namespace {

using cuda::plain::kMostPtxSlots;
using cuda::plain::PtxInstruction;
using cuda::plain::PtxKind;
using cuda::plain::PtxOperand;
using cuda::plain::PtxSpecial;

constexpr std::string_view kPtxBlanks = " \t\r\n";

struct SpecialRow {
  std::string_view text;
  PtxSpecial special;
};
constexpr SpecialRow kSpecials[] = {
    {"laneid", PtxSpecial::LaneId},          {"warpid", PtxSpecial::WarpId},
    {"tid.x", PtxSpecial::ThreadX},          {"tid.y", PtxSpecial::ThreadY},
    {"tid.z", PtxSpecial::ThreadZ},          {"ctaid.x", PtxSpecial::BlockX},
    {"ctaid.y", PtxSpecial::BlockY},         {"ctaid.z", PtxSpecial::BlockZ},
    {"ntid.x", PtxSpecial::ThreadsX},        {"ntid.y", PtxSpecial::ThreadsY},
    {"ntid.z", PtxSpecial::ThreadsZ},        {"nctaid.x", PtxSpecial::BlocksX},
    {"nctaid.y", PtxSpecial::BlocksY},       {"nctaid.z", PtxSpecial::BlocksZ},
    {"lanemask_eq", PtxSpecial::LanesEqual}, {"lanemask_lt", PtxSpecial::LanesBelow},
    {"lanemask_le", PtxSpecial::LanesUpTo},  {"lanemask_gt", PtxSpecial::LanesAbove},
    {"lanemask_ge", PtxSpecial::LanesFrom},  {"clock", PtxSpecial::Clock},
    {"clock64", PtxSpecial::Clock64},        {"globaltimer", PtxSpecial::GlobalTimer}};

/// Operands in a list, where brackets hold together.
WordList split_operands(std::string_view text) { return split_outside(text, ',', "[{", "]}"); }

/// One text, statement by statement.
class Reader {
 public:
  explicit Reader(std::span<const std::optional<std::int64_t>> numbers)
      : numbers_(numbers), next_slot_(static_cast<std::int64_t>(numbers.size())) {}

  /// False: it is not emulated.
  bool read(std::string_view statement) {
    if (statement.starts_with(".reg")) return declare(statement.substr(4));
    PtxStatement instruction;
    if (statement.starts_with('@')) {
      const auto end = statement.find_first_of(kPtxBlanks);
      if (end == statement.npos) return false;
      const auto guard = operand_of(statement.substr(1, end - 1));
      if (!guard) return false;
      instruction.guard = *guard;
      statement = trimmed(statement.substr(end));
    }
    const auto end = std::min(statement.find_first_of(kPtxBlanks), statement.size());
    for (const auto part : split_operands(statement.substr(end))) {
      if (!add_group(instruction, part)) return false;
    }
    if (!name_ptx(instruction, statement.substr(0, end))) return false;
    write(instruction);
    return true;
  }

  PtxWords words;

 private:
  /// ".b32 x, y": registers of the text.
  bool declare(std::string_view text) {
    text = trimmed(text);
    const auto end = text.find_first_of(kPtxBlanks);
    if (end == text.npos || !text.starts_with('.') || !ptx_type(text.substr(1, end - 1))) {
      return false;
    }
    for (const auto each : split_operands(text.substr(end))) {
      const auto angle = each.find('<');
      if (angle == each.npos) {
        slots_[std::string(each)] = next_slot_++;
        continue;
      }
      const auto count = ptx_integer(each.substr(angle + 1, each.size() - angle - 2));
      if (!each.ends_with('>') || !count || *count < 0) return false;
      for (std::int64_t i = 0; i < std::min<std::int64_t>(*count, kMostPtxSlots); ++i) {
        slots_[fmt::format("{}{}", each.substr(0, angle), i)] = next_slot_++;
      }
    }
    return next_slot_ <= static_cast<std::int64_t>(kMostPtxSlots);
  }

  bool add_group(PtxStatement& instruction, std::string_view text) {
    auto& group = instruction.groups.emplace_back();
    const bool is_list = text.starts_with('{') && text.ends_with('}');
    for (const auto part :
         is_list ? split_operands(text.substr(1, text.size() - 2)) : WordList{text}) {
      const auto operand = operand_of(part);
      if (!operand) return false;
      group.push_back(*operand);
    }
    return !group.empty();
  }

  std::optional<PtxOperand> operand_of(std::string_view text) const {
    text = trimmed(text);
    if (text.starts_with('[') && text.ends_with(']'))
      return address(text.substr(1, text.size() - 2));
    if (text == "_") return PtxOperand{PtxKind::Nothing, 0, 0};
    if (text.starts_with('!')) {
      const auto inner = operand_of(text.substr(1));
      if (!inner || inner->kind != PtxKind::Slot) return {};
      return PtxOperand{PtxKind::Negated, inner->value, 0};
    }
    if (const auto number = ptx_integer(text)) return PtxOperand{PtxKind::Number, *number, 0};
    if (text.starts_with('$')) {
      const auto number = ptx_integer(text.substr(1));
      if (!number || *number < 0 || static_cast<std::size_t>(*number) >= numbers_.size()) return {};
      const auto& constant = numbers_[static_cast<std::size_t>(*number)];
      return constant ? PtxOperand{PtxKind::Number, *constant, 0}
                      : PtxOperand{PtxKind::Slot, *number, 0};
    }
    if (const auto own = slots_.find(std::string(text)); own != slots_.end()) {
      return PtxOperand{PtxKind::Slot, own->second, 0};
    }
    if (!text.starts_with('%')) return {};
    const auto* found = std::ranges::find(kSpecials, text.substr(1), &SpecialRow::text);
    if (found == std::end(kSpecials)) return {};
    return PtxOperand{PtxKind::Special, static_cast<std::int64_t>(found->special), 0};
  }

  /// "x", "x + 16", "x + $3" where it is a constant.
  std::optional<PtxOperand> address(std::string_view text) const {
    const auto plus = text.find('+');
    auto base = operand_of(text.substr(0, plus));
    if (!base || plus == text.npos) return base;
    const auto offset = operand_of(text.substr(plus + 1));
    if (!offset || offset->kind != PtxKind::Number) return {};
    base->offset = offset->value;
    return base;
  }

  void write(const PtxStatement& from) {
    const auto add = [this](auto value) {
      words.words.push_back(static_cast<std::int64_t>(value));
    };
    const auto add_operand = [&](const PtxOperand& operand) {
      add(operand.kind);
      add(operand.value);
      add(operand.offset);
    };
    static_assert(sizeof(PtxInstruction) == 8 * sizeof(std::int64_t), "these are its fields");
    add(from.operation);
    add(from.type.bytes);
    add(from.type.kind);
    add(from.detail);
    add_operand(from.guard);
    std::size_t count = 0;
    for (const auto& group : from.groups) count += group.size();
    add(count);
    for (const auto& group : from.groups) {
      for (const auto& operand : group) add_operand(operand);
    }
    ++words.instructions;
  }

  std::span<const std::optional<std::int64_t>> numbers_;
  std::int64_t next_slot_;
  std::map<std::string, std::int64_t> slots_;
};

/// Without comments.
std::string code_of(std::string_view text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    const auto rest = text.substr(at);
    if (rest.starts_with("//")) {
      at += std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      at += std::min(rest.find("*/", 2), rest.size() - 2) + 2;
    } else {
      code += rest[0];
      ++at;
    }
  }
  return code;
}

}  // namespace

PtxWords read_ptx(std::string_view text, std::span<const std::optional<std::int64_t>> numbers) {
  Reader reader(numbers);
  const auto code = code_of(text);
  for (auto statement : split_outside(code, ';', "", "")) {
    // Braces around statements: the registers of a text have one scope.
    while (statement.starts_with('{') || statement.starts_with('}')) {
      statement = trimmed(statement.substr(1));
    }
    if (statement.empty()) continue;
    if (!reader.read(statement)) {
      reader.words.refusal = fmt::format("\"{}\"", statement);
      break;
    }
  }
  return std::move(reader.words);
}

}  // namespace triptych::kernels
