// Memory that kernels allocate by malloc and new. Addresses are not used again as long as there is
// room, so that a use of freed memory is found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "backends/cuda/plain/array_content.h"

namespace triptych::cuda::plain {

class DeviceMemory;

class DeviceHeap {
 public:
  struct Piece {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    ArrayContent content;
    bool is_free = false;
  };

  /// At most `limit` bytes are in use at a time.
  explicit DeviceHeap(std::size_t limit);
  ~DeviceHeap();
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  /// nullptr: no memory is left. Threads may call these functions at the same time.
  void* allocate(std::size_t bytes);
  /// False: no allocation begins there, or it is free.
  bool release(void* memory);
  /// The piece with this address, in use or free. nullptr: none.
  Piece* find(std::uintptr_t address);
  bool contains(std::uintptr_t address) const;

  /// Kernels write unseen from now on, so all memory counts as written.
  void write_all();

  /// Between launches the memory is closed to the host.
  void open() const;
  void close() const;

 private:
  Piece* locate(std::uintptr_t address);

  std::size_t limit_, used_ = 0;
  bool is_whole_ = false;
  std::unique_ptr<DeviceMemory> memory_;
  std::uintptr_t begin_ = 0, next_ = 0;
  std::mutex mutex_;
  std::deque<Piece> pieces_;  ///< in ascending order of addresses
};

}  // namespace triptych::cuda::plain
