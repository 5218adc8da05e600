// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/unwatched_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/cuda/plain/kernel_library.h"
#include "core/base/list_text.h"

namespace triptych::kernels {
namespace {

constexpr std::string_view kPoll = "triptych_poll";
constexpr std::string_view kSeparators = " \t";

/// Functions of the C library in the place of LLVM's, which the optimiser computes in another
/// precision where the argument is known.
constexpr std::pair<std::string_view, std::string_view> kMathFunctions[] = {
    {"llvm.sin", "sin"},   {"llvm.cos", "cos"}, {"llvm.pow", "pow"},   {"llvm.exp", "exp"},
    {"llvm.exp2", "exp2"}, {"llvm.log", "log"}, {"llvm.log2", "log2"}, {"llvm.log10", "log10"}};

std::string_view unindented(std::string_view text) {
  const auto first = text.find_first_not_of(kSeparators);
  return first == text.npos ? std::string_view() : text.substr(first);
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$' ||
         c == '-';
}

/// Behind a text in quotes, which begins at `at`.
std::size_t behind_quotes(std::string_view text, std::size_t at) {
  const auto end = text.find('"', at + 1);
  return end == text.npos ? text.size() : end + 1;
}

/// Behind the bracket that closes the one at `at`.
std::size_t behind_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = behind_quotes(text, at);
      continue;
    }
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
    ++at;
    if (depth == 0) break;
  }
  return at;
}

/// A name behind '@', '$' or '%', without quotes.
struct Name {
  std::string_view text;
  std::size_t end = 0;
};

/// The name whose first character, or quote, is at `at`.
Name name_at(std::string_view text, std::size_t at) {
  if (at < text.size() && text[at] == '"') {
    const auto end = behind_quotes(text, at);
    return {text.substr(at + 1, end - at - 2), end};
  }
  auto end = at;
  while (end < text.size() && is_name_character(text[end])) ++end;
  return {text.substr(at, end - at), end};
}

std::string written(std::string_view name) {
  const bool is_simple = std::ranges::all_of(name, is_name_character);
  return is_simple ? std::string(name) : fmt::format("\"{}\"", name);
}

/// Behind the type that begins at `at`: "[4 x i32]", "%struct.A*", "void (i32)*".
std::size_t behind_type(std::string_view text, std::size_t at) {
  const char first = at < text.size() ? text[at] : ' ';
  if (first == '[' || first == '{' || first == '<') {
    at = behind_bracket(text, at);
  } else if (first == '%') {
    at = name_at(text, at + 1).end;
  } else {
    at = name_at(text, at).end;
  }
  for (;;) {
    if (at < text.size() && text[at] == '*') {
      ++at;
    } else if (text.substr(std::min(at, text.size())).starts_with(" (")) {
      at = behind_bracket(text, at + 1);
    } else {
      return at;
    }
  }
}

/// Behind the value that begins at `at`: a name, or an expression of constants.
std::size_t behind_value(std::string_view text, std::size_t at) {
  if (text[at] == '%' || text[at] == '@') return name_at(text, at + 1).end;
  const auto bracket = text.find('(', at);
  return bracket == text.npos ? std::min(text.find_first_of(", ", at), text.size())
                              : behind_bracket(text, bracket);
}

/// The words of a definition in front of its type or of "global" and "constant".
bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const auto end = at + word.size();
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '(')) return true;
  }
  return false;
}

struct Variable {
  std::string_view name, before;  ///< words in front of "global" or "constant"
  std::string_view kind, type, value;
};

/// "@x = internal global i32 0, align 4". Nothing: a line of another kind.
std::optional<Variable> variable_in(std::string_view line) {
  if (!line.starts_with('@')) return {};
  Variable variable;
  const auto name = name_at(line, 1);
  variable.name = name.text;
  const auto equals = line.find("= ", name.end);
  if (equals == line.npos) return {};
  const auto words = line.substr(equals + 2);
  auto at = words.npos;
  for (const std::string_view kind : {"global ", "constant "}) {
    auto found = words.find(kind);
    if (found < at && (found == 0 || words[found - 1] == ' ')) {
      at = found;
      variable.kind = words.substr(found, kind.size() - 1);
    }
  }
  if (at == words.npos || words.substr(0, at).find("alias") != words.npos) return {};
  variable.before = words.substr(0, at);
  const auto begin = at + variable.kind.size() + 1, end = behind_type(words, begin);
  variable.type = words.substr(begin, end - begin);
  variable.value = words.substr(end);
  return variable;
}

bool is_defined(const Variable& variable) {
  return !has_word(variable.before, "external") && !has_word(variable.before, "extern_weak") &&
         !has_word(variable.before, "available_externally");
}

/// The kind of a name.
enum class Meaning : std::uint8_t { Function, LocalFunction, LocalVariable };

class Rewriter {
 public:
  Rewriter(std::string_view assembly, std::size_t unit)
      : lines_(split_lines(assembly)), local_suffix_(fmt::format(".unit{}", unit)) {
    for (const auto line : lines_) note_definition(line);
  }

  std::string text() {
    std::string result;
    for (const auto line : lines_) result += rewritten(line);
    for (const auto& [name, header] : used_) result += header + "\n";
    if (polls_) {
      result += fmt::format("declare void @{}({})\n", kPoll, is_opaque_ ? "ptr" : "i8*");
    }
    return result;
  }

 private:
  void note_definition(std::string_view line) {
    if (line.starts_with("define ") && !has_word(line, "available_externally")) {
      const auto at = line.find('@');
      const auto name = name_at(line, at + 1).text;
      const bool is_local =
          has_word(line.substr(0, at), "internal") || has_word(line.substr(0, at), "private");
      meanings_[name] = is_local ? Meaning::LocalFunction : Meaning::Function;
      headers_[name] = line;
      return;
    }
    if (!line.starts_with('@')) return;
    if (const auto variable = variable_in(line)) {
      if (has_word(variable->before, "internal")) {
        meanings_[variable->name] = Meaning::LocalVariable;
      }
    } else if (line.find(" alias ") != line.npos) {
      meanings_[name_at(line, 1).text] = Meaning::Function;
    }
  }

  std::string rewritten(std::string_view line) {
    if (line.starts_with("@llvm.") || line.starts_with("module asm") || line.starts_with(';')) {
      return "\n";
    }
    if (line.starts_with("define ")) function_ = name_at(line, line.find('@') + 1).text;
    if (const auto variable = variable_in(line))
      return renamed(declaration(*variable, line)) + "\n";
    if (line.starts_with("declare ") && is_declared_again(line)) return "\n";
    return poll_before(line) + renamed(line, line.find(" alias ") != line.npos) + "\n";
  }

  /// Variables are those of the watched version. The optimiser may know numbers that never change.
  static std::string declaration(const Variable& variable, std::string_view line) {
    const bool is_shared = has_word(variable.before, "thread_local");
    if (has_word(variable.before, "private")) return std::string(line);
    const bool is_own = is_defined(variable);
    const bool is_known = is_own && variable.kind == "constant" && !is_shared &&
                          !has_word(variable.before, "externally_initialized") &&
                          variable.value.find('@') == variable.value.npos &&
                          variable.value.find("undef") == variable.value.npos;
    std::string text = fmt::format("@{} =", written(variable.name));
    text += is_known                                   ? " available_externally"
            : has_word(variable.before, "extern_weak") ? " extern_weak"
                                                       : " external";
    const bool is_local = has_word(variable.before, "internal");
    if (is_local || has_word(variable.before, "hidden")) text += " hidden";
    if (has_word(variable.before, "protected")) text += " protected";
    // All shared memory is in one library, so one address leads to all of it.
    if (is_shared) text += " thread_local(localdynamic)";
    text += fmt::format(" {} {}", variable.kind, variable.type);
    const auto align = variable.value.find(", align ");
    if (is_known) {
      const auto end = value_end(variable.value);
      text += variable.value.substr(0, end);
    }
    if (align != variable.value.npos) {
      const auto digits = variable.value.find_first_not_of("0123456789", align + 8);
      text += variable.value.substr(align, digits == variable.value.npos ? digits : digits - align);
    }
    return text;
  }

  /// The end of " [2 x i32] ..., align 4": the initial value.
  static std::size_t value_end(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && text[at] != ',') {
      const char c = text[at];
      at = c == '"'                                       ? behind_quotes(text, at)
           : c == '[' || c == '{' || c == '(' || c == '<' ? behind_bracket(text, at)
                                                          : at + 1;
    }
    return at;
  }

  /// A function of the C library that the assembly declares already.
  bool is_declared_again(std::string_view line) {
    const auto name = name_at(line, line.find('@') + 1).text;
    return !declared_.insert(called_name(name)).second;
  }

  /// "sinf" of "llvm.sin.f32".
  static std::string called_name(std::string_view name) {
    const auto dot = name.rfind('.');
    const auto type = dot == name.npos ? std::string_view() : name.substr(dot);
    if (type != ".f32" && type != ".f64") return std::string(name);
    for (const auto& [from, to] : kMathFunctions) {
      if (name.substr(0, dot) == from) return std::string(to) + (type == ".f32" ? "f" : "");
    }
    return std::string(name);
  }

  /// The line with the names of this version. `is_alias`: it names functions without a call.
  std::string renamed(std::string_view line, bool is_alias = false) {
    std::string result;
    for (std::size_t at = 0; at < line.size();) {
      const char c = line[at];
      if (c == '"') {
        const auto end = behind_quotes(line, at);
        result += line.substr(at, end - at);
        at = end;
      } else if (c == '%') {
        const auto end = std::max(name_at(line, at + 1).end, at + 1);
        result += line.substr(at, end - at);
        at = end;
      } else if (c == '@' || c == '$') {
        const auto name = name_at(line, at + 1);
        const bool is_called = is_alias || (name.end < line.size() && line[name.end] == '(');
        result += c + written(c == '$' ? unwatched(name.text) : name_of(name.text, is_called));
        at = name.end;
      } else {
        result += c;
        ++at;
      }
    }
    return result;
  }

  static std::string unwatched(std::string_view name) {
    return std::string(name) + cuda::plain::kUnwatched;
  }

  std::string name_of(std::string_view name, bool is_called) {
    const auto found = meanings_.find(name);
    if (found == meanings_.end()) return called_name(name);
    if (found->second == Meaning::LocalVariable) return std::string(name) + local_suffix_;
    const auto header = headers_.find(name);
    if (is_called || header == headers_.end()) return unwatched(name);
    auto watched = std::string(name);
    if (found->second == Meaning::LocalFunction) watched += local_suffix_;
    used_.try_emplace(watched, declared(header->second, watched));
    return watched;
  }

  /// The declaration of a function that this line begins to define.
  static std::string declared(std::string_view header, const std::string& name) {
    const auto at = header.find('@');
    const auto end = behind_bracket(header, name_at(header, at + 1).end);
    auto before = header.substr(std::string_view("define ").size());
    before = before.substr(0, before.find('@'));
    std::string result = "declare ";
    while (!before.empty()) {
      const auto blank = std::min(before.find(' '), before.size());
      const auto word = before.substr(0, blank);
      constexpr std::string_view linkages[] = {"internal", "private",  "linkonce",  "linkonce_odr",
                                               "weak",     "weak_odr", "dso_local", "hidden"};
      if (std::ranges::find(linkages, word) != std::end(linkages)) {
        before.remove_prefix(std::min(blank + 1, before.size()));
        continue;
      }
      result += before;
      break;
    }
    const auto arguments = header.substr(name_at(header, at + 1).end);
    return result + "@" + written(name) +
           std::string(arguments.substr(0, end - name_at(header, at + 1).end));
  }

  /// A call in front of a read that may wait for another thread.
  std::string poll_before(std::string_view line) {
    const auto equals = line.find(" = ");
    const auto code = equals == line.npos ? unindented(line) : line.substr(equals + 3);
    std::size_t at = 0;
    if (code.starts_with("load volatile ") || code.starts_with("load atomic ")) {
      at = code.find(' ', 5) + 1;
      if (code.substr(at).starts_with("volatile ")) at += 9;
      at = behind_type(code, at) + 2;
    } else if (code.starts_with("cmpxchg ") || code.starts_with("atomicrmw ")) {
      if (function_.find("8triptych4cuda") != function_.npos) return {};  // reads before
      at = code.find(' ') + 1;
      const bool is_exchange = code[0] == 'c';
      for (const std::string_view word : {"weak ", "volatile "}) {
        if (code.substr(at).starts_with(word)) at += word.size();
      }
      if (!is_exchange) at = code.find(' ', at) + 1;  // behind the operation
    } else {
      return {};
    }
    const auto end = behind_type(code, at);
    const auto type = code.substr(at, end - at);
    const auto value = code.substr(end + 1, behind_value(code, end + 1) - end - 1);
    const auto debug = code.find(", !dbg !");
    const auto place =
        debug == code.npos
            ? std::string_view()
            : code.substr(debug, code.find_first_not_of("0123456789", debug + 8) - debug);
    polls_ = true;
    is_opaque_ = type == "ptr";
    const auto callee = is_opaque_
                            ? fmt::format("@{}", kPoll)
                            : fmt::format("bitcast (void (i8*)* @{} to void ({})*)", kPoll, type);
    return renamed(fmt::format("  call void {}({} {}){}\n", callee, type, value, place));
  }

  std::vector<std::string_view> lines_;
  std::string local_suffix_;
  std::map<std::string_view, Meaning> meanings_;
  std::map<std::string_view, std::string_view> headers_;
  std::map<std::string, std::string> used_;  ///< declarations of watched functions
  std::set<std::string> declared_;
  std::string_view function_;
  bool polls_ = false, is_opaque_ = false;
};

}  // namespace

std::string unwatched_code(std::string_view assembly, std::size_t unit) {
  // Addresses of labels are data of the watched version.
  if (assembly.find("blockaddress(") != assembly.npos) return {};
  return Rewriter(assembly, unit).text();
}

std::string with_local_names(std::string_view assembly, std::size_t unit) {
  std::set<std::string_view> symbols, shared_by_files;
  for (const auto line : split_lines(assembly)) {
    const auto words = unindented(line);
    const auto blank = words.find_first_of(kSeparators);
    if (!words.starts_with('.') || blank == words.npos) continue;
    const auto directive = words.substr(0, blank);
    auto name = unindented(words.substr(blank));
    name = name.substr(0, name.find_first_of(", \t"));
    if (directive == ".type") symbols.insert(name);
    if (directive == ".globl" || directive == ".weak") shared_by_files.insert(name);
  }
  std::string result(assembly);
  for (const auto symbol : symbols) {
    const bool has_no_name = symbol.starts_with(".L") || symbol.starts_with('"');
    if (has_no_name || shared_by_files.contains(symbol)) continue;
    result += fmt::format(
        "\t.globl {0}.unit{1}\n\t.hidden {0}.unit{1}\n\t.set {0}.unit{1}, {0}\n"
        "\t.size {0}.unit{1}, 0\n",
        symbol, unit);
  }
  return result;
}

}  // namespace triptych::kernels
