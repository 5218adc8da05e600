// The operations of the vector unit: the one table behind the assembler's names, the constants of
// the SystemVerilog package, the manual and the twin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triptych::mmu {

enum class VectorOperation : std::uint8_t {
  Move,
  Fill,
  Add,
  Subtract,
  Multiply,
  Fma,
  Larger,
  Smaller,
  Greater,
  Equal,
  Select,
  And,
  Or,
  Xor,
  AddInteger,
  SubtractInteger,
  ShiftLeft,
  ShiftRight,
  ToFloat,
  Rotate,
  Broadcast,
};

/// Operands that an operation reads, as bits.
inline constexpr unsigned kReadsA = 1, kReadsB = 2, kReadsC = 4;

/// The arithmetic of a lane, as far as it has a price.
enum class VectorWork : std::uint8_t { None, Add, Multiply, Fma, Other };

struct VectorOperationInfo {
  VectorOperation operation;
  std::string_view name;
  unsigned reads;
  std::string_view result;  ///< of a lane, as the manual writes it
  VectorWork work = VectorWork::Other;
};

inline constexpr std::array kVectorOperations{
    VectorOperationInfo{VectorOperation::Move, "move", kReadsA, "a", VectorWork::None},
    VectorOperationInfo{VectorOperation::Fill, "fill", kReadsB, "b", VectorWork::None},
    VectorOperationInfo{VectorOperation::Add, "add", kReadsA | kReadsB, "a + b", VectorWork::Add},
    VectorOperationInfo{VectorOperation::Subtract, "subtract", kReadsA | kReadsB, "a − b",
                        VectorWork::Add},
    VectorOperationInfo{VectorOperation::Multiply, "multiply", kReadsA | kReadsB, "a × b",
                        VectorWork::Multiply},
    VectorOperationInfo{VectorOperation::Fma, "fma", kReadsA | kReadsB | kReadsC,
                        "a × b + c, rounded once", VectorWork::Fma},
    VectorOperationInfo{VectorOperation::Larger, "larger", kReadsA | kReadsB, "a > b ? a : b"},
    VectorOperationInfo{VectorOperation::Smaller, "smaller", kReadsA | kReadsB, "a < b ? a : b"},
    VectorOperationInfo{VectorOperation::Greater, "greater", kReadsA | kReadsB,
                        "a > b: all bits 1, otherwise 0"},
    VectorOperationInfo{VectorOperation::Equal, "equal", kReadsA | kReadsB,
                        "a = b: all bits 1, otherwise 0"},
    VectorOperationInfo{VectorOperation::Select, "select", kReadsA | kReadsB | kReadsC,
                        "a where a bit of c is 1, otherwise b"},
    VectorOperationInfo{VectorOperation::And, "and", kReadsA | kReadsB, "the bits of a and b"},
    VectorOperationInfo{VectorOperation::Or, "or", kReadsA | kReadsB, "the bits of a or b"},
    VectorOperationInfo{VectorOperation::Xor, "xor", kReadsA | kReadsB,
                        "the bits of a exclusive or b"},
    VectorOperationInfo{VectorOperation::AddInteger, "add_integer", kReadsA | kReadsB,
                        "a + b as 32-bit integers, wrapping"},
    VectorOperationInfo{VectorOperation::SubtractInteger, "subtract_integer", kReadsA | kReadsB,
                        "a − b as 32-bit integers, wrapping"},
    VectorOperationInfo{VectorOperation::ShiftLeft, "shift_left", kReadsA | kReadsB,
                        "a shifted left by the low five bits of b"},
    VectorOperationInfo{VectorOperation::ShiftRight, "shift_right", kReadsA | kReadsB,
                        "a shifted right by the low five bits of b, with zeros"},
    VectorOperationInfo{VectorOperation::ToFloat, "to_float", kReadsA,
                        "the signed integer a, rounded to binary32"},
    VectorOperationInfo{VectorOperation::Rotate, "rotate", kReadsA,
                        "lane (l + `scalar`) mod C of a, in lane l", VectorWork::None},
    VectorOperationInfo{VectorOperation::Broadcast, "broadcast", kReadsA,
                        "lane `scalar` of a, in every lane", VectorWork::None}};
static_assert(std::ranges::all_of(kVectorOperations, [](const VectorOperationInfo& info) {
  return &info == &kVectorOperations[static_cast<std::size_t>(info.operation)];
}));

namespace internal {
constexpr auto vector_operation_names() {
  std::array<std::string_view, kVectorOperations.size()> names;
  std::ranges::transform(kVectorOperations, names.begin(), &VectorOperationInfo::name);
  return names;
}
}  // namespace internal
inline constexpr auto kVectorOperationNames = internal::vector_operation_names();

/// `number` is below kVectorOperations.size().
constexpr const VectorOperationInfo& vector_operation(std::uint32_t number) {
  return kVectorOperations[number];
}
/// `scalar` of these is the number of a lane.
constexpr bool crosses_lanes(VectorOperation operation) {
  return operation == VectorOperation::Rotate || operation == VectorOperation::Broadcast;
}

}  // namespace triptych::mmu
