// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/shared_shadow.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace triptych::cuda::emulation {

void SharedShadow::access(const AccessOrder& order, Access access, std::size_t offset,
                          unsigned bytes, const Location& where, bool relaxed) {
  Block& block = Block::current();
  if (offset + bytes > block.shared().size()) {
    block.fail(FaultKind::OutOfBounds, where,
               fmt::format("byte {} of {} bytes of shared memory", offset, block.shared().size()));
  }
  const auto name = [&](std::size_t at) {
    return block.describe(reinterpret_cast<std::uintptr_t>(block.shared().data() + at),
                          fmt::format("byte {} of shared memory", at));
  };
  const auto now = order.now(block.thread(), where.line(), relaxed);
  for (Byte* byte = &bytes_[offset]; byte != &bytes_[offset] + bytes; ++byte) {
    if (access != Access::Store && byte->written_in != block_) {
      block.suspect(FaultKind::Uninitialised, where,
                    fmt::format("{} was not written in this block", name(offset)));
    }
    if (const auto* other = order.raced(byte->last, access, now); other != nullptr) {
      std::string what;
      what = fmt::format("another thread {} {} at line {} with no barrier between",
                         other == &byte->last.write ? "writes" : "reads", name(offset),
                         static_cast<unsigned>(other->line));
      block.fail(FaultKind::Race, where, std::move(what));
    }
    order.note(byte->last, access, now);
    if (access != Access::Load) byte->written_in = block_;
  }
}

}  // namespace triptych::cuda::emulation
