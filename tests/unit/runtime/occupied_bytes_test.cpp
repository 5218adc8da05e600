// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/occupied_bytes.h"

#include <gmock/gmock.h>

#include <functional>

#include "core/base/random.h"

namespace triptych {
namespace {

using ::testing::ElementsAre;

TEST(OccupiedBytes, ranges_that_meet_or_touch_become_one) {
  RangeSet set;
  set.add({10, 20});
  set.add({30, 40});
  EXPECT_THAT(set.ranges(), ElementsAre(ByteRange{10, 20}, ByteRange{30, 40}));
  set.add({20, 25});
  EXPECT_THAT(set.ranges(), ElementsAre(ByteRange{10, 25}, ByteRange{30, 40}));
  set.add({0, 2});
  EXPECT_THAT(set.ranges(), ElementsAre(ByteRange{0, 2}, ByteRange{10, 25}, ByteRange{30, 40}));
  set.add({2, 30});
  EXPECT_THAT(set.ranges(), ElementsAre(ByteRange{0, 40}));
}

struct Use {
  std::size_t first, last;
  ByteRange bytes;
};

std::vector<std::size_t> times_of(const std::vector<Use>& uses) {
  std::vector<std::size_t> times;
  for (const auto& use : uses) times.insert(times.end(), {use.first, use.last});
  return times;
}

TEST(OccupiedBytes, an_interval_has_the_bytes_that_are_in_use_at_some_time_of_it) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed, 0);
    const auto below = [&](std::int64_t n) { return static_cast<std::size_t>(random.below(n)); };
    std::vector<Use> uses(1 + below(40));
    for (auto& use : uses) {
      use = {.first = 7 * below(50), .last = 0, .bytes = {.begin = below(100), .end = 0}};
      use.last = use.first + 7 * below(seed % 2 == 0 ? 4 : 50);
      use.bytes.end = use.bytes.begin + 1 + below(9);
    }
    OccupiedBytes occupied(times_of(uses));
    std::vector<Use> added;
    for (const auto& use : uses) {
      std::vector<bool> expected(200, false), found(200, false);
      const auto mark = [](std::vector<bool>& bytes, const ByteRange& range) {
        for (auto i = range.begin; i < range.end; ++i) bytes[i] = true;
      };
      for (const auto& other : added) {
        if (other.first <= use.last && use.first <= other.last) mark(expected, other.bytes);
      }
      std::size_t begin = 0;
      for (const auto& range : occupied.during(use.first, use.last)) {
        EXPECT_GE(range.begin, begin);
        begin = range.begin;
        mark(found, range);
      }
      EXPECT_EQ(found, expected) << "seed " << seed;
      occupied.add(use.first, use.last, use.bytes);
      added.push_back(use);
    }
  }
}

/// Ranges that are looked at while `count` uses are added, each behind those that it meets.
std::size_t work_of(std::size_t count, const std::function<Use(std::size_t)>& use_of) {
  std::vector<Use> uses;
  for (std::size_t i = 0; i < count; ++i) uses.push_back(use_of(i));
  OccupiedBytes occupied(times_of(uses));
  std::size_t work = 0;
  for (const auto& use : uses) {
    std::size_t end = 0;
    for (const auto& range : occupied.during(use.first, use.last)) {
      end = std::max(end, range.end);
      ++work;
    }
    occupied.add(use.first, use.last, {end, end + use.bytes.end});
  }
  return work;
}

TEST(OccupiedBytes, twice_as_many_uses_are_hardly_more_than_twice_the_work) {
  constexpr std::size_t n = 2000, most = 2 * n;
  const std::pair<const char*, std::function<Use(std::size_t)>> plans[] = {
      {"a chain",
       [](std::size_t i) {
         return Use{i, i + 1, {0, 64}};
       }},
      {"a step forward and backward",
       [](std::size_t i) {
         return Use{i, 2 * most - i, {0, 64 * (1 + i % 7)}};
       }},
      {"values of the whole run",
       [](std::size_t i) {
         return Use{0, most, {0, 64 * (1 + i % 5)}};
       }},
      {"values of the whole run, then a chain", [](std::size_t i) {
         return i < n / 4 ? Use{0, most, {0, 64}} : Use{i, i + 3, {0, 64 * (1 + i % 5)}};
       }}};
  for (const auto& [name, use_of] : plans) {
    const auto once = work_of(n, use_of), twice = work_of(2 * n, use_of);
    EXPECT_LT(static_cast<double>(twice), 2.6 * static_cast<double>(once)) << name;
    EXPECT_LT(once, 40 * n) << name;
  }
}

}  // namespace
}  // namespace triptych
