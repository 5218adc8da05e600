// oneTBB's arena on the one thread that a page has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tbb {

class task_arena {
 public:
  explicit task_arena(int) {}
  void initialize() {}
  template <class Work>
  void execute(const Work& work) {
    work();
  }
};

namespace this_task_arena {

inline int max_concurrency() { return 1; }
inline int current_thread_index() { return 0; }

}  // namespace this_task_arena
}  // namespace tbb
