// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/async_units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {
namespace {

constexpr int kRegisterFile = 65536;           ///< of a multiprocessor
constexpr std::uint32_t kPoison = 0x7FFB4DAD;  ///< a NaN that no computation makes
constexpr std::uint16_t kPoisonElement = 0xFFFF;

int launched_registers(unsigned threads) {
  const int each = kRegisterFile / static_cast<int>(threads);
  return std::min(each, 255) / 8 * 8;
}

SharedRange rows_at(std::size_t offset, int rows) {
  return {offset, static_cast<std::size_t>(rows) * kTileRowBytes};
}

/// Where piece `piece` of the row at `offset` lies: the hardware's swizzle is one of addresses.
std::size_t place_of(std::size_t offset, std::size_t piece) {
  return offset + (piece ^ (offset / kTileRowBytes) % 8) * 16;
}

void land(const BoxCopy& copy, std::size_t offset) {
  const TensorMap& from = copy.from;
  for (int r = 0; r < from.rows(); ++r) {
    const auto* const row = from.row({copy.at[1], copy.at[2], copy.at[3]}, r);
    const std::size_t first = static_cast<std::size_t>(r) * kTileRowBytes;
    for (int x = 0; x < from.box[0]; ++x) {
      const auto column = std::int64_t{copy.at[0]} + x;
      const bool inside = row != nullptr && column >= 0 && column < from.sizes[0];
      const BFloat16 value = inside ? row[column] : BFloat16();
      const auto to = place_of(offset + first, static_cast<std::size_t>(x) / 8) - offset +
                      static_cast<std::size_t>(x) % 8 * sizeof(BFloat16);
      std::memcpy(copy.to + to, &value, sizeof(value));
    }
  }
}

}  // namespace

const BFloat16* TensorMap::row(const int (&at)[3], int r) const {
  const std::int64_t y = at[0] + r % box[1], z = at[1] + r / box[1] % box[2];
  const std::int64_t n = at[2] + r / box[1] / box[2];
  const bool inside = y >= 0 && y < sizes[1] && z >= 0 && z < sizes[2] && n >= 0 && n < sizes[3];
  return inside ? data + ((n * sizes[2] + z) * sizes[1] + y) * sizes[0] : nullptr;
}

TensorMap encode_tensor_map(const BFloat16* data, const std::int64_t (&sizes)[4],
                            const int (&box)[4]) {
  const auto refuse = [&](const std::string& why) {
    throw DeviceError(
        fmt::format("the copy engine takes no tensor of {} bfloat16, innermost first, "
                    "in boxes of {}: {}",
                    fmt::join(sizes, " x "), fmt::join(box, " x "), why));
  };
  if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) refuse("it starts at no multiple of 16");
  std::int64_t stride = sizeof(BFloat16);
  for (int axis = 0; axis < 4; ++axis) {
    if (sizes[axis] < 1 || sizes[axis] > std::int64_t{1} << 32) {
      refuse(fmt::format("axis {} has not 1 to 2^32 elements", axis));
    }
    if (box[axis] < 1 || box[axis] > 256) {
      refuse(fmt::format("axis {} of the box has not 1 to 256 elements", axis));
    }
    stride *= sizes[axis];
    if (axis < 3 && (stride % 16 != 0 || stride >= std::int64_t{1} << 40)) {
      refuse(fmt::format("a step of {} bytes along axis {} is no multiple of 16 below 2^40", stride,
                         axis + 1));
    }
  }
  const int row = box[0] * static_cast<int>(sizeof(BFloat16));
  if (row != kTileRowBytes) {
    refuse(fmt::format("a row of {} bytes, where the 128-byte swizzle has 128", row));
  }
  return {data, {sizes[0], sizes[1], sizes[2], sizes[3]}, {box[0], box[1], box[2], box[3]}};
}

AsyncUnits& async_units() { return Block::current().units(); }

std::int64_t AsyncUnits::Barrier::pending_bytes() const {
  std::int64_t sum = 0;
  for (const PendingCopy& pending : copies) sum += pending.copy.bytes();
  return sum;
}

void AsyncUnits::begin_block(unsigned threads, OperandReads operands, bool checked) {
  blocks_met_ = 0;
  operands_ = operands;
  checked_ = checked;
  free_registers_ = 0;
  barriers_.clear();
  barriers_.reserve(OrderWatch::kMostBarriers);
  threads_.assign(threads, {});
  for (Thread& thread : threads_) thread.registers = launched_registers(threads);
  warpgroups_.assign((threads + kWarpgroup - 1) / kWarpgroup, {});
  if (checked_) watch_.begin_block(threads);
}

void AsyncUnits::block_met() {
  ++blocks_met_;
  if (checked_) watch_.block_met();
}

void AsyncUnits::warp_met(unsigned warp, std::uint32_t mask) {
  if (checked_) watch_.warp_met(warp, mask);
}

AsyncUnits::Thread& AsyncUnits::running() { return threads_[block_.thread()]; }

void AsyncUnits::thread_ended(bool last) {
  const Thread& thread = running();
  if (!thread.products.empty()) {
    block_.fail(FaultKind::UnderWay, thread.products.back().where,
                "the thread ends, and has not waited for this product");
  }
  if (!last) return;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto all = warpgroups_[i / kWarpgroup].started;
    if (threads_[i].started == all) continue;
    block_.fail(FaultKind::MissingLane, block_.last_place(),
                fmt::format("thread {} has started {} products of its warpgroup's {}", i,
                            threads_[i].started, all));
  }
  for (const Barrier& barrier : barriers_) {
    if (barrier.copies.empty()) continue;
    block_.fail(FaultKind::UnderWay, barrier.copies.front().where,
                "the block ends, and no thread has waited for this copy");
  }
}

std::size_t AsyncUnits::offset_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - block_.shared().data());
}

// Barriers.

void AsyncUnits::begin(std::uint64_t& word, int arrivals, const Location& where) {
  const OutsideKernel outside;
  if (barriers_.size() == OrderWatch::kMostBarriers) {
    block_.fail(FaultKind::OutOfBounds, where, "more barriers than the emulation keeps");
  }
  for (const Barrier& barrier : barriers_) {
    if (barrier.word != &word) continue;
    block_.fail(FaultKind::Phase, where, "the barrier is begun a second time");
  }
  word = barriers_.size();
  barriers_.emplace_back();
  Barrier& barrier = barriers_.back();
  barrier.word = &word;
  barrier.arrivals = barrier.missing = arrivals;
  barrier.begun_by = block_.thread();
  barrier.begun_in = blocks_met_;
}

void AsyncUnits::publish() {
  const OutsideKernel outside;
  for (Barrier& barrier : barriers_) {
    if (barrier.begun_by == block_.thread()) barrier.published = true;
  }
}

AsyncUnits::Barrier& AsyncUnits::barrier_of(const std::uint64_t& word, const Location& where) {
  if (word >= barriers_.size() || barriers_[word].word != &word) {
    block_.fail(FaultKind::Uninitialised, where, "the barrier was not begun");
  }
  Barrier& barrier = barriers_[word];
  if (barrier.begun_by != block_.thread() && barrier.begun_in == blocks_met_) {
    block_.fail(FaultKind::Race, where,
                fmt::format("thread {} has begun the barrier with no barrier of the block between",
                            barrier.begun_by));
  }
  return barrier;
}

void AsyncUnits::end_phase(Barrier& barrier) {
  for (const PendingCopy& pending : barrier.copies) {
    land(pending.copy, offset_of(pending.copy.to));
  }
  barrier.copies.clear();
  barrier.missing = barrier.arrivals;
  barrier.expected = 0;
  barrier.parity ^= 1U;
  if (checked_) watch_.phase_over(index_of(barrier));
  block_.signal();
}

/// Ends the phase when nothing is missing. Copies land no earlier than a thread waits for them.
void AsyncUnits::settle(Barrier& barrier, const Location& where) {
  if (barrier.missing > 0) return;
  const auto pending = barrier.pending_bytes();
  if (pending > barrier.expected) {
    block_.fail(
        FaultKind::Phase, where,
        fmt::format("copies bring {} bytes to a phase that expects {}", pending, barrier.expected));
  }
  if (pending < barrier.expected) return;
  if (pending == 0) {
    end_phase(barrier);
  } else {
    block_.signal();
  }
}

void AsyncUnits::arrive_at(Barrier& barrier, const Location& where) {
  if (barrier.missing == 0 && barrier.can_end()) end_phase(barrier);
  if (barrier.missing == 0) {
    block_.fail(FaultKind::Phase, where,
                fmt::format("one arrival more than the {} of a phase, whose bytes have not come",
                            barrier.arrivals));
  }
  if (checked_) watch_.arrived(block_.thread(), index_of(barrier));
  --barrier.missing;
}

void AsyncUnits::expect(std::uint64_t& word, int bytes, const Location& where) {
  const OutsideKernel outside;
  Barrier& barrier = barrier_of(word, where);
  arrive_at(barrier, where);
  barrier.expected += bytes;
  settle(barrier, where);
}

void AsyncUnits::arrive(std::uint64_t& word, const Location& where) {
  const OutsideKernel outside;
  Barrier& barrier = barrier_of(word, where);
  arrive_at(barrier, where);
  settle(barrier, where);
}

void AsyncUnits::come(std::uint64_t& word, int bytes, const Location& where) {
  const OutsideKernel outside;
  Barrier& barrier = barrier_of(word, where);
  barrier.expected -= bytes;
  settle(barrier, where);
}

void AsyncUnits::wait(std::uint64_t& word, unsigned parity, const Location& where) {
  const OutsideKernel outside;
  block_.step(where);
  Barrier& barrier = barrier_of(word, where);
  Thread& thread = running();
  while (barrier.parity == parity) {
    if (barrier.can_end()) {
      end_phase(barrier);
      break;
    }
    thread.waits_for = index_of(barrier);
    block_.wait_for_signal(where);
  }
  if (checked_) watch_.waited(block_.thread(), index_of(barrier));
}

std::string AsyncUnits::awaited_by(unsigned thread) const {
  const auto index = threads_[thread].waits_for;
  if (index == kRegisters) return "waits for registers that nobody leaves";
  const Barrier& barrier = barriers_[index];
  return fmt::format(
      "waits for a phase that nobody completes: {} of {} arrivals and {} bytes are missing",
      barrier.missing, barrier.arrivals, barrier.expected - barrier.pending_bytes());
}

void AsyncUnits::copy(const BoxCopy& copy, std::uint64_t& word, const Location& where) {
  const OutsideKernel outside;
  Barrier& barrier = barrier_of(word, where);
  if (!barrier.published) {
    block_.fail(FaultKind::Phase, where,
                "the copy engine does not know the barrier: publish_barriers() was not called");
  }
  if (barrier.missing == 0 && barrier.can_end()) end_phase(barrier);
  const auto offset = offset_of(copy.to);
  if (checked_) {
    watch_.copy_started(block_, rows_at(offset, copy.from.rows()), index_of(barrier), where);
  }
  auto* const elements = reinterpret_cast<std::uint16_t*>(copy.to);
  std::fill_n(elements, copy.bytes() / 2, kPoisonElement);
  barrier.copies.push_back({copy, where});
  settle(barrier, where);
}

// Products.

void AsyncUnits::fence() { running().fenced = true; }

void AsyncUnits::check_operands(const TileProduct& product, const Location& where) {
  for (const auto* rows : {product.a, product.b}) {
    if (offset_of(rows) % kSwizzleBytes == 0) continue;
    block_.fail(FaultKind::Misaligned, where,
                fmt::format("an operand starts at byte {} of shared memory; the 128-byte swizzle "
                            "repeats every {}",
                            offset_of(rows), kSwizzleBytes));
  }
  if (!checked_) return;
  watch_.product_started(block_, rows_at(offset_of(product.a), TileProduct::kRowsA), where);
  watch_.product_started(block_, rows_at(offset_of(product.b), TileProduct::kRowsB), where);
}

/// All threads of a warpgroup start the same products in the same order.
void AsyncUnits::agree(const TileProduct& product, const Location& where) {
  const auto number = block_.thread() / kWarpgroup;
  Warpgroup& group = warpgroups_[number];
  const auto mine = running().started++;
  if (mine >= group.started) {
    group.operands[group.started++ % kRemembered] = {product.a, product.b};
    return;
  }
  const Operands& others = group.operands[mine % kRemembered];
  if (group.started - mine > kRemembered) return;
  if (others.a == product.a && others.b == product.b) return;
  block_.fail(FaultKind::MissingLane, where,
              fmt::format("the threads of warpgroup {} start different products", number));
}

void AsyncUnits::check_untouched(const Sums& sums, const Location& where) {
  for (int i = 0; i < TileProduct::kSums; ++i) {
    if (std::bit_cast<std::uint32_t>(sums.registers[i]) == kPoison) continue;
    block_.fail(FaultKind::UnderWay, where,
                "sums were written while a product that adds to them was under way");
  }
}

AsyncUnits::Sums& AsyncUnits::sums_of(float* registers, const Location& where) {
  Thread& thread = running();
  for (Sums& sums : thread.sums) {
    if (sums.registers != registers) continue;
    check_untouched(sums, where);
    return sums;
  }
  if (!thread.fenced) {
    block_.fail(FaultKind::UnderWay, where,
                "the product adds to registers that no fence_products() gave to it");
  }
  thread.sums.emplace_back();
  Sums& sums = thread.sums.back();
  sums.registers = registers;
  std::copy_n(registers, TileProduct::kSums, sums.values);
  std::fill_n(registers, TileProduct::kSums, std::bit_cast<float>(kPoison));
  return sums;
}

void AsyncUnits::multiply(const TileProduct& product, const Location& where) {
  const OutsideKernel outside;
  agree(product, where);
  check_operands(product, where);
  Sums& sums = sums_of(product.sums, where);
  Thread& thread = running();
  thread.products.push_back({product, thread.committed, where});
  if (operands_ == OperandReads::Earliest) product.add(product, block_.thread(), sums.values);
}

void AsyncUnits::finish(const Started& started) {
  const TileProduct& product = started.product;
  const auto thread = block_.thread();
  if (operands_ == OperandReads::Latest) {
    product.add(product, thread, sums_of(product.sums, started.where).values);
  }
  if (!checked_) return;
  watch_.product_ended(thread, rows_at(offset_of(product.a), TileProduct::kRowsA));
  watch_.product_ended(thread, rows_at(offset_of(product.b), TileProduct::kRowsB));
}

/// Writes the registers of all sums that no product adds to any more.
void AsyncUnits::give_back(const Location& where) {
  Thread& thread = running();
  const auto busy = [&](const Sums& sums) {
    return std::ranges::any_of(thread.products, [&](const Started& started) {
      return started.product.sums == sums.registers;
    });
  };
  for (const Sums& sums : thread.sums) {
    check_untouched(sums, where);
    if (busy(sums)) continue;
    std::copy_n(sums.values, TileProduct::kSums, sums.registers);
    thread.fenced = false;
  }
  std::erase_if(thread.sums, [&](const Sums& sums) { return !busy(sums); });
}

void AsyncUnits::wait_products(unsigned pending, const Location& where) {
  const OutsideKernel outside;
  block_.step(where);
  Thread& thread = running();
  auto& products = thread.products;
  std::size_t done = 0;
  while (done < products.size() && products[done].group + pending < thread.committed) {
    finish(products[done++]);
  }
  products.erase(products.begin(), products.begin() + static_cast<std::ptrdiff_t>(done));
  if (checked_) {
    for (const Started& left : products) {
      const TileProduct& product = left.product;
      watch_.product_goes_on(block_.thread(), rows_at(offset_of(product.a), TileProduct::kRowsA));
      watch_.product_goes_on(block_.thread(), rows_at(offset_of(product.b), TileProduct::kRowsB));
    }
  }
  give_back(where);
}

// Registers: a warpgroup gets no more than others have left.

void AsyncUnits::take_registers(int count, const Location& where) {
  const OutsideKernel outside;
  Thread& thread = running();
  thread.waits_for = kRegisters;
  while (free_registers_ < count - thread.registers) block_.wait_for_signal(where);
  free_registers_ -= count - thread.registers;
  thread.registers = count;
}

void AsyncUnits::leave_registers(int count, const Location& where) {
  const OutsideKernel outside;
  Thread& thread = running();
  if (count > thread.registers) {
    block_.fail(FaultKind::OutOfBounds, where,
                fmt::format("a thread of {} registers is to keep {}", thread.registers, count));
  }
  free_registers_ += thread.registers - count;
  thread.registers = count;
  block_.signal();
}

}  // namespace triptych::cuda::emulation
