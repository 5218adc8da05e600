// operator new and delete of the program: all objects, texts and vectors count against the
// memory budget, those of the C++ libraries included. Only the program has them: a Python process
// belongs to others.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/base/memory_budget.h"

namespace {

using namespace triptych;

/// Small blocks may exceed the limit by this much: the program still needs some to report it.
constexpr std::size_t kSmallBlock = 4096;
constexpr std::size_t kReserve = std::size_t{4} << 20;

bool may_exceed(std::size_t bytes) {
  if (std::uncaught_exceptions() > 0) return true;  // an error is on its way out
  const auto& budget = memory_budget();
  return bytes <= kSmallBlock && budget.in_use() < budget.limit() + kReserve;
}

/// nullptr when the system has none.
void* take(std::size_t bytes, std::size_t alignment = 0) {
  if (void* block = allocate_counted(bytes, alignment)) return block;
  if (may_exceed(bytes)) return allocate_anyway(bytes, alignment);
  if (memory_budget().has_room_for(bytes)) return nullptr;
  throw MemoryLimitReached(memory_budget().refusal(bytes, "the next step"));
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* block = take(bytes)) return block;
  throw std::bad_alloc();
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (void* block = take(bytes, static_cast<std::size_t>(alignment))) return block;
  throw std::bad_alloc();
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return may_exceed(bytes) ? allocate_anyway(bytes) : allocate_counted(bytes);
}

void operator delete(void* memory) noexcept { free_counted(memory); }
void operator delete(void* memory, std::size_t) noexcept { free_counted(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { free_counted(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free_counted(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { free_counted(memory); }
