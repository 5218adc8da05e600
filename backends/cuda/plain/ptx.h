// Inline PTX of kernels that are compiled for x86-64. The build writes a block of instructions for
// each `asm`, in words of 64 bits, and a call of triptych_ptx with the values of the operands
// (experiments/kernels/ptx_calls.h). The parts ptx.cpp and ptx_warp.cpp of a library execute it.
// Compiled into both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace triptych::cuda::plain {

/// Operands in this order: results, then those of the instruction.
enum class PtxOperation : std::int64_t {
  Move,
  Add,
  Subtract,
  MultiplyLow,
  Multiply,
  MultiplyHigh,
  MultiplyWide,
  MultiplyAdd,
  FusedMultiplyAdd,
  And,
  Or,
  Xor,
  Not,
  ShiftLeft,
  ShiftRight,
  Minimum,
  Maximum,
  Absolute,
  Negate,
  Logic3,
  Permute,
  ExtractBits,
  InsertBits,
  FindBit,
  CountBits,
  CountZeros,
  ReverseBits,
  SumDifference,
  FunnelLeft,
  FunnelRight,
  ByteDifferences,
  Select,
  PowerOfTwo,
  Logarithm,
  Reciprocal,
  SquareRoot,
  ReciprocalRoot,
  Tangent,
  ShuffleUp,
  ShuffleDown,
  ShuffleXor,
  ShuffleIndex,
  Ballot,
  FenceBlock,
  FenceDevice,
  FenceSystem,
  BlockBarrier,
  WarpBarrier,
  CommitCopies,
  AwaitCopies,
  AwaitAllCopies,
  Pack,     ///< d, parts: the first is the lowest
  Unpack,   ///< parts, a
  Compare,  ///< d, a, b. detail: PtxComparison
  Convert,  ///< d, a or d, a, b. detail: the class and bytes of a, as kPtxClassBits has them
  RoundToTf32,
  Load,           ///< results, address. detail: kPtxShared, kPtxVolatile
  Store,          ///< address, values
  CopyLate,       ///< to, from, bytes, source bytes
  LoadMatrices,   ///< results, address. detail: 1 for transposed
  StoreMatrices,  ///< address, values
  MultiplyMatrices,
};
enum class PtxSpecial : std::int64_t {
  LaneId,
  WarpId,
  ThreadX,
  ThreadY,
  ThreadZ,
  BlockX,
  BlockY,
  BlockZ,
  ThreadsX,
  ThreadsY,
  ThreadsZ,
  BlocksX,
  BlocksY,
  BlocksZ,
  LanesEqual,
  LanesBelow,
  LanesUpTo,
  LanesAbove,
  LanesFrom,
  Clock,
  Clock64,
  GlobalTimer,
};
enum class PtxKind : std::int64_t {
  Slot,     ///< an operand of the `asm`, or a register that its text declares
  Negated,  ///< such a predicate, with '!' in front
  Number,
  Special,
  Nothing,  ///< '_'
};
enum class PtxClass : std::int64_t { Unsigned, Signed, Float, Bfloat };
enum class PtxComparison : std::int64_t {
  Equal,
  NotEqual,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual
};

/// Bits of PtxInstruction::detail of Load and Store.
inline constexpr std::int64_t kPtxShared = 1, kPtxVolatile = 2;
/// Convert: the source's class, and its bytes above these bits.
inline constexpr int kPtxClassBits = 8;

inline constexpr std::size_t kMostPtxSlots = 64, kMostPtxResults = 8;

/// value + offset: an address may have a constant behind it.
struct PtxOperand {
  PtxKind kind = PtxKind::Nothing;
  std::int64_t value = 0, offset = 0;
};

/// Elements of the factors of mma.sync, in detail.
enum class PtxElement : std::int64_t { Half, Bfloat, Tf32, Signed8, Unsigned8, Double };
/// detail of MultiplyMatrices: m, n, k, the elements of a and b, and whether sums are halves.
struct PtxShape {
  int m, n, k;
  PtxElement a, b;
  bool has_half_sums;

  constexpr std::int64_t packed() const {
    return m | n << 8 | k << 16 | static_cast<std::int64_t>(a) << 24 |
           static_cast<std::int64_t>(b) << 28 | static_cast<std::int64_t>(has_half_sums) << 32;
  }
  static constexpr PtxShape unpacked(std::int64_t detail) {
    return {static_cast<int>(detail & 0xFF),
            static_cast<int>(detail >> 8 & 0xFF),
            static_cast<int>(detail >> 16 & 0xFF),
            static_cast<PtxElement>(detail >> 24 & 0xF),
            static_cast<PtxElement>(detail >> 28 & 0xF),
            (detail >> 32 & 1) != 0};
  }
  /// Bits of an element of a or b in a register.
  constexpr int bits() const {
    return a == PtxElement::Double                            ? 64
           : a == PtxElement::Tf32                            ? 32
           : a == PtxElement::Half || a == PtxElement::Bfloat ? 16
                                                              : 8;
  }
  constexpr int register_bits() const { return a == PtxElement::Double ? 64 : 32; }
  constexpr int registers_a() const { return m * k * bits() / register_bits() / 32; }
  constexpr int registers_b() const { return k * n * bits() / register_bits() / 32; }
  constexpr int registers_c() const { return m * n / 32 / (has_half_sums ? 2 : 1); }
};

/// Followed by its operands.
struct PtxInstruction {
  PtxOperation operation;
  std::int64_t bytes;  ///< of the type
  PtxClass type;
  std::int64_t detail;
  PtxOperand guard;  ///< Nothing: it is always executed
  std::int64_t count;
};

/// Followed by the slots of the arguments, and by the instructions.
struct PtxBlock {
  const char* file;
  std::int64_t line, arguments, instructions;
};

}  // namespace triptych::cuda::plain
