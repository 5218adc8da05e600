// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/global_history.h"

#include <string>
#include <utility>

#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {

void GlobalHistory::Page::refine(AccessOrder& order) {
  if (granule == 1) return;
  granule = 1;
  std::vector<AccessOrder::Cell> bytes(kPageBytes);
  for (std::size_t i = 0; i < kPageBytes; ++i) bytes[i] = order.copy(cells[i / kWordBytes]);
  cells = std::move(bytes);
}

GlobalHistory::Page& GlobalHistory::page_of(std::uintptr_t address) {
  const auto number = address / kPageBytes;
  Known& known = known_[number % known_.size()];
  if (known.page == nullptr || known.number != number) known = {number, &pages_[number]};
  return *known.page;
}

void GlobalHistory::clear() {
  pages_.clear();
  known_ = {};
}

void GlobalHistory::access(AccessOrder& order, const Manner& manner, std::uintptr_t address,
                           std::uintptr_t bytes, const Location& where) {
  Block& block = Block::current();
  const auto thread = block.thread();
  const auto now = order.now(thread, where.line(), manner);
  const bool whole = address % kWordBytes == 0 && bytes % kWordBytes == 0;
  for (auto at = address; at < address + bytes;) {
    Page& page = page_of(at);
    if (!whole) page.refine(order);
    AccessOrder::Cell& cell = page.cells[at % kPageBytes / page.granule];
    if (const auto* other = order.access(cell, thread, now); other != nullptr) {
      std::string what;
      what = "another thread of the block " +
             order.describe(*other, thread, now, block.describe(at, "this place of global memory"));
      const bool only_stores =
          AccessOrder::is_plain_store(*other) && AccessOrder::is_plain_store(now);
      block.race(where, std::move(what), {address, only_stores ? bytes : 0});
    }
    at += page.granule;
  }
}

}  // namespace triptych::cuda::emulation
