// Mover of messages between the devices of ranks that are threads of one process. The threads
// themselves manage partners, deadlines and faults (thread_group.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "core/tensor/dtype.h"
#include "parallel/comm/message_memory.h"

namespace triptych::parallel {

struct RankPair {
  int from, to;
};

/// Calls come from the threads of all ranks. None of them waits. They throw CommError when the
/// links have failed or were aborted.
class DeviceLinks {
 public:
  virtual ~DeviceLinks() = default;

  virtual std::string_view name() const = 0;  ///< "nccl"
  virtual MessageMemory& memory(int rank) = 0;

  /// Begins to move `source`, in the memory of `from`, to `target`, in that of `to`, the rank of
  /// the calling thread. False: the links are busy, ask again.
  virtual bool try_move(int from, int to, std::span<std::byte> target,
                        std::span<const std::byte> source) = 0;
  /// Begins to replace one buffer per rank by the sum of all. False: as try_move.
  virtual bool try_all_reduce(std::span<const std::span<std::byte>> buffers, DType dtype) = 0;
  /// True when the last message towards that rank has arrived.
  virtual bool arrived(int rank) = 0;
  /// The message that was begun first of those that have not arrived, and keeps the others.
  virtual std::optional<RankPair> oldest_under_way() = 0;
  /// Ends pending messages, on all ranks. The links are of no more use.
  virtual void abort() = 0;
};

}  // namespace triptych::parallel
