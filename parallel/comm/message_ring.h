// Message buffers of one size that are used in turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "parallel/comm/message_memory.h"

namespace triptych::parallel {

class MessageRing {
 public:
  struct Slot {
    std::unique_ptr<MessageBuffer> buffer;
    /// Number of the message or collective that last used it, for whoever must wait for its end.
    std::optional<std::uint64_t> used;
  };

  /// Buffers of `bytes` in `memory`, which outlives the ring. None yet, and never more than `most`.
  MessageRing(MessageMemory& memory, std::size_t bytes, std::size_t most);

  /// Reserves space for one more user: a buffer while there are fewer than `most`. Returns the
  /// bytes added.
  std::size_t add_user();
  /// The buffer that has not been used for longest. Stays where it is.
  Slot& next();

 private:
  MessageMemory& memory_;
  std::size_t bytes_, most_;
  std::size_t next_ = 0;
  std::vector<Slot> slots_;  ///< reserved, so that none moves
};

}  // namespace triptych::parallel
