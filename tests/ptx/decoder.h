// From an instruction as it is written to a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tests/ptx/program.h"

namespace triptych::ptx {

enum class Type { U8, S8, U16, S16, U32, S32, U64, S64, F32, F64, Bf16, Pred };

constexpr int bytes_of(Type type) {
  switch (type) {
    case Type::Pred:
      return 0;
    case Type::U8:
    case Type::S8:
      return 1;
    case Type::U16:
    case Type::S16:
    case Type::Bf16:
      return 2;
    case Type::U32:
    case Type::S32:
    case Type::F32:
      return 4;
    default:
      return 8;
  }
}
constexpr bool is_signed(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}
constexpr bool is_float(Type type) { return type == Type::F32 || type == Type::F64; }

/// Where the names of a kernel lie, and its constants as they come up.
class Layout {
 public:
  Layout(const Function& function, const GlobalAddresses& globals, Program& program);

  Slot register_slot(int id) const { return registers_[static_cast<std::size_t>(id)]; }
  /// `bits` in every lane.
  Slot constant(std::uint64_t bits, int bytes);
  /// The address of a name in its own space. Throws Fault when there is no such name.
  std::uint64_t address(const std::string& name) const;
  std::size_t label(const std::string& name) const;
  Program& program() { return program_; }

 private:
  void place_parameters(const Function& function);
  void place_variables(const Function& function);

  const Function& function_;
  Program& program_;
  std::vector<Slot> registers_;
  std::map<std::string, std::uint64_t> addresses_;
  std::map<std::pair<std::uint64_t, int>, Slot> constants_;
};

/// Reads one instruction. Unsupported modifiers make the instruction an unknown one.
class Decoder {
 public:
  Decoder(const Instruction& instruction, Layout& layout, Step& step);

  /// True when the modifier is there. It counts as read.
  bool take(std::string_view modifier);
  /// The first type among the modifiers. b16, b32 and b64 are unsigned.
  Type take_type();
  /// The modifier at the front, of any kind. Empty when none is left.
  std::string_view take_front();
  std::size_t terms() const { return instruction_.terms.size(); }
  const Term& term(std::size_t i) const;

  /// A register of exactly this width.
  Slot target(std::size_t i, int bytes) const { return target(term(i), bytes); }
  Slot target(const Term& term, int bytes) const;
  /// A register, a number, a special register or an address of this width.
  Slot source(std::size_t i, int bytes) { return source(term(i), bytes); }
  Slot source(const Term& term, int bytes);
  /// A register of this width or a wider one. Its low bytes count.
  Slot wide_target(const Term& term, int least_bytes) const;
  Slot wide_source(const Term& term, int least_bytes);
  Slot predicate_target(std::size_t i) const { return target(i, 0); }
  Slot predicate(const Term& term);
  /// [base + offset]: the base, of 4 or 8 bytes, is the step's at[place], the offset its
  /// offsets[place].
  void address(std::size_t i, std::size_t place = 0);
  std::size_t label(std::size_t i) const;
  std::uint64_t number(std::size_t i) const;
  /// Adds to the step's list.
  void append(Slot slot);

  Step& step() { return step_; }
  /// All modifiers must have been read. `handler` may be null: there is none for these types.
  void finish(Handler handler);
  [[noreturn]] void unknown() const;

 private:
  const Instruction& instruction_;
  Layout& layout_;
  Step& step_;
  std::vector<std::string_view> modifiers_;
};

struct Family {
  std::string_view name;  ///< the instruction without modifiers
  void (*decode)(Decoder& decoder);
};

std::span<const Family> arithmetic_family();
std::span<const Family> bits_family();
std::span<const Family> comparison_family();
std::span<const Family> conversion_family();
std::span<const Family> movement_family();
std::span<const Family> control_family();
std::span<const Family> warp_family();
std::span<const Family> tensor_family();
std::span<const Family> hopper_family();

}  // namespace triptych::ptx
