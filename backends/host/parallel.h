// Loops over the threads of the team that the current device runs in (thread_team.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych {

/// Threads that a parallel_for of this thread can use: those of its team. Outside of a team, one of
/// all processors is used.
int max_threads();

/// Index of this thread, below max_threads(). Bodies that run at the same time have different ones,
/// so each may have memory of its own. A thread that leaves the team hands its index to another.
int thread_index();

namespace internal {

/// A loop over [0, count) in pieces of at least `grain`: call(body, begin, end) runs one.
struct Loop {
  std::int64_t count;
  std::int64_t grain;
  const void* body;
  void (*call)(const void* body, std::int64_t begin, std::int64_t end);
};

void run_on_team(const Loop& loop);

}  // namespace internal

/// Calls body(begin, end) for disjoint ranges that cover [0, count), each of at least `grain`
/// elements where possible. How the range is cut must not show in the result. An exception of a
/// body ends the loop and is rethrown here. A loop within a body runs on the body's thread.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain || max_threads() == 1) {
    body(std::int64_t{0}, count);
    return;
  }
  internal::run_on_team(
      {count, grain, &body, [](const void* called, std::int64_t begin, std::int64_t end) {
         (*static_cast<const Body*>(called))(begin, end);
       }});
}

}  // namespace triptych
