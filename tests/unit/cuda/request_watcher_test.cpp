// Requests one by one against the counters, and patterns of access against closed forms.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/request_watcher.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/cuda/lessons/access_patterns.h"

namespace triptych::cuda {
namespace {

using counted::AccessPattern;
using counted::run_access_pattern;
using emulation::Access;
using emulation::EmulatedStream;
using emulation::Mode;
using emulation::Request;
using emulation::RequestPlace;
using emulation::Space;

struct Watcher : emulation::RequestWatcher {
  void asked(const RequestPlace& place, const Request& request) override {
    places.push_back(place);
    requests.push_back(request);
  }
  std::vector<RequestPlace> places;
  std::vector<Request> requests;
};

/// Sectors or wavefronts of the request that a pattern is, by the stream's counters.
std::uint64_t cost(const AccessPattern& pattern) {
  EmulatedStream stream(Mode::Counted);
  run_access_pattern(stream, pattern);
  const auto at = stream.counters().begin()->second.total(pattern.space, Access::Load);
  EXPECT_EQ(at.requests, 1U);
  return pattern.space == Space::Global ? at.sectors : at.wavefronts;
}

TEST(AccessPattern, a_stride_in_global_memory_costs_sectors) {
  for (std::int64_t stride = 1; stride <= 8; ++stride) {
    // From byte 0 to that of the last lane, every sector while a stride is no longer than one.
    EXPECT_EQ(cost({Space::Global, 1, stride, 0}), static_cast<std::uint64_t>(31 * stride / 8 + 1));
  }
  EXPECT_EQ(cost({Space::Global, 1, 1, 1}), 5U);
  EXPECT_EQ(cost({Space::Global, 4, 4, 0}), 16U);
}

TEST(AccessPattern, a_stride_in_shared_memory_costs_passes) {
  for (std::int64_t stride = 1; stride <= 33; ++stride) {
    EXPECT_EQ(cost({Space::Shared, 1, stride, 0}),
              static_cast<std::uint64_t>(std::gcd(stride, std::int64_t{32})))
        << stride;
  }
}

TEST(AccessPattern, refuses_what_no_gpu_reads) {
  EmulatedStream stream(Mode::Counted);
  for (const AccessPattern& pattern :
       {AccessPattern{Space::Global, 3, 3, 0}, AccessPattern{Space::Global, 4, 1, 0},
        AccessPattern{Space::Shared, 2, 2, 1}, AccessPattern{Space::Global, 1, 1000, 0},
        AccessPattern{Space::Global, 1, -1, 40}}) {
    EXPECT_THROW(run_access_pattern(stream, pattern), InvalidArgument);
  }
}

TEST(RequestWatcher, is_told_addresses_warp_and_place) {
  EmulatedStream stream(Mode::Counted);
  Watcher watcher;
  stream.tell(&watcher);
  run_access_pattern(stream, {Space::Shared, 1, 33, 3});
  ASSERT_EQ(watcher.requests.size(), 2U);  // the load, and the store of y
  const auto& load = watcher.requests[watcher.places[0].space == Space::Shared ? 0 : 1];
  EXPECT_EQ(load.mask, ~0U);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(load.addresses[lane], 4 * (3 + 33 * lane));
  for (const auto& place : watcher.places) {
    EXPECT_EQ(place.warp, 0U);
    EXPECT_EQ(place.block.count(), 0U);
    EXPECT_GT(place.where.line(), 0U);
  }
  stream.tell(nullptr);
  run_access_pattern(stream, {});
  EXPECT_EQ(watcher.requests.size(), 2U);
}

}  // namespace
}  // namespace triptych::cuda
