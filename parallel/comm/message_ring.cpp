// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/message_ring.h"

namespace triptych::parallel {

MessageRing::MessageRing(MessageMemory& memory, std::size_t bytes, std::size_t most)
    : memory_(memory), bytes_(bytes), most_(most) {
  slots_.reserve(most);
}

std::size_t MessageRing::add_user() {
  if (slots_.size() == most_) return 0;
  slots_.push_back({memory_.allocate(bytes_), std::nullopt});
  return bytes_;
}

MessageRing::Slot& MessageRing::next() { return slots_[next_++ % slots_.size()]; }

}  // namespace triptych::parallel
