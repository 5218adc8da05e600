// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/global_shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/page_pool.h"

namespace triptych::cuda::emulation {
namespace {

constexpr auto kSeveral = PackedAccess::kSeveral, kRelaxed = PackedAccess::kRelaxed;

std::uint64_t block_in(std::uint64_t access) { return access >> PackedAccess::kBlockShift; }
std::uint64_t line_in(std::uint64_t access) {
  return access >> PackedAccess::kLineShift & 0xFFFFFF;
}
std::uint64_t bytes_in(std::uint64_t access) { return access & PackedAccess::kWholeWord; }

bool meet(std::uint64_t earlier, std::uint64_t mine) {
  return earlier != 0 && block_in(earlier) != block_in(mine) &&
         (bytes_in(earlier) & bytes_in(mine)) != 0;
}

bool races(std::uint64_t earlier, std::uint64_t mine) {
  return meet(earlier, mine) && (earlier & mine & kRelaxed) == 0;
}

std::uint64_t running_block() {
  return (std::uint64_t{blockIdx.z} * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

/// Knowledge after both. Where two blocks share a word, of the bytes that both used, or of the
/// later one.
std::uint64_t together(std::uint64_t before, std::uint64_t mine) {
  if (before == 0) return mine;
  const auto relaxed = before & mine & kRelaxed;
  if (block_in(before) == block_in(mine)) return (mine & ~kRelaxed) | relaxed | bytes_in(before);
  if (!meet(before, mine)) return mine;
  if (block_in(before) == kSeveral) return (before & ~kRelaxed) | relaxed;
  return kSeveral << PackedAccess::kBlockShift | relaxed |
         line_in(mine) << PackedAccess::kLineShift | (bytes_in(before) & bytes_in(mine));
}

/// Adds an access to those before it and returns them.
std::uint64_t note(std::atomic<std::uint64_t>& word, std::uint64_t mine, bool is_alone) {
  auto before = word.load();
  for (;;) {
    const auto after = together(before, mine);
    if (after == before) return before;
    if (is_alone) {
      word.store(after, std::memory_order_relaxed);
      return before;
    }
    if (word.compare_exchange_weak(before, after)) return before;
  }
}

}  // namespace

void GlobalShadow::begin_launch(bool is_alone) {
  ++launch_;
  is_alone_ = is_alone;
  clear();
}

void GlobalShadow::clear() {
  for (auto& [number, page] : pages_) PagePool<Page>::common().give(std::move(page));
  pages_.clear();
  fenced_.clear();
}

void GlobalShadow::fence(std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  fenced_.insert(block);
}

bool GlobalShadow::has_fenced(std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  return fenced_.contains(block);
}

bool GlobalShadow::any_has_fenced() {
  const std::lock_guard lock(mutex_);
  return !fenced_.empty();
}

GlobalShadow::Page& GlobalShadow::page(std::uintptr_t number) {
  const std::lock_guard lock(mutex_);
  auto& page = pages_[number];
  if (page == nullptr) page = PagePool<Page>::common().take();
  return *page;
}

GlobalShadow::Word& GlobalWindow::word_at(std::uintptr_t address) {
  const auto number = address / GlobalShadow::kPageBytes;
  Known& known = known_[number % known_.size()];
  if (known.number != number || known.launch != shadow_.launch()) {
    known = {number, shadow_.launch(), &shadow_.page(number)};
  }
  return (*known.page)[address % GlobalShadow::kPageBytes / 4];
}

void GlobalWindow::begin_block() { block_ = (running_block() + 1) << PackedAccess::kBlockShift; }

void GlobalWindow::fence() { shadow_.fence(block_in(block_)); }

void GlobalWindow::access(Access access, std::uintptr_t address, std::uintptr_t bytes,
                          const Location& where, bool relaxed) {
  const auto who = block_ | (relaxed ? kRelaxed : 0) | PackedAccess::line_bits(where.line());
  for (auto at = address / 4 * 4; at < address + bytes; at += 4) {
    const auto first = std::max(at, address) - at, last = std::min(at + 4, address + bytes) - at;
    const auto mine = who | ((1U << last) - (1U << first));
    GlobalShadow::Word& word = word_at(at);
    const bool store = access != Access::Load;
    // Noted before the other is looked at: of two at once, one sees the other.
    const auto before = note(store ? word.written : word.read, mine, shadow_.is_alone());
    const auto written = store ? before : word.written.load();
    const auto read = store ? word.read.load() : 0;
    const bool by_write = races(written, mine);
    if (!by_write && !races(read, mine)) continue;
    const auto other = by_write ? written : read;
    const auto block = block_in(other);
    if (block == kSeveral ? shadow_.any_has_fenced() : shadow_.has_fenced(block)) continue;
    std::string what;
    what =
        fmt::format("another block {} {} at line {}, and nothing orders the blocks of a launch",
                    by_write ? "writes" : "reads",
                    Block::current().describe(at, "this place of global memory"), line_in(other));
    const bool only_stores = access == Access::Store && by_write && !races(read, mine) &&
                             ((written | mine) & kRelaxed) == 0;
    Block::current().race({where,
                           std::move(what),
                           static_cast<unsigned>(line_in(other)),
                           {address, only_stores ? bytes : 0}});
  }
}

}  // namespace triptych::cuda::emulation
