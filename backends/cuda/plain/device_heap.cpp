// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/device_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/plain/launch.h"

namespace triptych::cuda::plain {
namespace {

constexpr std::size_t kAlignment = 16, kUnit = 4;
/// Addresses for each byte that may be in use.
constexpr std::size_t kReserve = 64;

std::size_t whole_bytes(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceHeap::DeviceHeap(std::size_t limit)
    : limit_(limit),
      memory_(std::make_unique<DeviceMemory>(limit * kReserve)),
      begin_(reinterpret_cast<std::uintptr_t>(memory_->bytes().data())),
      next_(begin_) {
  close();
}

DeviceHeap::~DeviceHeap() = default;

void* DeviceHeap::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = std::max<std::size_t>(bytes, 1);
  const auto whole = whole_bytes(bytes);
  const auto left = memory_->bytes().size() - (next_ - begin_);
  if (whole > limit_ || used_ > limit_ - whole || whole > left) return nullptr;
  pieces_.push_back({next_, bytes, ArrayContent(bytes, kUnit), false});
  if (is_whole_) pieces_.back().content.write_all();
  used_ += whole;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the heap
  void* result = reinterpret_cast<void*>(next_);
  // A gap, so that an index behind the end leads to none.
  next_ += whole + kAlignment;
  return result;
}

bool DeviceHeap::release(void* memory) {
  const std::lock_guard lock(mutex_);
  auto* piece = locate(reinterpret_cast<std::uintptr_t>(memory));
  if (piece == nullptr || piece->is_free) return false;
  if (piece->begin != reinterpret_cast<std::uintptr_t>(memory)) return false;
  piece->is_free = true;
  used_ -= whole_bytes(piece->bytes);
  return true;
}

DeviceHeap::Piece* DeviceHeap::find(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  return locate(address);
}

bool DeviceHeap::contains(std::uintptr_t address) const {
  return address - begin_ < memory_->bytes().size();
}

void DeviceHeap::write_all() {
  if (std::exchange(is_whole_, true)) return;
  for (auto& piece : pieces_) piece.content.write_all();
}

void DeviceHeap::open() const {
  mprotect(memory_->bytes().data(), memory_->bytes().size(), PROT_READ | PROT_WRITE);
}

void DeviceHeap::close() const {
  mprotect(memory_->bytes().data(), memory_->bytes().size(), PROT_NONE);
}

DeviceHeap::Piece* DeviceHeap::locate(std::uintptr_t address) {
  const auto behind = std::ranges::upper_bound(pieces_, address, {}, &Piece::begin);
  if (behind == pieces_.begin()) return nullptr;
  auto& piece = *std::prev(behind);
  return address - piece.begin < piece.bytes ? &piece : nullptr;
}

}  // namespace triptych::cuda::plain
