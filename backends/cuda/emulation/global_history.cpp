// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/global_history.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {

void GlobalHistory::Page::refine() {
  if (granule == 1) return;
  granule = 1;
  std::vector<AccessOrder::Cell> bytes(kPageBytes);
  for (std::size_t i = 0; i < kPageBytes; ++i) bytes[i] = cells[i / kWordBytes];
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

void GlobalHistory::access(const AccessOrder& order, Access access, std::uintptr_t address,
                           std::uintptr_t bytes, const Location& where, bool relaxed) {
  Block& block = Block::current();
  const auto now = order.now(block.thread(), where.line(), relaxed);
  const bool whole = address % kWordBytes == 0 && bytes % kWordBytes == 0;
  for (auto at = address; at < address + bytes;) {
    Page& page = page_of(at);
    if (!whole) page.refine();
    AccessOrder::Cell& cell = page.cells[at % kPageBytes / page.granule];
    if (const auto* other = order.raced(cell, access, now); other != nullptr) {
      std::string what;
      what = fmt::format("another thread of the block {} {} at line {} with no barrier between",
                         other == &cell.write ? "writes" : "reads",
                         block.describe(at, "this place of global memory"),
                         static_cast<unsigned>(other->line));
      block.fail(FaultKind::Race, where, std::move(what));
    }
    order.note(cell, access, now);
    at += page.granule;
  }
}

}  // namespace triptych::cuda::emulation
