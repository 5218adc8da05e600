// Loops over the threads of the arena that the current device runs in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

#include <array>
#endif

namespace triptych {

namespace internal {

/// How TBB orders the tasks of a loop, told to ThreadSanitizer, which does not see into the
/// library: all come after the loop's begin and before its end, and those of one thread_index()
/// follow one another, also when one thread leaves the arena and another takes its index.
class TaskOrder {
 public:
#if defined(__SANITIZE_THREAD__)
  TaskOrder() { __tsan_release(&begin_); }
  void begin_task(int index) {
    __tsan_acquire(&begin_);
    __tsan_acquire(of(index));
  }
  void end_task(int index) {
    __tsan_release(of(index));
    __tsan_release(&end_);
  }
  void end() { __tsan_acquire(&end_); }

 private:
  char* of(int index) { return &indices_[static_cast<std::size_t>(index) % indices_.size()]; }

  char begin_ = 0, end_ = 0;
  std::array<char, 64> indices_ = {};  // on the stack: a step allocates nothing
#else
  void begin_task(int) {}
  void end_task(int) {}
  void end() {}
#endif
};

}  // namespace internal

/// Threads that a parallel_for of this thread can use.
inline int max_threads() { return tbb::this_task_arena::max_concurrency(); }

/// Index of this thread, below max_threads(). Bodies that run at the same time have different ones,
/// so each may have memory of its own. A thread that leaves the arena hands its index to another.
inline int thread_index() { return tbb::this_task_arena::current_thread_index(); }

/// Calls body(begin, end) for disjoint ranges that cover [0, count), each of at least `grain`
/// elements where possible. How the range is cut must not show in the result.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain || max_threads() == 1) {
    body(std::int64_t{0}, count);
    return;
  }
  internal::TaskOrder order;
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count, static_cast<std::size_t>(grain)),
                    [&](const tbb::blocked_range<std::int64_t>& range) {
                      const auto index = thread_index();
                      order.begin_task(index);
                      body(range.begin(), range.end());
                      order.end_task(index);
                    });
  order.end();
}

}  // namespace triptych
