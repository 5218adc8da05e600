// A computation with a stack of its own that runs until it hands the processor to another. Fibers
// of one operating-system thread only. A switch takes some twenty nanoseconds. Below
// boost::context::fiber, because sanitizers do not see its end (docs/decisions/0039).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace triptych::cuda::emulation {

/// Without an entry: the thread's own stack, as the place to come back to.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber() = default;
  /// The first switch to it calls entry(argument), which never returns. Throws std::bad_alloc.
  Fiber(std::size_t stack_bytes, Entry entry, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Continues in this fiber. `from`, which contains the caller, continues when somebody resumes
  /// it.
  void resume(Fiber& from);

  /// Its stack. Empty where it is a thread's own.
  std::span<const std::byte> stack() const { return open_; }

 private:
  void arrived();

  void* context_ = nullptr;  ///< where it continues
  std::byte* stack_ = nullptr;
  std::span<const std::byte> open_;  ///< without the closed page
  std::size_t mapped_bytes_ = 0;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  // Handles by which the sanitizers know it.
  void* fake_stack_ = nullptr;
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void* thread_ = nullptr;
};

}  // namespace triptych::cuda::emulation
