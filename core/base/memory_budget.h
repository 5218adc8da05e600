// The memory of this process: one count and one limit (--max-memory). The places that allocate
// report here: tensors and arenas, operator new of the program, decoders of pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace triptych {

/// A request beyond the limit. Exit code 2.
class MemoryLimitError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// The same from operator new, which may throw nothing but a std::bad_alloc. Exit code 2.
class MemoryLimitReached : public std::bad_alloc {
 public:
  explicit MemoryLimitReached(std::string message)
      : message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }

 private:
  std::shared_ptr<const std::string> message_;
};

/// Bytes in use and their limit. Thread-safe, but threads that ask at the same moment may exceed
/// the limit by the sum of their requests. Only refusal() allocates.
class MemoryBudget {
 public:
  /// Without this call the limit is physical_memory().
  void set_limit(std::size_t bytes);
  std::size_t limit() const;
  std::size_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  /// Bytes up to the limit, or 0 when it is exceeded.
  std::size_t left() const;

  /// False when `bytes` more exceed the limit.
  bool has_room_for(std::size_t bytes) const noexcept;
  /// Counts `bytes` more, beyond the limit, too.
  void count(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept;

  /// Counts the bytes of `purpose`. Throws MemoryLimitError when they exceed the limit.
  void take(std::size_t bytes, std::string_view purpose);
  /// Throws MemoryLimitError when `purpose` will exceed the limit. Counts nothing.
  void require(std::size_t bytes, std::string_view purpose) const;
  /// The text of that error.
  std::string refusal(std::size_t bytes, std::string_view purpose) const;
  /// True when anything was refused: a std::bad_alloc then has the limit for its cause.
  bool has_refused() const { return has_refused_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> in_use_ = 0;
  mutable std::atomic<std::size_t> limit_ = 0;  ///< 0: not read yet
  mutable std::atomic<bool> has_refused_ = false;
};

/// That of this process.
MemoryBudget& memory_budget();

/// Counts memory that a library takes by itself, for as long as this object lives.
class MemoryReservation {
 public:
  /// Throws MemoryLimitError.
  MemoryReservation(std::size_t bytes, std::string_view purpose) : bytes_(bytes) {
    memory_budget().take(bytes, purpose);
  }
  MemoryReservation(const MemoryReservation&) = delete;
  MemoryReservation& operator=(const MemoryReservation&) = delete;
  ~MemoryReservation() { memory_budget().give_back(bytes_); }

 private:
  std::size_t bytes_;
};

/// A block for any object that the budget counts, or nullptr beyond the limit.
void* allocate_counted(std::size_t bytes, std::size_t alignment = 0) noexcept;
/// The same, also beyond the limit, for code that must not fail, such as the report of an error.
void* allocate_anyway(std::size_t bytes, std::size_t alignment = 0) noexcept;
/// Frees a block of either function. Ignores nullptr.
void free_counted(void* memory) noexcept;

/// Bytes of the machine, or of the container where that has fewer.
std::size_t physical_memory();

}  // namespace triptych
