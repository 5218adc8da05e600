// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/shared_shadow.h"

#include <fmt/core.h>

namespace triptych::cuda::emulation {
namespace {

constexpr std::uint16_t kSeveral = 0xFFFF;

}  // namespace

void SharedShadow::begin_block(unsigned threads) {
  ++block_;
  ++epoch_;
  warp_epochs_.assign((threads + kWarp - 1) / kWarp, 0);
}

/// True when the earlier access is another thread's, with nothing between that orders the two.
bool SharedShadow::conflicts(const Stamp& earlier, unsigned thread) const {
  if (earlier.epoch != epoch_ || earlier.thread == thread) return false;
  const auto warp = thread / kWarp;
  return earlier.warp != warp || earlier.warp_epoch == warp_epochs_[warp];
}

void SharedShadow::access(Access access, std::size_t offset, unsigned bytes,
                          const Location& where) {
  Block& block = Block::current();
  const auto thread = block.thread();
  if (offset + bytes > block.shared().size()) {
    block.fail(FaultKind::OutOfBounds, where,
               fmt::format("byte {} of {} bytes of shared memory", offset, block.shared().size()));
  }
  const auto warp = thread / kWarp;
  const Stamp now = {epoch_, warp_epochs_[warp], static_cast<std::uint16_t>(warp),
                     static_cast<std::uint16_t>(thread), where.line()};
  for (Byte* byte = &bytes_[offset]; byte != &bytes_[offset] + bytes; ++byte) {
    if (access == Access::Load && byte->written_in != block_) {
      block.suspect(FaultKind::Uninitialised, where,
                    fmt::format("byte {} was not written in this block", offset));
    }
    const Stamp* other = conflicts(byte->write, thread) ? &byte->write : nullptr;
    if (access == Access::Store && conflicts(byte->read, thread)) other = &byte->read;
    if (other != nullptr) {
      block.fail(
          FaultKind::Race, where,
          fmt::format("another thread {} byte {} of shared memory at line {} with no barrier "
                      "between",
                      other == &byte->write ? "writes" : "reads", offset, other->line));
    }
    if (access == Access::Store) {
      byte->written_in = block_;
      byte->write = now;
    } else {
      const bool shared = conflicts(byte->read, thread);
      const bool others = shared && byte->read.warp != warp;
      byte->read = now;
      if (shared) byte->read.thread = kSeveral;
      if (others) byte->read.warp = kSeveral;
    }
  }
}

}  // namespace triptych::cuda::emulation
