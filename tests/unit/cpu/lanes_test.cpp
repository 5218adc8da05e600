// Parts of vectors on every instruction set of this processor: at any address, the memory of the
// other lanes untouched.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/unit/cpu/lanes_test.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Loads lanes [first, last) from `from` on and stores them to `to`. Both have last - first
/// elements, the allocation ends behind them, and `all` gets the whole vector.
template <class D>
void copy_part(D d, const LaneRange<D>& range, std::int64_t first, const float* from, float* to,
               float* all) {
  const auto value = range.load(d, from - first);
  hn::StoreU(value, d, all);
  range.store(value, d, to - first);
}

template <class D>
void expect_part(D d, const LaneRange<D>& range, std::int64_t first, std::int64_t last) {
  // Offsets make addresses that are aligned to no vector.
  for (std::size_t offset = 1; offset <= hn::Lanes(d); ++offset) {
    const auto count = static_cast<std::size_t>(last - first);
    std::vector<float> from(offset + count), to(offset + count, -1), all(hn::Lanes(d), -1);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = 1 + static_cast<float>(i);
    copy_part(d, range, first, from.data() + offset, to.data() + offset, all.data());
    for (std::size_t i = 0; i < offset; ++i) EXPECT_EQ(to[i], -1);
    for (std::size_t i = offset; i < to.size(); ++i) EXPECT_EQ(to[i], from[i]);
    for (std::int64_t lane = 0; lane < std::ssize(all); ++lane) {
      const bool inside = lane >= first && lane < last;
      const auto at = offset + static_cast<std::size_t>(inside ? lane - first : 0);
      EXPECT_EQ(all[static_cast<std::size_t>(lane)], inside ? from[at] : 0) << lane;
    }
  }
}

/// Writes only its own part of a vector that others write at the same time.
template <class D>
void expect_neighbours_kept(D d, std::int64_t first, std::int64_t last) {
  std::vector<float> to(hn::Lanes(d) + 1, -1);
  LaneRange<D>(d, first, last).store(hn::Set(d, 2.0F), d, to.data() + 1);
  for (std::int64_t lane = -1; lane < static_cast<std::int64_t>(hn::Lanes(d)); ++lane) {
    EXPECT_EQ(to[static_cast<std::size_t>(lane + 1)], lane >= first && lane < last ? 2 : -1);
  }
}

template <class D>
void expect_all_parts(D d) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t last = 0; last <= lanes; ++last) {
    expect_part(d, LaneRange<D>(d, last), 0, last);
    for (std::int64_t first = 0; first <= last; ++first) {
      expect_part(d, LaneRange<D>(d, first, last), first, last);
      expect_neighbours_kept(d, first, last);
    }
  }
}

}  // namespace

void check_lanes() {
  expect_all_parts(hn::ScalableTag<float>());
  expect_all_parts(hn::CappedTag<float, 4>());
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {
namespace {

HWY_EXPORT(check_lanes);

TEST(LaneRange, touches_no_other_lane_on_any_instruction_set) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    HWY_DYNAMIC_DISPATCH(check_lanes)();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace
}  // namespace triptych::cpu
#endif
