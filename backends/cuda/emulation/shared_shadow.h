// History of every byte of a block's shared memory: whether it was written, who wrote and who read
// it since when.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/emulation/access_order.h"
#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {

class SharedShadow {
 public:
  SharedShadow() : bytes_(kMaxSharedBytes) {}

  void begin_block() { ++block_; }
  /// Fails the running thread with OutOfBounds or Race, or suspects it of Uninitialised.
  void access(AccessOrder& order, const Manner& manner, std::size_t offset, unsigned bytes,
              const Location& where);

 private:
  struct Byte {
    std::uint64_t written_in = 0;  ///< number of the block
    AccessOrder::Cell last;
  };

  std::vector<Byte> bytes_;
  std::uint64_t block_ = 0;
};

}  // namespace triptych::cuda::emulation
