// Executes inline PTX: the build calls triptych_ptx in the place of each `asm`. Linked with
// libraries of kernels that have such instructions.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/ptx.h"

#include <bit>
#include <chrono>
#include <cstdarg>

#include "backends/cuda/plain/ptx_running.h"

/// Any address in shared memory: the program defines it.
extern "C" thread_local std::byte triptych_dynamic_shared;

namespace triptych::cuda::plain {
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

}  // namespace

std::uint64_t RunningPtx::value(std::size_t i) const {
  if (i >= count()) return 0;
  const auto& operand = operands[i];
  const auto at = static_cast<std::size_t>(operand.value);
  switch (operand.kind) {
    case PtxKind::Slot:
      return slots[at] + static_cast<std::uint64_t>(operand.offset);
    case PtxKind::Negated:
      return slots[at] == 0 ? 1 : 0;
    case PtxKind::Special:
      return special(static_cast<PtxSpecial>(operand.value));
    case PtxKind::Number:
    case PtxKind::Nothing:
      break;
  }
  return static_cast<std::uint64_t>(operand.value + operand.offset);
}

void RunningPtx::set(std::size_t i, std::uint64_t result) const {
  const bool is_wide = bits() == 64 || code.operation == Operation::MultiplyWide;
  put(i, is_wide ? result : result & ((std::uint64_t{1} << bits()) - 1));
}

const volatile std::byte* RunningPtx::address(std::size_t i, bool is_shared) const {
  auto at = value(i);
  if (is_shared && at >> 32 == 0) {
    const auto anchor = reinterpret_cast<std::uint64_t>(&triptych_dynamic_shared);
    at = anchor + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(
                      static_cast<std::uint32_t>(at) - static_cast<std::uint32_t>(anchor))});
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an operand
  return reinterpret_cast<const volatile std::byte*>(at);
}

namespace {

constexpr std::size_t kMostVector = 4;

/// Elements one after another, by volatile accesses: a call of memcpy would count once more.
std::uint64_t read_bytes(const volatile std::byte* from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  }
  return value;
}

const void* plain_pointer(const volatile std::byte* at) { return const_cast<std::byte*>(at); }

void load(const RunningPtx& r) {
  const auto bytes = static_cast<std::size_t>(r.code.bytes), last = r.count() - 1;
  const auto* from = r.address(last, (r.code.detail & kPtxShared) != 0);
  const bool is_volatile = (r.code.detail & kPtxVolatile) != 0;
  services->touch_at(is_volatile ? Touch::VolatileLoad : Touch::Load, plain_pointer(from),
                     bytes * last, r.where);
  std::uint64_t values[kMostVector];
  for (std::size_t i = 0; i < last; ++i) values[i] = read_bytes(from + i * bytes, bytes);
  // A narrow value is extended to the register.
  for (std::size_t i = 0; i < last; ++i) {
    const auto extended = static_cast<std::uint64_t>(r.wide(values[i]));
    r.put(i, bytes < 4 ? extended & 0xFFFFFFFF : values[i]);
  }
}

void store(const RunningPtx& r) {
  const auto bytes = static_cast<std::size_t>(r.code.bytes), count = r.count() - 1;
  auto* to = const_cast<volatile std::byte*>(r.address(0, (r.code.detail & kPtxShared) != 0));
  const bool is_volatile = (r.code.detail & kPtxVolatile) != 0;
  services->touch_at(is_volatile ? Touch::VolatileStore : Touch::Store, plain_pointer(to),
                     bytes * count, r.where);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = r.value(i + 1);
    for (std::size_t k = 0; k < bytes; ++k)
      to[i * bytes + k] = static_cast<std::byte>(value >> 8 * k);
  }
}

/// The value of another lane (PTX manual, shfl.sync): d, a, b, c, mask.
std::uint32_t shuffle(const RunningPtx& r) {
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
std::uint32_t ballot(const RunningPtx& r) {
  const auto mask = r.word(2);
  services->exchange(mask, r.word(1) != 0, r.where, emulation::WarpWork::Exchange);
  std::uint32_t votes = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    votes |= static_cast<std::uint32_t>(services->exchanged(mask, lane, r.where)) << lane;
  }
  return votes;
}

void run_copy(const RunningPtx& r) {
  const auto bytes = static_cast<unsigned>(r.value(2)), taken = r.word(3);
  if (taken > bytes) {
    services->fail("the source size of cp.async is larger than its size", r.where);
    return;
  }
  auto* to = const_cast<std::byte*>(r.address(0, true));
  services->copy_late({to, plain_pointer(r.address(1, false)), bytes, taken, r.where});
}

/// Instructions that meet other threads, or memory. False: neither.
bool run_action(const RunningPtx& r) {
  switch (r.code.operation) {
    case Operation::Load:
      load(r);
      return true;
    case Operation::Store:
      store(r);
      return true;
    case Operation::CopyLate:
      run_copy(r);
      return true;
    case Operation::CommitCopies:
      services->commit_copies();
      return true;
    case Operation::AwaitCopies:
      services->await_copies(r.word(0));
      return true;
    case Operation::AwaitAllCopies:
      services->commit_copies();
      services->await_copies(0);
      return true;
    case Operation::FenceBlock:
      services->fence(r.where, false);
      return true;
    case Operation::FenceDevice:
    case Operation::FenceSystem:
      services->fence(r.where, true);
      return true;
    case Operation::BlockBarrier:
      services->barrier(r.where);
      return true;
    case Operation::WarpBarrier:
      services->exchange(r.word(0), 0, r.where, emulation::WarpWork::Synchronise);
      return true;
    case Operation::LoadMatrices:
    case Operation::StoreMatrices:
    case Operation::MultiplyMatrices:
      run_matrices(r);
      return true;
    default:
      return false;
  }
}

/// A predicate in front of an instruction.
bool holds(const PtxOperand& guard, const std::uint64_t* slots) {
  const auto at = static_cast<std::size_t>(guard.value);
  return guard.kind == PtxKind::Slot      ? slots[at] != 0
         : guard.kind == PtxKind::Negated ? slots[at] == 0
                                          : true;
}

void run(const RunningPtx& r) {
  if (run_action(r)) return;
  switch (r.code.operation) {
    case Operation::ShuffleUp:
    case Operation::ShuffleDown:
    case Operation::ShuffleXor:
    case Operation::ShuffleIndex:
      return r.set(0, shuffle(r));
    case Operation::Ballot:
      return r.set(0, ballot(r));
    default:
      return run_values(r);
  }
}

}  // namespace
}  // namespace triptych::cuda::plain

namespace plain = triptych::cuda::plain;

/// Values of the first registers, which are the results of an `asm`.
struct PtxResults {
  std::uint64_t words[plain::kMostPtxResults];
};

/// `block`: a PtxBlock. The values of its arguments follow, 64 bits each.
extern "C" __attribute__((visibility("hidden"))) PtxResults triptych_ptx(std::uint64_t block, ...) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the build's code passes it in this way
  const auto& code = *reinterpret_cast<const plain::PtxBlock*>(block);
  const auto* words = reinterpret_cast<const std::int64_t*>(&code + 1);
  std::uint64_t slots[plain::kMostPtxSlots] = {};
  va_list arguments;
  va_start(arguments, block);
  for (std::int64_t i = 0; i < code.arguments; ++i)
    slots[*words++] = va_arg(arguments, std::uint64_t);
  va_end(arguments);
  for (std::int64_t i = 0; i < code.instructions; ++i) {
    const auto& instruction = *reinterpret_cast<const plain::PtxInstruction*>(words);
    const auto* operands = reinterpret_cast<const plain::PtxOperand*>(&instruction + 1);
    words = reinterpret_cast<const std::int64_t*>(operands + instruction.count);
    if (!plain::holds(instruction.guard, slots)) continue;
    plain::run({instruction,
                operands,
                slots,
                {code.file, static_cast<unsigned>(code.line), 1, static_cast<unsigned>(i)}});
  }
  PtxResults results;
  for (std::size_t i = 0; i < plain::kMostPtxResults; ++i) results.words[i] = slots[i];
  return results;
}
