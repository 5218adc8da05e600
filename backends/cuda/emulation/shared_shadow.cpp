// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/shared_shadow.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace triptych::cuda::emulation {

void SharedShadow::access(AccessOrder& order, const Manner& manner, std::size_t offset,
                          unsigned bytes, const Location& where) {
  Block& block = Block::current();
  if (offset + bytes > block.shared().size()) {
    block.fail(FaultKind::OutOfBounds, where,
               fmt::format("byte {} of {} bytes of shared memory", offset, block.shared().size()));
  }
  const auto name = [&](std::size_t at) {
    return block.describe(reinterpret_cast<std::uintptr_t>(block.shared().data() + at),
                          fmt::format("byte {} of shared memory", at));
  };
  const auto thread = block.thread();
  const auto now = order.now(thread, where.line(), manner);
  for (Byte* byte = &bytes_[offset]; byte != &bytes_[offset] + bytes; ++byte) {
    if (manner.access != Access::Store && byte->written_in != block_) {
      block.read_undefined(where, fmt::format("{} was not written in this block", name(offset)));
    }
    if (const auto* other = order.access(byte->last, thread, now); other != nullptr) {
      std::string what;
      what = "another thread " + order.describe(*other, thread, now, name(offset));
      const bool only_stores =
          AccessOrder::is_plain_store(*other) && AccessOrder::is_plain_store(now);
      const auto address = reinterpret_cast<std::uintptr_t>(block.shared().data() + offset);
      block.race(where, std::move(what), {address, only_stores ? bytes : 0U});
    }
    if (manner.access != Access::Load) byte->written_in = block_;
  }
}

}  // namespace triptych::cuda::emulation
