// Executes inline PTX. The build replaces each instruction by a call of triptych_ptx. Linked with
// libraries of kernels that have such instructions.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/ptx.h"

#include <bit>
#include <chrono>

#include "backends/cuda/plain/services.h"
#include "backends/cuda/plain/vector_registers.h"

namespace triptych::cuda::plain {

extern const Services* services __attribute__((visibility("hidden")));

namespace {

using emulation::Location;
using Operation = PtxOperation;

std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

std::uint64_t special(PtxSpecial which) {
  const auto at = services->indices();
  const auto &thread = at.thread, &block = at.block, &size = at.block_dim, &grid = at.grid_dim;
  const unsigned lane = services->lane_index();
  const std::uint32_t own = 1U << lane;
  switch (which) {
    case PtxSpecial::LaneId:
      return lane;
    case PtxSpecial::WarpId:
      return ((thread.z * size.y + thread.y) * size.x + thread.x) / 32;
    case PtxSpecial::ThreadX:
      return thread.x;
    case PtxSpecial::ThreadY:
      return thread.y;
    case PtxSpecial::ThreadZ:
      return thread.z;
    case PtxSpecial::BlockX:
      return block.x;
    case PtxSpecial::BlockY:
      return block.y;
    case PtxSpecial::BlockZ:
      return block.z;
    case PtxSpecial::ThreadsX:
      return size.x;
    case PtxSpecial::ThreadsY:
      return size.y;
    case PtxSpecial::ThreadsZ:
      return size.z;
    case PtxSpecial::BlocksX:
      return grid.x;
    case PtxSpecial::BlocksY:
      return grid.y;
    case PtxSpecial::BlocksZ:
      return grid.z;
    case PtxSpecial::LanesEqual:
      return own;
    case PtxSpecial::LanesBelow:
      return own - 1;
    case PtxSpecial::LanesUpTo:
      return own | (own - 1);
    case PtxSpecial::LanesAbove:
      return ~(own | (own - 1));
    case PtxSpecial::LanesFrom:
      return ~(own - 1);
    case PtxSpecial::Clock:
    case PtxSpecial::Clock64:
    case PtxSpecial::GlobalTimer:
      return nanoseconds();
  }
  return 0;
}

/// An instruction with the values of its operands. Number 0 is the result.
struct Running {
  const PtxInstruction& code;
  std::uint64_t values[kMostPtxOperands];
  Location where;

  unsigned bits() const { return code.bytes * 8U; }
  /// The value as its type has it: with its sign, or without.
  std::int64_t wide(std::uint64_t value) const {
    const unsigned shift = 64 - bits();
    return code.is_signed ? static_cast<std::int64_t>(value << shift) >> shift
                          : static_cast<std::int64_t>(value << shift >> shift);
  }
  std::int64_t operand(std::size_t i) const { return wide(values[i]); }
  std::uint32_t word(std::size_t i) const { return static_cast<std::uint32_t>(values[i]); }
  bool is_less(std::size_t a, std::size_t b) const {
    return code.is_signed
               ? operand(a) < operand(b)
               : static_cast<std::uint64_t>(operand(a)) < static_cast<std::uint64_t>(operand(b));
  }
};

std::uint64_t high_product(const Running& r) {
  const auto product = r.code.is_signed
                           ? static_cast<__int128>(r.operand(1)) * r.operand(2)
                           : static_cast<__int128>(static_cast<unsigned __int128>(
                                                       static_cast<std::uint64_t>(r.operand(1))) *
                                                   static_cast<std::uint64_t>(r.operand(2)));
  return static_cast<std::uint64_t>(product >> r.bits());
}

/// The fifth operand is the table of a function of three bits.
std::uint32_t logic(const Running& r) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if ((r.word(4) >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? r.word(1) : ~r.word(1)) &
              ((row & 2) != 0 ? r.word(2) : ~r.word(2)) & ((row & 1) != 0 ? r.word(3) : ~r.word(3));
  }
  return result;
}

std::uint32_t permute(const Running& r) {
  const std::uint64_t bytes = r.word(1) | static_cast<std::uint64_t>(r.word(2)) << 32;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const auto selector = r.word(3) >> 4 * i & 0xF;
    auto byte = static_cast<std::uint32_t>(bytes >> 8 * (selector & 7) & 0xFF);
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << 8 * i;
  }
  return result;
}

/// Bits from a position on. Above the value's own stands its sign, as the PTX manual has it.
std::uint64_t extract(const Running& r) {
  const unsigned begin = r.values[2] & 0xFF, length = r.values[3] & 0xFF;
  const auto value = static_cast<std::uint64_t>(r.operand(1));
  const unsigned last = begin + length - 1 < r.bits() - 1 ? begin + length - 1 : r.bits() - 1;
  const bool sign = length != 0 && r.code.is_signed && (value >> last & 1) != 0;
  std::uint64_t result = 0;
  for (unsigned i = 0; i < r.bits(); ++i) {
    const bool inside = i < length && begin + i < r.bits();
    const bool bit = inside ? (value >> (begin + i) & 1) != 0 : sign;
    result |= static_cast<std::uint64_t>(bit) << i;
  }
  return result;
}

std::uint64_t insert(const Running& r) {
  const unsigned begin = r.values[3] & 0xFF, length = r.values[4] & 0xFF;
  std::uint64_t result = r.values[2];
  for (unsigned i = 0; i < length && begin + i < r.bits(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (begin + i);
    result = (r.values[1] >> i & 1) != 0 ? result | bit : result & ~bit;
  }
  return result;
}

/// The position of the highest bit that differs from the sign. All ones: there is none.
std::uint32_t find_bit(const Running& r) {
  auto value = static_cast<std::uint64_t>(r.operand(1));
  if (r.code.is_signed && r.operand(1) < 0) value = ~value;
  return value == 0 ? ~0U : 63U - static_cast<unsigned>(std::countl_zero(value));
}

std::uint32_t byte_differences(const Running& r) {
  std::uint32_t sum = r.word(3);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const auto a = static_cast<int>(r.word(1) >> shift & 0xFF),
               b = static_cast<int>(r.word(2) >> shift & 0xFF);
    sum += static_cast<std::uint32_t>(a < b ? b - a : a - b);
  }
  return sum;
}

std::uint64_t calculate(const Running& r) {
  const auto a = static_cast<std::uint64_t>(r.operand(1)),
             b = static_cast<std::uint64_t>(r.operand(2)),
             c = static_cast<std::uint64_t>(r.operand(3));
  const std::uint64_t pair = r.word(1) | static_cast<std::uint64_t>(r.word(2)) << 32;
  const auto bits = r.bits();
  switch (r.code.operation) {
    case Operation::Add:
      return a + b;
    case Operation::Subtract:
      return a - b;
    case Operation::MultiplyLow:
    case Operation::MultiplyWide:
      return a * b;
    case Operation::MultiplyHigh:
      return high_product(r);
    case Operation::MultiplyAdd:
      return a * b + c;
    case Operation::And:
      return a & b;
    case Operation::Or:
      return a | b;
    case Operation::Xor:
      return a ^ b;
    case Operation::Not:
      return ~a;
    case Operation::ShiftLeft:
      return r.word(2) < bits ? a << r.word(2) : 0;
    case Operation::ShiftRight:
      if (r.code.is_signed)
        return static_cast<std::uint64_t>(r.operand(1) >>
                                          (r.word(2) < bits ? r.word(2) : bits - 1));
      return r.word(2) < bits ? a >> r.word(2) : 0;
    case Operation::Minimum:
      return r.is_less(2, 1) ? b : a;
    case Operation::Maximum:
      return r.is_less(1, 2) ? b : a;
    case Operation::Absolute:
      return r.operand(1) < 0 ? 0 - a : a;
    case Operation::Negate:
      return 0 - a;
    case Operation::Logic3:
      return logic(r);
    case Operation::Permute:
      return permute(r);
    case Operation::ExtractBits:
      return extract(r);
    case Operation::InsertBits:
      return insert(r);
    case Operation::FindBit:
      return find_bit(r);
    case Operation::CountBits:
      return static_cast<unsigned>(std::popcount(a));
    case Operation::CountZeros:
      return static_cast<unsigned>(std::countl_zero(a)) - (64 - bits);
    case Operation::ReverseBits: {
      std::uint64_t reversed = 0;
      for (unsigned i = 0; i < bits; ++i) reversed |= (a >> i & 1) << (bits - 1 - i);
      return reversed;
    }
    case Operation::SumDifference:
      return c + (r.is_less(1, 2) ? b - a : a - b);
    case Operation::FunnelLeft:
      return pair << (r.word(3) & 31) >> 32;
    case Operation::FunnelRight:
      return pair >> (r.word(3) & 31);
    case Operation::ByteDifferences:
      return byte_differences(r);
    default:
      return a;
  }
}

// Accesses of 4 or 8 bytes, of the type's width. A call of memcpy would count once more.
std::uint64_t load(const Running& r, Touch how) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an operand
  const auto* address = reinterpret_cast<const volatile std::uint32_t*>(r.values[1]);
  services->touch_at(how, const_cast<const std::uint32_t*>(address), r.code.bytes, r.where);
  std::uint64_t value = address[0];
  if (r.code.bytes == 8) value |= static_cast<std::uint64_t>(address[1]) << 32;
  return static_cast<std::uint64_t>(r.wide(value));
}

void store(const Running& r, Touch how) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an operand
  auto* address = reinterpret_cast<volatile std::uint32_t*>(r.values[0]);
  services->touch_at(how, const_cast<std::uint32_t*>(address), r.code.bytes, r.where);
  address[0] = r.word(1);
  if (r.code.bytes == 8) address[1] = static_cast<std::uint32_t>(r.values[1] >> 32);
}

/// The value of another lane (PTX manual, shfl.sync): d, a, b, c, mask.
std::uint32_t shuffle(const Running& r) {
  const auto mask = r.word(4);
  services->exchange(mask, r.word(1), r.where, emulation::WarpWork::Exchange);
  const unsigned lane = services->lane_index(), by = r.word(2) & 31, clamp = r.word(3) & 31,
                 segment = r.word(3) >> 8 & 31, first = lane & segment,
                 last = first | (clamp & ~segment);
  unsigned source = lane;
  if (r.code.operation == Operation::ShuffleUp) {
    if (lane >= last + by) source = lane - by;
  } else {
    const unsigned other = r.code.operation == Operation::ShuffleDown  ? lane + by
                           : r.code.operation == Operation::ShuffleXor ? lane ^ by
                                                                       : first | (by & ~segment);
    if (other <= last) source = other;
  }
  return static_cast<std::uint32_t>(services->exchanged(mask, source, r.where));
}

/// d, predicate, mask.
std::uint32_t ballot(const Running& r) {
  const auto mask = r.word(2);
  services->exchange(mask, r.word(1) != 0, r.where, emulation::WarpWork::Exchange);
  std::uint32_t votes = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    votes |= static_cast<std::uint32_t>(services->exchanged(mask, lane, r.where)) << lane;
  }
  return votes;
}

/// True where the instruction has a result.
bool execute(const Running& r, std::uint64_t& result) {
  switch (r.code.operation) {
    case Operation::Load:
      result = load(r, Touch::Load);
      return true;
    case Operation::VolatileLoad:
      result = load(r, Touch::VolatileLoad);
      return true;
    case Operation::Store:
      store(r, Touch::Store);
      return false;
    case Operation::VolatileStore:
      store(r, Touch::VolatileStore);
      return false;
    case Operation::ShuffleUp:
    case Operation::ShuffleDown:
    case Operation::ShuffleXor:
    case Operation::ShuffleIndex:
      result = shuffle(r);
      return true;
    case Operation::Ballot:
      result = ballot(r);
      return true;
    case Operation::FenceBlock:
      services->fence(r.where, false);
      return false;
    case Operation::FenceDevice:
    case Operation::FenceSystem:
      services->fence(r.where, true);
      return false;
    case Operation::BlockBarrier:
      services->barrier(r.where);
      return false;
    case Operation::WarpBarrier:
      services->exchange(r.word(0), 0, r.where, emulation::WarpWork::Synchronise);
      return false;
    default:
      result = calculate(r);
      return true;
  }
}

}  // namespace
}  // namespace triptych::cuda::plain

namespace plain = triptych::cuda::plain;

/// `registers`: by their numbers. The result is written there.
extern "C" void triptych_ptx_execute(const plain::PtxInstruction* code, std::uint64_t* registers) {
  plain::Running running = {*code, {}, {code->file, code->line, 1}};
  for (std::size_t i = 0; i < plain::kMostPtxOperands; ++i) {
    const auto value = code->values[i];
    running.values[i] = code->kinds[i] == plain::PtxKind::Register ? registers[value]
                        : code->kinds[i] == plain::PtxKind::Special
                            ? plain::special(static_cast<plain::PtxSpecial>(value))
                            : static_cast<std::uint64_t>(value);
  }
  std::uint64_t result = 0;
  if (!plain::execute(running, result)) return;
  const bool is_wide = code->bytes == 8 || code->operation == plain::PtxOperation::MultiplyWide;
  registers[code->values[0]] = is_wide ? result : result & 0xFFFFFFFF;
}

#if defined(__x86_64__)
// The call site has left 128 bytes below its stack pointer alone, and pushed rdi. rdi is now
// the address of the instruction.
asm(R"(
    .text
    .globl triptych_ptx
    .hidden triptych_ptx
    .type triptych_ptx, @function
triptych_ptx:
    pushfq
    pushq %r15
    pushq %r14
    pushq %r13
    pushq %r12
    pushq %r11
    pushq %r10
    pushq %r9
    pushq %r8
    pushq 80(%rsp)
    pushq %rsi
    pushq %rbp
    pushq $0
    pushq %rbx
    pushq %rdx
    pushq %rcx
    pushq %rax
    movq %rsp, %rsi
    triptych_call_beside_vectors triptych_ptx_execute
    popq %rax
    popq %rcx
    popq %rdx
    popq %rbx
    addq $8, %rsp
    popq %rbp
    popq %rsi
    popq 80(%rsp)
    popq %r8
    popq %r9
    popq %r10
    popq %r11
    popq %r12
    popq %r13
    popq %r14
    popq %r15
    popfq
    ret
    .size triptych_ptx, .-triptych_ptx
)");
#endif
