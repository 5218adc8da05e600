// Loops on a team: each element once, pieces, indices, exceptions, and loops that meet.
// SPDX-License-Identifier: Apache-2.0
#include "backends/host/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backends/host/parallel.h"

namespace triptych {
namespace {

using Counts = std::vector<std::atomic<int>>;

bool each_once(const Counts& counts) {
  return std::ranges::all_of(counts, [](const auto& count) { return count == 1; });
}

TEST(ThreadTeam, runs_each_element_once_in_pieces_of_the_grain) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadTeam team(threads);
    for (const std::int64_t count : {1, 2, 3, 64, 1000}) {
      for (const std::int64_t grain : {0, 1, 3, 400, 5000}) {
        Counts counts(static_cast<std::size_t>(count));
        std::atomic<bool> small = false;
        team.execute([&] {
          parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
            if (end - begin < std::min(grain, count)) small = true;
            for (auto i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
          });
        });
        EXPECT_TRUE(each_once(counts)) << count << " by " << grain << ", " << threads;
        EXPECT_FALSE(small) << count << " by " << grain << ", " << threads;
      }
    }
  }
}

/// Each piece waits until all threads have one. More threads than processors join at once.
TEST(ThreadTeam, uses_all_its_threads_with_an_index_each) {
  const int threads = usable_processors() + 1;
  ThreadTeam team(threads);
  for (int loop = 0; loop < 20; ++loop) {
    std::mutex mutex;
    std::set<int> indices;
    std::atomic<int> arrived = 0;
    team.execute([&] {
      EXPECT_EQ(max_threads(), threads);
      parallel_for(threads, 1, [&](std::int64_t, std::int64_t) {
        ++arrived;
        while (arrived < threads) std::this_thread::yield();
        const std::lock_guard lock(mutex);
        indices.insert(thread_index());
      });
    });
    EXPECT_EQ(std::ssize(indices), threads);
    EXPECT_EQ(*indices.begin(), 0);
    EXPECT_EQ(*indices.rbegin(), threads - 1);
  }
}

TEST(ThreadTeam, rethrows_the_exception_of_a_body_and_runs_on) {
  ThreadTeam team(3);
  for (int loop = 0; loop < 50; ++loop) {
    Counts counts(64);
    team.execute([&] {
      EXPECT_THROW(parallel_for(64, 1,
                                [&](std::int64_t begin, std::int64_t) {
                                  if (begin >= loop) throw std::runtime_error("a body's");
                                }),
                   std::runtime_error);
      parallel_for(64, 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
      });
    });
    EXPECT_TRUE(each_once(counts));
  }
}

TEST(ThreadTeam, runs_a_loop_within_a_body_on_its_thread) {
  ThreadTeam team(3);
  Counts counts(64);
  std::atomic<int> elsewhere = 0;
  team.execute([&] {
    parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
      const int index = thread_index();
      const auto thread = std::this_thread::get_id();
      for (auto i = begin; i < end; ++i) {
        parallel_for(8, 1, [&](std::int64_t from, std::int64_t to) {
          if (thread_index() != index || std::this_thread::get_id() != thread) ++elsewhere;
          for (auto j = from; j < to; ++j) ++counts[static_cast<std::size_t>(8 * i + j)];
        });
      }
    });
  });
  EXPECT_TRUE(each_once(counts));
  EXPECT_EQ(elsewhere, 0);
}

TEST(ThreadTeam, serves_several_callers) {
  constexpr std::size_t kCallers = 4, kLoops = 200, kCount = 64;
  ThreadTeam team(2);
  Counts counts(kCallers * kCount);
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, first = caller * kCount] {
      for (std::size_t loop = 0; loop < kLoops; ++loop) {
        team.execute([&] {
          parallel_for(kCount, 1, [&](std::int64_t begin, std::int64_t end) {
            for (auto i = begin; i < end; ++i) ++counts[first + static_cast<std::size_t>(i)];
          });
        });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (const auto& count : counts) ASSERT_EQ(count, static_cast<int>(kLoops));
}

/// The next loop reads on other threads the values that one loop writes.
TEST(ThreadTeam, orders_loops_one_after_the_other) {
  ThreadTeam team(4);
  std::vector<int> values(256, 0), sums(256, 0);
  team.execute([&] {
    for (int loop = 1; loop <= 500; ++loop) {
      parallel_for(256, 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] = loop;
      });
      parallel_for(256, 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) {
          sums[static_cast<std::size_t>(i)] += values[static_cast<std::size_t>(255 - i)];
        }
      });
    }
  });
  for (const int sum : sums) ASSERT_EQ(sum, 500 * 501 / 2);
}

TEST(ThreadTeam, ends_while_its_threads_are_awake) {
  std::atomic<int> sum = 0;
  for (int i = 0; i < 200; ++i) {
    ThreadTeam team(3);
    team.execute(
        [&] { parallel_for(3, 1, [&](auto begin, auto end) { sum += int(end - begin); }); });
  }
  EXPECT_EQ(sum, 600);
}

TEST(ThreadTeam, lends_all_processors_to_a_thread_without_one) {
  EXPECT_EQ(max_threads(), usable_processors());
  Counts counts(100);
  std::atomic<bool> beyond = false;
  parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
    if (thread_index() < 0 || thread_index() >= usable_processors()) beyond = true;
    for (auto i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
  });
  EXPECT_TRUE(each_once(counts));
  EXPECT_FALSE(beyond);
}

}  // namespace
}  // namespace triptych
