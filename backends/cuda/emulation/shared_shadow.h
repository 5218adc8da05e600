// History of a block's shared memory: whether a word was written, who wrote and who read it since
// when. Bytes have a history of their own once a part of their word is accessed by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/emulation/access_order.h"
#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {

class SharedShadow {
 public:
  void begin_block() { ++block_; }
  /// Notes an access to a whole word where it is clear at once that nothing is wrong with it.
  bool note_at_once(AccessOrder& order, Access access, std::size_t offset,
                    const AccessOrder::Entry& now) {
    if (offset >= places_.size() || split_in_.data()[offset / kWordBytes] == block_) return false;
    Place& place = places_.data()[offset];
    if (access != Access::Store && place.written_in != block_) return false;
    if (!order.note_at_once(place.last, now)) return false;
    place.written_in = block_;
    return true;
  }
  /// Fails the running thread with OutOfBounds or Race, or suspects it of Uninitialised.
  void access(AccessOrder& order, const Manner& manner, std::size_t offset, unsigned bytes,
              const Location& where);
  /// An asynchronous copy begins. It stores at some time from now on, and has written nothing yet.
  void begin_copy(AccessOrder& order, std::size_t offset, unsigned bytes, const Location& where);

 private:
  static constexpr std::size_t kWordBytes = 4;
  /// A byte, or a whole word.
  struct Place {
    std::uint64_t written_in = 0;  ///< number of the block
    AccessOrder::Cell last;
  };
  struct Visit;

  void split(AccessOrder& order, std::size_t word);
  void make_places(std::size_t bytes);
  void visit_places(const Visit& visit);
  void access(const Visit& visit, Place& place, std::size_t bytes);

  std::vector<Place> places_;            ///< by byte. Of a whole word only the first one is used
  std::vector<std::uint64_t> split_in_;  ///< by word: number of the block in which it was split
  std::uint64_t block_ = 0;
};

}  // namespace triptych::cuda::emulation
