// Inline PTX of kernels that are compiled for x86-64: one instruction, with operands in registers
// of this processor, numbers and special registers of a GPU. The build writes a record for each,
// and the part ptx.cpp of a library executes it. Compiled into both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace triptych::cuda::plain {

// A row each: operation, the instruction without its type, operands. The first operand is the
// result, except for stores and for instructions without one.
#define TRIPTYCH_PTX_OPERATIONS(row)                                                               \
  row(Move, "mov", 2) row(Add, "add", 3) row(Subtract, "sub", 3) row(                              \
      MultiplyLow, "mul.lo", 3) row(MultiplyHigh, "mul.hi", 3) row(MultiplyWide, "mul.wide", 3)    \
      row(MultiplyAdd, "mad.lo", 4) row(And, "and", 3) row(Or, "or", 3) row(Xor, "xor", 3) row(    \
          Not, "not", 2) row(ShiftLeft, "shl", 3) row(ShiftRight, "shr", 3) row(Minimum, "min", 3) \
          row(Maximum, "max", 3) row(Absolute, "abs", 2) row(Negate, "neg", 2)                     \
              row(Logic3, "lop3", 5) row(Permute, "prmt", 4) row(ExtractBits, "bfe", 4)            \
                  row(InsertBits, "bfi", 5) row(FindBit, "bfind", 2) row(CountBits, "popc", 2)     \
                      row(CountZeros, "clz", 2) row(ReverseBits, "brev", 2)                        \
                          row(SumDifference, "sad", 4) row(FunnelLeft, "shf.l.wrap", 4)            \
                              row(FunnelRight, "shf.r.wrap", 4) TRIPTYCH_PTX_MORE_OPERATIONS(row)
#define TRIPTYCH_PTX_MORE_OPERATIONS(row)                                                    \
  row(ByteDifferences, "vabsdiff4.u32.u32.u32.add", 4) row(Load, "ld.global", 2)             \
      row(VolatileLoad, "ld.volatile.global", 2) row(Store, "st.global", 2)                  \
          row(VolatileStore, "st.volatile.global", 2) row(ShuffleUp, "shfl.sync.up", 5)      \
              row(ShuffleDown, "shfl.sync.down", 5) row(ShuffleXor, "shfl.sync.bfly", 5)     \
                  row(ShuffleIndex, "shfl.sync.idx", 5) row(Ballot, "vote.sync.ballot", 3)   \
                      row(FenceBlock, "membar.cta", 0) row(FenceDevice, "membar.gl", 0)      \
                          row(FenceSystem, "membar.sys", 0) row(BlockBarrier, "bar.sync", 1) \
                              row(WarpBarrier, "bar.warp.sync", 1)

#define TRIPTYCH_PTX_SPECIALS(row)                                                               \
  row(LaneId, "laneid") row(WarpId, "warpid") row(ThreadX, "tid.x") row(ThreadY, "tid.y")        \
      row(ThreadZ, "tid.z") row(BlockX, "ctaid.x") row(BlockY, "ctaid.y") row(BlockZ, "ctaid.z") \
          row(ThreadsX, "ntid.x") row(ThreadsY, "ntid.y") row(ThreadsZ, "ntid.z")                \
              row(BlocksX, "nctaid.x") row(BlocksY, "nctaid.y") row(BlocksZ, "nctaid.z")         \
                  row(LanesEqual, "lanemask_eq") row(LanesBelow, "lanemask_lt")                  \
                      row(LanesUpTo, "lanemask_le") row(LanesAbove, "lanemask_gt")               \
                          row(LanesFrom, "lanemask_ge") row(Clock, "clock")                      \
                              row(Clock64, "clock64") row(GlobalTimer, "globaltimer")

enum class PtxOperation : std::uint8_t {
#define TRIPTYCH_ENUMERATOR(name, text, operands) name,
  TRIPTYCH_PTX_OPERATIONS(TRIPTYCH_ENUMERATOR)
#undef TRIPTYCH_ENUMERATOR
};
enum class PtxSpecial : std::uint8_t {
#define TRIPTYCH_ENUMERATOR(name, text) name,
  TRIPTYCH_PTX_SPECIALS(TRIPTYCH_ENUMERATOR)
#undef TRIPTYCH_ENUMERATOR
};
enum class PtxKind : std::uint8_t { Register, Number, Special };

inline constexpr std::size_t kMostPtxOperands = 5;

/// As the build writes it, field by field.
struct PtxInstruction {
  const char* file;
  std::uint32_t line;
  PtxOperation operation;
  std::uint8_t bytes;  ///< of the type
  bool is_signed;
  std::uint8_t unused;
  PtxKind kinds[8];
  std::int64_t
      values[kMostPtxOperands];  ///< number of a register or of a special one, or the value
};

/// The general registers of x86-64 in the order of their numbers: rax, rcx, rdx, rbx, rsp, rbp,
/// rsi, rdi, r8 to r15.
inline constexpr std::size_t kGeneralRegisters = 16;

}  // namespace triptych::cuda::plain
