// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/shared_shadow.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace triptych::cuda::emulation {

/// An access of a thread.
struct SharedShadow::Visit {
  AccessOrder& order;
  const Manner& manner;
  std::size_t offset = 0;
  unsigned bytes = 0;
  const Location& where;
  unsigned thread = 0;
  AccessOrder::Entry now;
  bool is_done = true;  ///< false: the store comes later

  std::string name() const {
    const Block& block = Block::current();
    return block.describe(reinterpret_cast<std::uintptr_t>(block.shared().data() + offset),
                          fmt::format("byte {} of shared memory", offset));
  }
  void report(const AccessOrder::Entry& other) const {
    const bool only_stores = AccessOrder::is_plain_store(other) && AccessOrder::is_plain_store(now);
    if (only_stores && !is_done) return;  // the values are compared when it stores
    Block& block = Block::current();
    std::string what;
    what = "another thread " + order.describe(other, thread, now, name());
    const auto address = reinterpret_cast<std::uintptr_t>(block.shared().data() + offset);
    block.race({where, std::move(what), other.line, {address, only_stores ? bytes : 0U}});
  }
};

/// The bytes of the word get the history of the word.
void SharedShadow::split(AccessOrder& order, std::size_t word) {
  if (split_in_[word] == block_) return;
  split_in_[word] = block_;
  Place* first = &places_[word * kWordBytes];
  for (std::size_t i = 1; i < kWordBytes; ++i) {
    first[i] = {first->written_in, order.copy(first->last)};
  }
}

/// One place of it, which holds so many bytes.
void SharedShadow::access(const Visit& visit, Place& place, std::size_t bytes) {
  for (; visit.manner.access != Access::Store && place.written_in != block_ && bytes > 0; --bytes) {
    Block::current().read_undefined(visit.where,
                                    fmt::format("{} was not written in this block", visit.name()));
  }
  const auto* other = visit.order.access(place.last, visit.thread, visit.now);
  if (other != nullptr) visit.report(*other);
  if (visit.manner.access != Access::Load && visit.is_done) place.written_in = block_;
}

void SharedShadow::make_places(std::size_t bytes) {
  if (places_.size() >= bytes) return;
  split_in_.resize(bytes / kWordBytes + 1);
  places_.resize(split_in_.size() * kWordBytes);
}

void SharedShadow::visit_places(const Visit& visit) {
  const auto end = visit.offset + visit.bytes;
  const bool whole = visit.offset % kWordBytes == 0 && visit.bytes % kWordBytes == 0;
  for (auto at = visit.offset; at < end;) {
    if (!whole) split(visit.order, at / kWordBytes);
    const bool is_word = split_in_[at / kWordBytes] != block_;
    access(visit, places_[at], is_word ? kWordBytes : 1);
    at += is_word ? kWordBytes : 1;
  }
}

void SharedShadow::access(AccessOrder& order, const Manner& manner, std::size_t offset,
                          unsigned bytes, const Location& where) {
  Block& block = Block::current();
  if (offset + bytes > block.shared().size()) {
    block.fail(FaultKind::OutOfBounds, where,
               fmt::format("byte {} of {} bytes of shared memory", offset, block.shared().size()));
  }
  make_places(block.shared().size());
  const auto thread = block.thread();
  visit_places(
      {order, manner, offset, bytes, where, thread, order.now(thread, where.line(), manner)});
}

void SharedShadow::begin_copy(AccessOrder& order, std::size_t offset, unsigned bytes,
                              const Location& where) {
  const Block& block = Block::current();
  make_places(block.shared().size());
  const Manner store = {Access::Store, Strength::Plain, true};
  const auto thread = block.thread();
  visit_places(
      {order, store, offset, bytes, where, thread, order.now(thread, where.line(), store), false});
}

}  // namespace triptych::cuda::emulation
