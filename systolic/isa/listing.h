// Programs as text. A line holds an instruction, `matmul wait=load count=4`, or an array in DRAM
// that the program reads or makes, `.input x address=0 type=bf16 shape=4x4`. "#" starts a comment.
// A number is decimal or 0x..., or a sum of numbers and names of arrays, which stand for their
// addresses: `address=x+32`. A text that tests a machine has values, too: `.values x 1 0.5 -0 inf`
// of an input, `.expect y 3 nan _` of an output ("_": any), `.expect cycles 76` of a counter. An
// array's may stand on several lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "systolic/isa/isa.h"

namespace triptych::mmu {

enum class ElementType : std::uint8_t { Bf16, F32, Int8, Int32, Uint8 };
inline constexpr auto kElementTypeNames =
    std::to_array<std::pair<ElementType, std::string_view>>({{ElementType::Bf16, "bf16"},
                                                             {ElementType::F32, "f32"},
                                                             {ElementType::Int8, "int8"},
                                                             {ElementType::Int32, "int32"},
                                                             {ElementType::Uint8, "uint8"}});
std::string_view to_string(ElementType type);
std::uint32_t bytes_of(ElementType type);

/// A value in a text, of an array's element.
struct ListedValue {
  std::uint32_t bits = 0;  ///< of a bf16 array those of a binary32, of a whole number its value's
  bool any = false;        ///< of an output: not looked at
};

/// An array in DRAM, element after element, the last dimension innermost.
struct DramArray {
  std::string name;
  bool is_input = true;  ///< otherwise the program's output
  ElementType type = ElementType::F32;
  std::uint32_t address = 0;
  std::vector<std::uint32_t> shape;  ///< 1 to 8 dimensions, none of them 0
  std::size_t line = 0;
  std::vector<ListedValue> values;  ///< that it holds or should hold. None, or of all elements

  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * bytes_of(type); }
  /// "y[1][3]": how messages name an element, counted from 0 on.
  std::string element(std::uint64_t index) const;
};

/// A counter's value that a text expects (named_counts of simulator.h).
struct ListedCount {
  std::string name;
  std::uint64_t value = 0;
  std::size_t line = 0;
};

/// Content of a text.
struct Listing {
  Program program;
  std::vector<std::size_t> lines;  ///< of each instruction, from 1
  std::vector<DramArray> arrays;
  std::vector<ListedCount> counts;
};

/// A text that is no program: "line 3, column 8: problem; what is allowed".
class ListingError : public std::invalid_argument {
 public:
  ListingError(std::size_t line, std::size_t column, const std::string& problem);
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }

 private:
  std::size_t line_, column_;
};

/// Throws ListingError. Whether the program is legal on a machine is check_program's to say.
Listing read_listing(std::string_view text);

/// 64 hexadecimal digits, the most significant word first, as $readmemh of SystemVerilog reads it.
std::string to_hex(const Instruction& instruction);
/// Lines of to_hex. "//" starts a comment, empty lines are skipped. Throws ListingError, also for
/// bits that no operand has.
Program read_hex(std::string_view text);

}  // namespace triptych::mmu
