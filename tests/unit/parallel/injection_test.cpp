// Ranks that misbehave at random points: all others always learn the same cause, soon.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "parallel/comm/thread_group.h"
#include "tests/unit/parallel/faulty_transport.h"

namespace triptych::parallel::injection_tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kGrace(2);  // 0.5 where each rank has a processor
constexpr int kInjections = 200;

/// Outcome of a rank.
struct Outcome {
  std::optional<Fault> fault;
  Clock::time_point end;
  bool injected = false;
};

Outcome play_rank(ThreadGroup& group, int rank, const Scene& scene) {
  Outcome outcome;
  auto transport = std::make_unique<FaultyTransport>(group.transport(rank), scene);
  const auto& faulty = *transport;
  Communicator communicator(std::move(transport));
  try {
    for (int i = 0; i < kCollectives; ++i) call_collective(communicator, scene, i);
    communicator.barrier();  // a rank may be done with the last one before another goes wrong
  } catch (const FaultError& error) {
    outcome.fault = error.fault();
  } catch (const Error& error) {
    communicator.fail(error.what());
  } catch (const Left&) {
  }
  outcome.injected = faulty.injected();
  outcome.end = Clock::now();
  return outcome;
}

std::vector<Outcome> play(Scene scene) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(scene.world_size));
  std::latch others(scene.world_size - 1);
  scene.noticed = &others;
  ThreadGroup group(scene.world_size, kDeadline);
  std::vector<std::jthread> threads;
  threads.reserve(outcomes.size());
  for (int rank = 0; rank < scene.world_size; ++rank) {
    threads.emplace_back([&, rank] {
      outcomes[static_cast<std::size_t>(rank)] = play_rank(group, rank, scene);
      if (rank != scene.culprit) others.count_down();
    });
  }
  threads.clear();
  return outcomes;
}

void judge(const Scene& scene, const std::vector<Outcome>& outcomes, Seconds longest) {
  const bool wrong =
      scene.injection == Injection::WrongOrder || scene.injection == Injection::WrongSize;
  const bool happened = std::ranges::any_of(outcomes, &Outcome::injected);
  const bool harmless = (!wrong && !happened) || scene.injection == Injection::Slow;
  const Fault* first = nullptr;
  for (int rank = 0; rank < scene.world_size; ++rank) {
    const auto& fault = outcomes[static_cast<std::size_t>(rank)].fault;
    if (harmless) {
      EXPECT_FALSE(fault) << to_string(*fault);
      continue;
    }
    if (rank == scene.culprit && !fault) continue;
    ASSERT_TRUE(fault) << "rank " << rank << " noticed nothing";
    if (first == nullptr) first = &*fault;
    EXPECT_EQ(to_string(*fault), to_string(*first)) << "one fault for all";
    if (wrong) {
      EXPECT_TRUE(fault->culprit == scene.culprit || fault->noticed_by == scene.culprit)
          << to_string(*fault);
    } else {
      EXPECT_EQ(fault->culprit, scene.culprit) << to_string(*fault);
    }
    EXPECT_EQ(fault->cause == Cause::Lost, scene.injection == Injection::Drop) << to_string(*fault);
  }
  if (std::getenv("TRIPTYCH_TIMED") == nullptr) return;  // how soon, wants an idle machine
  EXPECT_LT(longest, kDeadline + kGrace);
}

TEST(Injection, every_rank_learns_the_same_cause_in_time) {
  for (unsigned seed = 0; seed < kInjections; ++seed) {
    const Scene scene = draw_scene(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << scene.world_size << " ranks, "
                                    << to_string(scene.algorithm) << ", rank " << scene.culprit
                                    << " does " << static_cast<int>(scene.injection));
    const auto start = Clock::now();
    const auto outcomes = play(scene);
    judge(scene, outcomes, Clock::now() - start);
  }
}

}  // namespace
}  // namespace triptych::parallel::injection_tests
