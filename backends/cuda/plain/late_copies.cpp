// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/late_copies.h"

#include <deque>
#include <map>
#include <utility>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/recorder.h"
#include "backends/cuda/plain/watch.h"

namespace triptych::cuda::plain {
namespace {

struct Copies {
  struct Pending {
    LateCopy copy;
    unsigned group;
  };
  std::deque<Pending> pending;
  unsigned committed = 0;
};

/// By block and thread: a block runs on one thread of the processor. Empty for most kernels.
thread_local std::map<std::pair<const emulation::Block*, unsigned>, Copies> copies;

std::pair<const emulation::Block*, unsigned> key() {
  const auto& block = emulation::Block::current();
  return {&block, block.thread()};
}

/// Owns nothing, because an access may end the thread.
void run(const LateCopy& copy) {
  const auto& services = watch_services();
  const auto* from = static_cast<const std::byte*>(copy.from);
  // Copies a part of the size in the pieces that it allows.
  for (unsigned at = 0; at < copy.taken;) {
    unsigned piece = copy.bytes;
    while (piece > copy.taken - at || at % piece != 0) piece /= 2;
    services.touch_at(Touch::Load, from + at, piece, copy.where);
    at += piece;
  }
  services.touch_at(Touch::Store, copy.to, copy.bytes, copy.where);
  for (unsigned at = 0; at < copy.bytes; ++at) {
    copy.to[at] = at < copy.taken ? from[at] : std::byte{0};
  }
}

}  // namespace

/// A GPU may copy at once, so the bytes are taken from now on.
void copy_late(const LateCopy& copy) {
  if (auto* recorder = emulation::current_recorder) {
    recorder->begin_copy(copy.to, copy.bytes, copy.where);
  }
  auto& own = copies[key()];
  own.pending.push_back({copy, own.committed});
}

void commit_late_copies() { ++copies[key()].committed; }

void await_late_copies(unsigned pending) {
  const auto found = copies.find(key());
  if (found == copies.end()) return;
  auto& own = found->second;
  while (!own.pending.empty() && own.pending.front().group + pending < own.committed) {
    const auto copy = own.pending.front().copy;
    own.pending.pop_front();
    run(copy);
  }
}

void forget_late_copies() {
  if (!copies.empty()) copies.erase(key());
}

}  // namespace triptych::cuda::plain
