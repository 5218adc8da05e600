// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace triptych::cuda::program {
namespace {

constexpr std::size_t kKept = 1024;  // freed allocations
constexpr std::uintptr_t kNear = std::uintptr_t{1} << 34;
constexpr std::size_t kUnit = 4;  // of content, where elements are not known

std::size_t unit_of(std::size_t element) {
  return element == 0 ? kUnit : std::min<std::size_t>(element, 16);
}

}  // namespace

Allocation::Allocation(MemoryKind of, std::size_t bytes, std::size_t element, std::string called)
    : kind(of),
      memory(std::in_place, bytes),
      range(memory->bytes()),
      element_bytes(element),
      name(std::move(called)),
      content(bytes, unit_of(element)) {}

Allocation::Allocation(MemoryKind of, std::span<std::byte> elsewhere, std::string called)
    : kind(of), range(elsewhere), name(std::move(called)), content(elsewhere.size(), kUnit) {}

void Allocation::open() {
  if (!std::exchange(is_closed, false)) return;
  mprotect(data(), bytes(), PROT_READ | PROT_WRITE);
}

void Allocation::close() {
  if (kind == MemoryKind::Registered) return;
  if (std::exchange(is_closed, true)) return;
  mprotect(data(), bytes(), PROT_NONE);
}

Allocation& Heap::allocate(MemoryKind kind, std::size_t bytes, std::size_t element,
                           std::string name, int device) {
  used_.push_back(std::make_unique<Allocation>(kind, bytes, element, std::move(name)));
  auto& allocation = *used_.back();
  allocation.device = device;
  used_bytes_[device] += bytes;
  if (kind == MemoryKind::Device) allocation.close();
  return allocation;
}

Allocation& Heap::reserve(std::size_t bytes, std::size_t element, std::string name) {
  reserved_.push_back(
      std::make_unique<Allocation>(MemoryKind::Device, bytes, element, std::move(name)));
  auto& allocation = *reserved_.back();
  allocation.is_of_graph = true;
  allocation.gone = "does not exist before its graph is launched";
  allocation.close();
  return allocation;
}

bool Heap::revive(Allocation& allocation) {
  const auto found =
      std::ranges::find_if(reserved_, [&](const auto& each) { return each.get() == &allocation; });
  if (found == reserved_.end()) return false;
  allocation.gone.clear();
  allocation.content = {allocation.bytes(), unit_of(allocation.element_bytes)};
  used_bytes_[allocation.device] += allocation.bytes();
  used_.push_back(std::move(*found));
  reserved_.erase(found);
  return true;
}

void Heap::free(Allocation& allocation, const std::string& place) {
  const auto found =
      std::ranges::find_if(used_, [&](const auto& each) { return each.get() == &allocation; });
  if (found == used_.end()) return;
  used_bytes_[allocation.device] -= allocation.bytes();
  allocation.close();
  madvise(allocation.data(), allocation.bytes(), MADV_DONTNEED);
  allocation.gone = "was freed at " + place;
  if (freed_.size() == kKept) freed_.erase(freed_.begin());
  (allocation.is_of_graph ? reserved_ : freed_).push_back(std::move(*found));
  used_.erase(found);
}

void Heap::add_registered(std::span<std::byte> range, std::string name) {
  used_.push_back(std::make_unique<Allocation>(MemoryKind::Registered, range, std::move(name)));
}

void Heap::add_mapped(std::span<std::byte> range, std::string name) {
  used_.push_back(std::make_unique<Allocation>(MemoryKind::Device, range, std::move(name)));
  used_.back()->is_closed = true;  // as it was reserved
  used_bytes_[used_.back()->device] += range.size();
}

void Heap::remove_registered(const Allocation& allocation) {
  std::erase_if(used_, [&](const auto& each) { return each.get() == &allocation; });
}

Allocation* Heap::find(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const auto* list : {&used_, &freed_, &reserved_}) {
    for (const auto& each : *list) {
      if (each->contains(at)) return each.get();
    }
  }
  return nullptr;
}

bool Heap::is_near(std::uintptr_t address) const {
  return std::ranges::any_of(used_, [&](const auto& each) {
    const auto begin = reinterpret_cast<std::uintptr_t>(each->data());
    return (address < begin ? begin - address : address - begin) < kNear;
  });
}

std::size_t Heap::used_bytes(int device) const {
  const auto found = used_bytes_.find(device);
  return found == used_bytes_.end() ? 0 : found->second;
}

std::vector<plain::DeviceArray> Heap::arrays(const Reach& reach) const {
  std::vector<plain::DeviceArray> list;
  list.reserve(used_.size());
  for (const auto& each : used_) {
    if (!reach(*each)) continue;
    // The host may write managed and pinned memory, unseen.
    auto* content = each->kind == MemoryKind::Device ? &each->content : nullptr;
    list.push_back({.name = each->name,
                    .data = each->data(),
                    .bytes = each->bytes(),
                    .element_bytes = each->element_bytes,
                    .is_undefined = content != nullptr,
                    .content = content,
                    .is_stored = &each->is_stored});
  }
  return list;
}

void Heap::begin_kernel(const Reach& reach) {
  for (const auto& each : used_) {
    if (reach(*each)) each->open();
  }
}

void Heap::end_kernel(const std::string& kernel) {
  for (const auto& each : used_) {
    if (each->is_stored && each->kind != MemoryKind::Device) each->writer = kernel;
    if (each->kind == MemoryKind::Device || each->is_stored) each->close();
  }
}

void Heap::synchronise() {
  for (const auto& each : used_) {
    each->is_stored = false;
    if (each->kind != MemoryKind::Device) each->open();
  }
}

}  // namespace triptych::cuda::program
