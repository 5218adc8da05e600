// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "backends/cuda/plain/ptx.h"
#include "core/base/error.h"
#include "experiments/kernels/assembly_text.h"

namespace triptych::kernels {
namespace {

using cuda::plain::kMostPtxOperands;
using cuda::plain::PtxInstruction;
using cuda::plain::PtxKind;
using cuda::plain::PtxOperation;

constexpr std::string_view kInlineBegin = "#APP", kInlineEnd = "#NO_APP";
constexpr std::string_view kBlanks = " \t\r\n";

struct OperationRow {
  PtxOperation operation;
  std::string_view text;
  std::size_t operands;
};
constexpr OperationRow kOperations[] = {
#define TRIPTYCH_ROW(name, text, operands) {PtxOperation::name, text, operands},
    TRIPTYCH_PTX_OPERATIONS(TRIPTYCH_ROW)
#undef TRIPTYCH_ROW
};
constexpr std::string_view kSpecials[] = {
#define TRIPTYCH_ROW(name, text) text,
    TRIPTYCH_PTX_SPECIALS(TRIPTYCH_ROW)
#undef TRIPTYCH_ROW
};
/// By number, without the letter that tells their width.
constexpr std::string_view kRegisters[] = {"ax", "cx", "dx",  "bx",  "sp",  "bp",  "si",  "di",
                                           "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view()
                            : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(at), text.size());
    if (const auto part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct Operand {
  PtxKind kind = PtxKind::Number;
  std::int64_t value = 0;
};

std::optional<std::int64_t> integer_in(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  if (text.ends_with('U')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
    return {};
  return static_cast<std::int64_t>(is_negative ? 0 - value : value);
}

/// "%eax", "%r10d", "%rax": a whole register or its lower half.
std::optional<std::int64_t> register_of(std::string_view name) {
  if (name.ends_with('d') && name.starts_with("r1")) name.remove_suffix(1);
  if (name == "r8d" || name == "r9d") name.remove_suffix(1);
  if (name.size() == 3 && (name[0] == 'e' || (name[0] == 'r' && !std::isdigit(name[1])))) {
    name.remove_prefix(1);
  }
  const auto* found = std::ranges::find(kRegisters, name);
  if (found == std::end(kRegisters)) return {};
  return found - std::begin(kRegisters);
}

std::optional<Operand> operand_of(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {  // an address without an offset
    const auto inner = operand_of(trimmed(text.substr(1, text.size() - 2)));
    return inner && inner->kind == PtxKind::Register ? inner : std::nullopt;
  }
  if (text.starts_with('$')) text.remove_prefix(1);
  if (!text.starts_with('%')) {
    const auto number = integer_in(text);
    return number ? std::optional<Operand>({PtxKind::Number, *number}) : std::nullopt;
  }
  text.remove_prefix(1);
  if (const auto number = register_of(text)) return Operand{PtxKind::Register, *number};
  const auto* found = std::ranges::find(kSpecials, text);
  if (found == std::end(kSpecials)) return {};
  return Operand{PtxKind::Special, found - std::begin(kSpecials)};
}

struct Type {
  unsigned bytes = 4;
  bool is_signed = false;
};

/// "u32": integers and bits of 32 and 64 bits.
std::optional<Type> type_of(std::string_view text) {
  if (text.size() != 3 || std::string_view("bsu").find(text[0]) == text.npos) return {};
  if (text.substr(1) == "32") return Type{4, text[0] == 's'};
  if (text.substr(1) == "64") return Type{8, text[0] == 's'};
  return {};
}

struct Instruction {
  PtxOperation operation = PtxOperation::Move;
  Type type;
  std::vector<Operand> operands;
};

/// One instruction, without the semicolon. Nothing: it is not emulated.
std::optional<Instruction> instruction_of(std::string_view text) {
  const auto end = std::min(text.find_first_of(kBlanks), text.size());
  auto name = text.substr(0, end);
  Instruction result;
  const auto row_of = [](std::string_view wanted) {
    return std::ranges::find(kOperations, wanted, &OperationRow::text);
  };
  const auto* row = row_of(name);
  if (row == std::end(kOperations)) {
    const auto dot = name.rfind('.');
    if (dot == name.npos) return {};
    const auto type = type_of(name.substr(dot + 1));
    row = row_of(name.substr(0, dot));
    if (row == std::end(kOperations) || !type) return {};
    result.type = *type;
  }
  result.operation = row->operation;
  for (const auto part : split(text.substr(end), ',')) {
    const auto operand = operand_of(part);
    if (!operand) return {};
    result.operands.push_back(*operand);
  }
  const bool is_wrong =
      result.operands.size() != row->operands ||
      (row->operation == PtxOperation::BlockBarrier &&
       (result.operands[0].kind != PtxKind::Number || result.operands[0].value != 0));
  return is_wrong ? std::nullopt : std::optional(result);
}

/// A line of the assembly as ".loc" and ".file" tell it.
class Places {
 public:
  void read(std::string_view line) {
    std::istringstream words{std::string(line)};
    std::string word;
    words >> word;
    if (word == ".loc") words >> file_ >> line_;
    if (word != ".file") return;
    unsigned number = 0;
    if (!(words >> number)) return;
    std::string text;  // one name, or a folder and a name
    std::getline(words, text);
    const auto names = split(text, '"');
    if (!names.empty()) names_[number] = std::string(names.size() > 1 ? names[1] : names[0]);
  }
  unsigned file() const { return file_; }
  unsigned line() const { return line_; }
  std::string name() const {
    const auto found = names_.find(file_);
    return found == names_.end() ? "" : found->second;
  }

 private:
  std::map<unsigned, std::string> names_;
  unsigned file_ = 0, line_ = 0;
};

/// The parts of inline assembly that end with a semicolon, without comments and braces.
std::vector<std::string_view> statements_of(std::string& text) {
  for (auto at = text.find("//"); at != text.npos; at = text.find("//", at)) {
    const auto end = std::min(text.find('\n', at), text.size());
    text.erase(at, end - at);
  }
  auto whole = trimmed(text);
  if (whole.starts_with('{') && whole.ends_with('}')) whole = whole.substr(1, whole.size() - 2);
  return split(whole, ';');
}

class PtxCalls {
 public:
  std::string translate(std::string_view assembly) {
    std::string result, inline_text;
    bool is_inline = false;
    for (const auto line : split_lines(assembly)) {
      const auto word = trimmed(line);
      if (word == kInlineBegin || word == kInlineEnd) {
        is_inline = word == kInlineBegin;
        if (!is_inline) result += call_for(inline_text);
        inline_text.clear();
      } else if (is_inline) {
        (inline_text += line) += '\n';
      } else {
        places_.read(line);
        (result += line) += '\n';
      }
    }
    return result + records_;
  }

 private:
  /// The assembly in the place of inline assembly.
  std::string call_for(const std::string& text) {
    if (!trimmed(text).ends_with(';') && !trimmed(text).ends_with('}')) return text;  // x86
    auto code = text;
    const auto statements = statements_of(code);
    const auto instruction = statements.size() == 1 ? instruction_of(statements[0]) : std::nullopt;
    if (!instruction) refuse(text, statements.size());
    const auto label = fmt::format(".Ltriptych_ptx_{}", count_++);
    records_ += record(label, *instruction);
    return fmt::format(
        "\tleaq -128(%rsp), %rsp\n\tpushq %rdi\n\tleaq {}(%rip), %rdi\n\tcallq {}\n\tpopq %rdi\n"
        "\tleaq 128(%rsp), %rsp\n",
        label, kPtxCall);
  }

  [[noreturn]] void refuse(const std::string& text, std::size_t statements) const {
    throw InvalidArgument(fmt::format(
        "{}:{}: the inline assembly \"{}\" is not emulated: {}; the reference of kernel run lists "
        "the instructions",
        places_.name(), places_.line(), trimmed(text),
        statements > 1 ? "one instruction per asm is"
                       : "the instruction or an operand is unknown"));
  }

  /// As PtxInstruction has it.
  std::string record(const std::string& label, const Instruction& instruction) const {
    static_assert(sizeof(PtxInstruction) == 64, "the directives below write its fields");
    std::string kinds, values;
    for (std::size_t i = 0; i < 8; ++i) {
      const bool is_used = i < instruction.operands.size();
      const auto operand = is_used ? instruction.operands[i] : Operand();
      kinds += fmt::format("{}{}", i == 0 ? "" : ",", static_cast<int>(operand.kind));
      if (i < kMostPtxOperands) values += fmt::format("{}{}", i == 0 ? "" : ",", operand.value);
    }
    return fmt::format(
        "\t.section .rodata.str1.1,\"aMS\",@progbits,1\n{0}_file:\n\t.asciz \"{1}\"\n"
        "\t.section .data.rel.ro,\"aw\",@progbits\n\t.balign 8\n{0}:\n\t.quad {0}_file\n"
        "\t.long {2}\n\t.byte {3},{4},{5},0\n\t.byte {6}\n\t.quad {7}\n",
        label, places_.name(), places_.line(), static_cast<int>(instruction.operation),
        instruction.type.bytes, instruction.type.is_signed ? 1 : 0, kinds, values);
  }

  Places places_;
  std::string records_;
  std::size_t count_ = 0;
};

}  // namespace

std::string with_ptx_calls(std::string_view assembly) {
  if (assembly.find(kInlineBegin) == assembly.npos) return std::string(assembly);
  return PtxCalls().translate(assembly);
}

}  // namespace triptych::kernels
