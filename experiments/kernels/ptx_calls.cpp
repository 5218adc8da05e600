// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "backends/cuda/plain/ptx.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "experiments/kernels/assembly_text.h"
#include "experiments/kernels/ptx_text.h"

namespace triptych::kernels {
namespace {

using cuda::plain::kMostPtxResults;
using cuda::plain::kMostPtxSlots;

constexpr std::string_view kInlineBegin = "#APP", kInlineEnd = "#NO_APP";

/// The processor's own assembly has no semicolons here.
bool is_ptx(std::string_view text) {
  text = trimmed(text);
  return text.ends_with(';') || text.ends_with('}');
}

std::vector<std::string_view> split_list(std::string_view text) {
  return split_outside(text, ',', "([{<", ")]}>");
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
    return {};
  return value;
}

/// The text behind "name: " of a record of metadata, up to a comma or bracket.
std::string_view field(std::string_view record, std::string_view name) {
  const auto at = record.find(name);
  if (at == record.npos) return {};
  const auto rest = record.substr(at + name.size());
  if (rest.starts_with('"')) return rest.substr(1, rest.find('"', 1) - 1);
  return rest.substr(0, rest.find_first_of(",)"));
}

/// Lines and files of metadata.
class Places {
 public:
  struct Place {
    std::string_view file, line = "0";
  };

  void read(std::string_view line) {
    const auto equals = line.find(" = ");
    if (line.starts_with('!') && equals != line.npos) {
      records_[line.substr(0, equals)] = line.substr(equals + 3);
    }
  }
  /// `location`: "!12".
  Place of(std::string_view location) const {
    const auto record = record_of(location);
    Place place;
    if (const auto line = field(record, "line: "); !line.empty()) place.line = line;
    auto scope = record_of(field(record, "scope: "));
    const auto file = record_of(field(scope, "file: "));
    place.file = field(file, "filename: ");
    return place;
  }

 private:
  std::string_view record_of(std::string_view name) const {
    const auto found = records_.find(name);
    return found == records_.end() ? std::string_view() : found->second;
  }
  std::map<std::string_view, std::string_view> records_;
};

/// A text in LLVM's quotes, where "\0A" is a character.
std::string without_escapes(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ec == std::errc()) {
      result += static_cast<char>(value);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// As the user wrote it, with "$0" for operands. LLVM marks braces, and modifiers of operands.
std::string user_text(std::string_view quoted) {
  const auto text = without_escapes(quoted);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (text[i] != '$') {
      result += text[i];
    } else if (next == '(' || next == ')' || next == '|' || next == '$') {
      result += next == '(' ? '{' : next == ')' ? '}' : next;
      ++i;
    } else if (next == '{') {
      const auto end = std::min(text.find('}', i), text.size());
      const auto operand = text.substr(i + 2, end - i - 2);
      result += "$" + operand.substr(0, operand.find(':'));
      i = end;
    } else {
      result += '$';
    }
  }
  return result;
}

/// The parts of "  %3 = call i32 asm sideeffect "text", "=r,r"(i32 %2) #4, !dbg !12".
struct AsmCall {
  std::string_view result;  ///< "%3", or nothing
  std::string_view type, text, constraints, arguments, debug;
};

std::size_t behind_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at + 1;
  }
  return at;
}

/// Nothing: the line calls no inline assembly.
std::optional<AsmCall> asm_call_in(std::string_view line) {
  const auto word = line.find(" asm ");
  const auto call = line.find("call ");
  if (word == line.npos || call == line.npos || call > word || line.find('"') < word) return {};
  AsmCall result;
  if (const auto equals = line.find(" = "); equals < call)
    result.result = trimmed(line.substr(0, equals));
  result.type = trimmed(line.substr(call + 5, word - call - 5));
  const auto begin = line.find('"', word), end = line.find('"', begin + 1);
  const auto second = end == line.npos ? end : line.find('"', end + 1);
  if (second == line.npos) return {};
  const auto third = line.find('"', second + 1);
  if (third == line.npos) return {};
  result.text = line.substr(begin + 1, end - begin - 1);
  result.constraints = line.substr(second + 1, third - second - 1);
  const auto close = behind_bracket(line, third + 1);
  result.arguments = line.substr(third + 2, close - third - 3);
  if (const auto debug = line.find(", !dbg !", close); debug != line.npos) {
    result.debug = line.substr(debug, line.find_first_of(", ", debug + 8) - debug);
  }
  return result;
}

struct Argument {
  std::string_view type, value;
};

/// "[4 x i32]* @x": the type ends at the first blank outside of brackets.
Argument argument_in(std::string_view text) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < text.size() && (depth > 0 || text[end] != ' '); ++end) {
    if (std::string_view("[{<(").find(text[end]) != std::string_view::npos) ++depth;
    if (std::string_view("]}>)").find(text[end]) != std::string_view::npos) depth -= 1;
  }
  return {text.substr(0, end), trimmed(text.substr(end))};
}

/// Operands of an `asm` in the order of their numbers.
struct Operands {
  std::vector<std::string_view> results;  ///< types
  std::vector<Argument> arguments;        ///< that are passed on
  std::vector<std::int64_t> slots;        ///< of these
  std::vector<std::optional<std::int64_t>> numbers;
};

class PtxCalls {
 public:
  explicit PtxCalls(std::string_view code)
      : lines_(split_lines(code)),
        is_opaque_(code.find(" ptr ") != code.npos || code.find("(ptr ") != code.npos) {
    for (const auto line : lines_) places_.read(line);
  }

  std::string text() {
    std::string result;
    for (const auto line : lines_) {
      const auto call = asm_call_in(line);
      const auto text = call ? user_text(call->text) : std::string();
      if (call && is_ptx(text)) {
        result += replaced(*call, text);
      } else {
        (result += line) += '\n';
      }
    }
    if (count_ == 0) return result;
    return result + records_ +
           fmt::format("declare [{} x i64] @{}(i64, ...)\n", kMostPtxResults, kPtxCall);
  }

 private:
  [[noreturn]] void refuse(const AsmCall& call, const std::string& text,
                           const std::string& reason) const {
    const auto place = place_of(call);
    throw InvalidArgument(fmt::format(
        "{}:{}: the inline assembly \"{}\" is not emulated: {}; the guide to whole programs lists "
        "the instructions",
        place.file, place.line, trimmed(text), reason));
  }

  Places::Place place_of(const AsmCall& call) const {
    const auto at = call.debug.rfind('!');
    return at == call.debug.npos ? Places::Place() : places_.of(call.debug.substr(at));
  }

  Operands operands_of(const AsmCall& call, const std::string& text) const {
    Operands operands;
    if (call.type.starts_with('{')) {
      operands.results = split_list(call.type.substr(1, call.type.size() - 2));
    } else if (call.type != "void") {
      operands.results = {call.type};
    }
    const auto values = split_list(call.arguments);
    std::size_t next = 0, outputs = 0;
    for (auto constraint : split_list(call.constraints)) {
      if (constraint.starts_with('~')) continue;
      if (constraint.find('*') != constraint.npos) refuse(call, text, "an operand is in memory");
      if (constraint.starts_with('=')) {
        operands.numbers.emplace_back();
        ++outputs;
        continue;
      }
      if (next == values.size()) break;
      const auto argument = argument_in(values[next++]);
      const auto tied = number_in(constraint);
      const auto constant = argument.type == "double" || argument.type == "float"
                                ? std::nullopt
                                : number_in(argument.value);
      if (!tied && constant) {
        operands.numbers.push_back(constant);
        continue;
      }
      operands.slots.push_back(tied.value_or(static_cast<std::int64_t>(operands.numbers.size())));
      operands.arguments.push_back(argument);
      if (!tied) operands.numbers.emplace_back();
    }
    if (outputs != operands.results.size() || outputs > kMostPtxResults ||
        operands.numbers.size() > kMostPtxSlots) {
      refuse(call, text, fmt::format("it has more than {} results", kMostPtxResults));
    }
    return operands;
  }

  /// The code in the place of the call.
  std::string replaced(const AsmCall& call, const std::string& text) {
    const auto operands = operands_of(call, text);
    const auto ptx = read_ptx(text, operands.numbers);
    if (!ptx.refusal.empty()) {
      refuse(call, text, "the instruction or an operand is unknown: " + ptx.refusal);
    }
    const auto name = fmt::format("{}_{}", kPtxCall, count_++);
    const auto type = record(name, place_of(call), operands, ptx);
    code_.clear();
    std::string passed;
    for (std::size_t i = 0; i < operands.arguments.size(); ++i) {
      passed += ", i64 " + widened(operands.arguments[i], fmt::format("%{}_a{}", name, i), call);
    }
    add(fmt::format("%{}_r = call [{} x i64] (i64, ...) @{}(i64 ptrtoint ({} @.{} to i64){})", name,
                    kMostPtxResults, kPtxCall, type, name, passed),
        call);
    take_results(call, operands, name);
    return code_;
  }

  void add(const std::string& line, const AsmCall& call) {
    code_ += fmt::format("  {}{}\n", line, call.debug);
  }

  static bool is_pointer(std::string_view type) { return type == "ptr" || type.ends_with('*'); }

  /// The name of a value of 64 bits.
  std::string widened(const Argument& from, const std::string& name, const AsmCall& call) {
    if (from.type == "i64") return std::string(from.value);
    auto type = std::string(from.type), value = std::string(from.value);
    if (is_pointer(from.type)) {
      add(fmt::format("{} = ptrtoint {} {} to i64", name, type, value), call);
      return name;
    }
    if (type == "float" || type == "double") {
      const auto bits = type == "float" ? "i32" : "i64";
      add(fmt::format("{}_b = bitcast {} {} to {}", name, type, value, bits), call);
      type = bits;
      value = name + "_b";
    }
    if (type == "i64") return value;
    add(fmt::format("{} = zext {} {} to i64", name, type, value), call);
    return name;
  }

  /// Writes `name` of this type from an integer of 64 bits.
  void narrow(std::string_view type, const std::string& from, const std::string& name,
              const AsmCall& call) {
    if (type == "i64") {
      add(fmt::format("{} = add i64 {}, 0", name, from), call);
    } else if (is_pointer(type)) {
      add(fmt::format("{} = inttoptr i64 {} to {}", name, from, type), call);
    } else if (type == "double") {
      add(fmt::format("{} = bitcast i64 {} to double", name, from), call);
    } else if (type == "float") {
      add(fmt::format("{}_t = trunc i64 {} to i32", from, from), call);
      add(fmt::format("{} = bitcast i32 {}_t to float", name, from), call);
    } else {
      add(fmt::format("{} = trunc i64 {} to {}", name, from, type), call);
    }
  }

  void take_results(const AsmCall& call, const Operands& operands, const std::string& name) {
    std::string whole = "undef";
    const auto count = operands.results.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto type = operands.results[i];
      const auto word = fmt::format("%{}_w{}", name, i);
      add(fmt::format("{} = extractvalue [{} x i64] %{}_r, {}", word, kMostPtxResults, name, i),
          call);
      const bool is_structure = call.type.starts_with('{');
      const auto value = is_structure ? fmt::format("%{}_v{}", name, i) : std::string(call.result);
      narrow(type, word, value, call);
      if (!is_structure) continue;
      const auto next = i + 1 == count ? std::string(call.result) : fmt::format("%{}_s{}", name, i);
      add(fmt::format("{} = insertvalue {} {}, {} {}, {}", next, call.type, whole, type, value, i),
          call);
      whole = next;
    }
  }

  /// Appends a PtxBlock, and returns its type.
  std::string record(const std::string& name, const Places::Place& place, const Operands& operands,
                     const PtxWords& ptx) {
    const auto [file, is_new] =
        files_.try_emplace(place.file, fmt::format("@.{}_file_{}", kPtxCall, files_.size()));
    const auto length = without_escapes(place.file).size() + 1;
    if (is_new) {
      records_ += fmt::format("{} = private unnamed_addr constant [{} x i8] c\"{}\\00\", align 1\n",
                              file->second, length, place.file);
    }
    std::vector<std::string> words = {
        fmt::format("i64 ptrtoint ({} {} to i64)", pointer_to(fmt::format("[{} x i8]", length)),
                    file->second),
        fmt::format("i64 {}", place.line), fmt::format("i64 {}", operands.slots.size()),
        fmt::format("i64 {}", ptx.instructions)};
    static_assert(sizeof(cuda::plain::PtxBlock) == 4 * sizeof(std::int64_t));
    for (const auto slot : operands.slots) words.push_back(fmt::format("i64 {}", slot));
    for (const auto word : ptx.words) words.push_back(fmt::format("i64 {}", word));
    const auto type = fmt::format("[{} x i64]", words.size());
    records_ += fmt::format("@.{} = private constant {} [{}], align 8\n", name, type,
                            fmt::join(words, ", "));
    return pointer_to(type);
  }

  /// Pointers have types up to version 14 of LLVM.
  std::string pointer_to(const std::string& type) const { return is_opaque_ ? "ptr" : type + "*"; }

  std::vector<std::string_view> lines_;
  bool is_opaque_;
  Places places_;
  std::string records_, code_;
  std::map<std::string_view, std::string> files_;
  std::size_t count_ = 0;
};

}  // namespace

bool has_inline_ptx(std::string_view assembly) {
  bool is_inline = false;
  std::string text;
  for (const auto line : split_lines(assembly)) {
    const auto word = trimmed(line);
    if (word == kInlineBegin || word == kInlineEnd) {
      if (word == kInlineEnd && is_ptx(text)) return true;
      is_inline = word == kInlineBegin;
      text.clear();
    } else if (is_inline) {
      (text += line) += '\n';
    }
  }
  return false;
}

bool refuses_only_operands(std::string_view messages) {
  constexpr std::string_view own_errors[] = {"invalid output constraint",
                                             "invalid input constraint",
                                             "register for constraint",
                                             "more registers than available",
                                             "inline asm",
                                             "inline assembly",
                                             "in backend",  // "+f" stops it in some versions
                                             "frontend command failed"};
  std::size_t errors = 0;
  for (const auto line : split_lines(messages)) {
    const auto at = line.find("error: ");
    if (at == line.npos) continue;
    ++errors;
    if (std::ranges::none_of(own_errors,
                             [&](auto own) { return line.find(own, at) != line.npos; })) {
      return false;
    }
  }
  return errors > 0;
}

std::string with_ptx_calls(std::string_view code) {
  if (code.find(" asm ") == code.npos) return std::string(code);
  return PtxCalls(code).text();
}

}  // namespace triptych::kernels
