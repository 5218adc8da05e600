// An instruction of inline PTX that a thread executes, with the values of its operands. Compiled
// into the parts of a library that execute them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/plain/ptx.h"
#include "backends/cuda/plain/services.h"

namespace triptych::cuda::plain {

extern const Services* services __attribute__((visibility("hidden")));

/// `operands` are those behind the instruction. `slots`: registers of this `asm`.
struct RunningPtx {
  const PtxInstruction& code;
  const PtxOperand* operands;
  std::uint64_t* slots;
  emulation::Location where;

  std::size_t count() const { return static_cast<std::size_t>(code.count); }
  unsigned bits() const { return static_cast<unsigned>(code.bytes) * 8; }
  bool is_signed() const { return code.type == PtxClass::Signed; }
  /// The value as its type has it: with its sign, or without.
  std::int64_t wide(std::uint64_t value) const {
    const unsigned shift = 64 - bits();
    return is_signed() ? static_cast<std::int64_t>(value << shift) >> shift
                       : static_cast<std::int64_t>(value << shift >> shift);
  }
  /// 0 for an operand that does not exist.
  std::uint64_t value(std::size_t i) const;
  std::uint32_t word(std::size_t i) const { return static_cast<std::uint32_t>(value(i)); }
  std::int64_t operand(std::size_t i) const { return wide(value(i)); }
  bool is_less(std::size_t a, std::size_t b) const {
    return is_signed()
               ? operand(a) < operand(b)
               : static_cast<std::uint64_t>(operand(a)) < static_cast<std::uint64_t>(operand(b));
  }
  /// Stores to the register that is operand i.
  void put(std::size_t i, std::uint64_t result) const {
    if (operands[i].kind == PtxKind::Slot) {
      slots[static_cast<std::size_t>(operands[i].value)] = result;
    }
  }
  /// The same, in as many bytes as the type has.
  void set(std::size_t i, std::uint64_t result) const;
  /// An address. One of shared memory may be given by its lower 32 bits.
  const volatile std::byte* address(std::size_t i, bool is_shared) const;
};

/// Instructions that only compute.
void run_values(const RunningPtx& running);
/// ldmatrix, stmatrix and mma.sync of the running lane with the others of its warp.
void run_matrices(const RunningPtx& running);

}  // namespace triptych::cuda::plain
