// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <limits>

#if defined(__linux__)
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>
#endif

namespace triptych {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// Constant-initialised, as operator new counts before main().
constinit MemoryBudget budget;

#if defined(__linux__)

/// The number in a file of the kernel, or none when the file is absent or contains "max".
/// Allocates nothing.
std::size_t number_in(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return kUnlimited;
  char text[32];
  const auto count = ::read(file, text, sizeof text);
  ::close(file);
  std::size_t number = 0;
  if (count <= 0) return kUnlimited;
  const auto [end, error] = std::from_chars(text, text + count, number);
  return error == std::errc() && end != text ? number : kUnlimited;
}

/// Bytes of a block of malloc(), which are the same when it is freed.
std::size_t size_of(void* block) { return ::malloc_usable_size(block); }

#else

std::size_t size_of(void*) { return 0; }

#endif

std::size_t mebibytes(std::size_t bytes) { return (bytes >> 20) + (bytes % (1 << 20) != 0); }

}  // namespace

MemoryBudget& memory_budget() { return budget; }

std::size_t physical_memory() {
#if defined(__linux__)
  const auto pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  const auto machine = pages > 0 && page > 0
                           ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                           : kUnlimited;
  return std::min({machine, number_in("/sys/fs/cgroup/memory.max"),
                   number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
#else
  return kUnlimited;
#endif
}

void MemoryBudget::set_limit(std::size_t bytes) { limit_ = std::max<std::size_t>(bytes, 1); }

std::size_t MemoryBudget::limit() const {
  auto limit = limit_.load(std::memory_order_relaxed);
  if (limit == 0) limit_ = limit = physical_memory();
  return limit;
}

std::size_t MemoryBudget::left() const {
  const auto most = limit();
  return most - std::min(most, in_use());
}

bool MemoryBudget::has_room_for(std::size_t bytes) const noexcept {
  if (bytes <= left()) return true;
  has_refused_.store(true, std::memory_order_relaxed);
  return false;
}

void MemoryBudget::count(std::size_t bytes) noexcept {
  in_use_.fetch_add(bytes, std::memory_order_relaxed);
}

void MemoryBudget::give_back(std::size_t bytes) noexcept {
  in_use_.fetch_sub(bytes, std::memory_order_relaxed);
}

void MemoryBudget::take(std::size_t bytes, std::string_view purpose) {
  require(bytes, purpose);
  count(bytes);
}

void MemoryBudget::require(std::size_t bytes, std::string_view purpose) const {
  if (!has_room_for(bytes)) throw MemoryLimitError(refusal(bytes, purpose));
}

std::string MemoryBudget::refusal(std::size_t bytes, std::string_view purpose) const {
  return fmt::format(
      "{} needs {} MiB of memory; {} of {} MiB are in use; if the input is trusted, raise the "
      "option max-memory",
      purpose, mebibytes(bytes), mebibytes(in_use()), mebibytes(limit()));
}

void* allocate_anyway(std::size_t bytes, std::size_t alignment) noexcept {
  const auto size = std::max<std::size_t>(bytes, 1);
  void* block = alignment <= alignof(std::max_align_t)
                    ? std::malloc(size)
                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (block != nullptr) budget.count(size_of(block));
  return block;
}

void* allocate_counted(std::size_t bytes, std::size_t alignment) noexcept {
  return budget.has_room_for(bytes) ? allocate_anyway(bytes, alignment) : nullptr;
}

void free_counted(void* memory) noexcept {
  if (memory == nullptr) return;
  budget.give_back(size_of(memory));
  std::free(memory);
}

}  // namespace triptych
