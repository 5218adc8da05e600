// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/text.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "tests/ptx/lexer.h"

namespace triptych::ptx {
namespace {

struct TypeName {
  std::string_view name;
  int bytes;  ///< 0: a predicate
};
constexpr TypeName kTypes[] = {{".pred", 0}, {".b8", 1},  {".u8", 1},  {".s8", 1},
                               {".b16", 2},  {".u16", 2}, {".s16", 2}, {".f16", 2},
                               {".b32", 4},  {".u32", 4}, {".s32", 4}, {".f32", 4},
                               {".b64", 8},  {".u64", 8}, {".s64", 8}, {".f64", 8}};

std::optional<int> type_bytes(std::string_view word) {
  for (const auto& type : kTypes) {
    if (type.name == word) return type.bytes;
  }
  return std::nullopt;
}

std::optional<Space> space_of(std::string_view word) {
  if (word == ".global" || word == ".const") return Space::Global;
  if (word == ".shared") return Space::Shared;
  if (word == ".local") return Space::Local;
  if (word == ".param") return Space::Param;
  return std::nullopt;
}

std::vector<std::byte> initial_values(Lexer& lexer, int bytes) {
  std::vector<std::byte> values;
  const bool list = lexer.accept("{");
  do {
    const bool negative = lexer.accept("-");
    if (!is_number(lexer.word())) lexer.fail("a variable that starts as an address is not known");
    auto value = number_of(lexer, lexer.take());
    if (negative) value = 0 - value;
    const auto at = values.size();
    values.resize(at + static_cast<std::size_t>(bytes));
    std::memcpy(values.data() + at, &value, static_cast<std::size_t>(bytes));
  } while (list && lexer.accept(","));
  if (list) lexer.expect("}");
  return values;
}

/// From the space on, up to the name and initial values: .shared .align 4 .b8 name[64]
Variable read_variable(Lexer& lexer) {
  Variable variable;
  const auto space = space_of(lexer.take());
  if (!space) lexer.fail("a declaration without a space");
  variable.space = *space;
  int element = 1;
  for (; lexer.word().starts_with('.'); lexer.take()) {
    if (lexer.accept(".align")) {
      variable.alignment = number_of(lexer, lexer.word());
    } else if (const auto bytes = type_bytes(lexer.word())) {
      element = *bytes;
    } else if (lexer.word() != ".ptr" && !space_of(lexer.word())) {
      lexer.fail(fmt::format("\"{}\" in a declaration is not known", lexer.word()));
    }
  }
  variable.alignment = std::max(variable.alignment, static_cast<std::size_t>(element));
  variable.name = lexer.take();
  variable.bytes = static_cast<std::size_t>(element);
  if (lexer.accept("[")) {
    const bool open = lexer.word() == "]";
    variable.bytes *= open ? 0 : number_of(lexer, lexer.take());
    lexer.expect("]");
  }
  if (lexer.accept("=")) variable.initial = initial_values(lexer, element);
  return variable;
}

/// Reads one function's body.
class BodyReader {
 public:
  BodyReader(Lexer& lexer, Function& function) : lexer_(lexer), function_(function) {}

  void read() {
    lexer_.expect("{");
    scopes_.emplace_back();
    while (!scopes_.empty()) read_statement();
  }

 private:
  /// Registers of one block: %r<5> are five from `first` on.
  struct Range {
    int first = 0, count = 0;
  };
  using Scope = std::map<std::string, Range, std::less<>>;

  void read_statement() {
    const auto word = lexer_.word();
    if (lexer_.at_end()) lexer_.fail("a function without an end");
    if (lexer_.accept("{")) {
      scopes_.emplace_back();
    } else if (lexer_.accept("}")) {
      scopes_.pop_back();
    } else if (lexer_.accept(".reg")) {
      read_registers();
    } else if (word == ".loc") {
      lexer_.skip_line();
    } else if (word == ".pragma") {
      while (!lexer_.accept(";")) lexer_.take();
    } else if (space_of(word)) {
      function_.variables.push_back(read_variable(lexer_));
      lexer_.expect(";");
    } else if (word.starts_with('.')) {
      lexer_.fail(fmt::format("the directive \"{}\" is not known", word));
    } else {
      read_instruction_or_label();
    }
  }

  void read_registers() {
    const auto bytes = type_bytes(lexer_.take());
    if (!bytes) lexer_.fail("a register of a type that is not known");
    do {
      const std::string name(lexer_.take());
      int count = 0;
      if (lexer_.accept("<")) {
        count = static_cast<int>(number_of(lexer_, lexer_.take()));
        lexer_.expect(">");
      }
      scopes_.back()[name] = {static_cast<int>(function_.registers.size()), count};
      for (int i = 0; i < std::max(count, 1); ++i) {
        function_.registers.push_back({*bytes, count == 0 ? name : fmt::format("{}{}", name, i)});
      }
    } while (lexer_.accept(","));
    lexer_.expect(";");
  }

  void read_instruction_or_label() {
    Instruction instruction;
    instruction.line = lexer_.line();
    if (lexer_.accept("@")) {
      instruction.guarded = true;
      instruction.guard = read_term();
    }
    instruction.name = lexer_.take();
    if (!instruction.guarded && lexer_.accept(":")) {
      function_.labels[instruction.name] = function_.instructions.size();
      return;
    }
    while (!lexer_.accept(";")) {
      instruction.terms.push_back(read_term());
      // Two targets of one instruction, p|q, are two terms.
      if (lexer_.word() != ";" && !lexer_.accept("|")) lexer_.expect(",");
    }
    function_.instructions.push_back(std::move(instruction));
  }

  Term read_term() {
    Term term;
    if (lexer_.accept("!")) {
      term = read_term();
      term.negated = true;
    } else if (lexer_.accept("{")) {
      term.kind = Term::Kind::List;
      read_parts(term, "}");
    } else if (lexer_.accept("[")) {
      term.kind = Term::Kind::Address;
      read_parts(term, "]");
    } else {
      term = read_simple_term();
    }
    return term;
  }

  void read_parts(Term& term, std::string_view end) {
    while (!lexer_.accept(end)) {
      term.parts.push_back(read_term());
      if (lexer_.word() != end) lexer_.expect(",");
    }
  }

  Term read_simple_term() {
    Term term;
    const bool negative = lexer_.accept("-");
    const auto word = lexer_.take();
    if (is_number(word)) {
      term.kind = Term::Kind::Number;
      term.bits = number_of(lexer_, word);
      if (negative) term.bits = 0 - term.bits;
      return term;
    }
    if (word == "_") return term;
    if (const auto id = find_register(word)) {
      term.kind = Term::Kind::Register;
      term.id = *id;
    } else {
      term.kind = word.starts_with('%') ? Term::Kind::Special : Term::Kind::Name;
      term.name = word;
    }
    if (lexer_.accept("+")) {
      const bool back = lexer_.accept("-");
      const auto bytes = static_cast<std::int64_t>(number_of(lexer_, lexer_.take()));
      term.offset = back ? -bytes : bytes;
    }
    return term;
  }

  std::optional<int> find_register(std::string_view name) const {
    const auto digits = name.find_last_not_of("0123456789") + 1;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second.first;
      if (digits == name.size()) continue;
      const auto range = scope->find(name.substr(0, digits));
      if (range == scope->end()) continue;
      const auto index = static_cast<int>(number_of(lexer_, name.substr(digits)));
      if (index < range->second.count) return range->second.first + index;
    }
    return std::nullopt;
  }

  Lexer& lexer_;
  Function& function_;
  std::vector<Scope> scopes_;
};

/// Text between a kernel's name and its body.
void read_parameters(Lexer& lexer, Function& function) {
  if (lexer.accept("(")) {
    while (!lexer.accept(")")) {
      function.parameters.push_back(read_variable(lexer));
      if (lexer.word() != ")") lexer.expect(",");
    }
  }
  while (lexer.word() != "{") {
    if (lexer.at_end()) lexer.fail("a kernel without a body");
    if (lexer.accept(".maxntid")) {  // .maxntid 384, 1, 1
      function.most_threads = 1;
      do function.most_threads *= number_of(lexer, lexer.take());
      while (lexer.accept(","));
    } else {
      lexer.take();
    }
  }
}

}  // namespace

ModuleText::ModuleText(std::string_view text) : text_(text) {
  Lexer lexer(text, 0, 1);
  while (!lexer.at_end()) {
    const auto word = lexer.word();
    if (word == ".version" || word == ".target" || word == ".address_size" || word == ".file") {
      lexer.skip_line();
    } else if (word == ".visible" || word == ".weak" || word == ".extern" || word == ".common") {
      lexer.take();
    } else if (lexer.accept(".entry")) {
      const std::string name(lexer.take());
      bodies_[name] = {lexer.begin(), lexer.line()};
      while (!lexer.at_end() && lexer.word() != "{") lexer.take();
      lexer.skip_block();
    } else if (space_of(word)) {
      variables_.push_back(read_variable(lexer));
      lexer.expect(";");
    } else {
      lexer.fail(fmt::format("the directive \"{}\" is not known", word));
    }
  }
}

std::vector<std::string> ModuleText::kernels() const {
  std::vector<std::string> names;
  for (const auto& [name, body] : bodies_) names.push_back(name);
  return names;
}

Function ModuleText::read(std::string_view kernel) const {
  const auto body = bodies_.find(kernel);
  if (body == bodies_.end()) throw Fault(fmt::format("there is no kernel {}", kernel));
  Lexer lexer(text_, body->second.begin, body->second.line);
  Function function;
  function.name = kernel;
  read_parameters(lexer, function);
  BodyReader(lexer, function).read();
  return function;
}

}  // namespace triptych::ptx
