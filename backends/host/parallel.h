// Loops over the threads of the arena that the current device runs in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace triptych {

namespace internal {

/// How TBB orders tasks, told to ThreadSanitizer, which does not see into the library: what comes
/// before release(order) in one thread comes before what follows acquire(order) in another.
#if defined(__SANITIZE_THREAD__)
inline void release(char& order) { __tsan_release(&order); }
inline void acquire(char& order) { __tsan_acquire(&order); }
#else
inline void release(char&) {}
inline void acquire(char&) {}
#endif

}  // namespace internal

/// Threads that a parallel_for of this thread can use.
inline int max_threads() { return tbb::this_task_arena::max_concurrency(); }

/// Calls body(begin, end) for disjoint ranges that cover [0, count), each of at least `grain`
/// elements where possible. How the range is cut must not show in the result.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain || max_threads() == 1) {
    body(std::int64_t{0}, count);
    return;
  }
  char fork = 0, join = 0;
  internal::release(fork);
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count, static_cast<std::size_t>(grain)),
                    [&](const tbb::blocked_range<std::int64_t>& range) {
                      internal::acquire(fork);
                      body(range.begin(), range.end());
                      internal::release(join);
                    });
  internal::acquire(join);
}

}  // namespace triptych
