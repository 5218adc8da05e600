// Faults after which a kernel continues: one entry for each pair of lines, and a number of others.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/noted_faults.h"

#include <gtest/gtest.h>

namespace triptych::cuda::emulation {
namespace {

NotedFault fault(FaultKind kind, unsigned line, unsigned other_line) {
  return {{kind, {"kernel", "a.cu", line, {}, {}}, "message"}, other_line};
}

TEST(NotedFaults, a_pair_of_lines_has_one_entry) {
  NotedFaults noted;
  EXPECT_TRUE(noted.empty());
  noted.add(fault(FaultKind::Race, 3, 4));
  noted.add(fault(FaultKind::Race, 3, 4));
  noted.add(fault(FaultKind::Race, 3, 5));
  noted.add(fault(FaultKind::Uninitialised, 3, 4));
  ASSERT_EQ(noted.list().size(), 3U);
  EXPECT_EQ(noted.list()[0].count, 2U);
  EXPECT_EQ(noted.list()[1].other_line, 5U);
  EXPECT_EQ(noted.unlisted(), 0U);
}

TEST(NotedFaults, faults_beyond_the_limit_are_counted) {
  NotedFaults noted;
  const auto most = static_cast<unsigned>(NotedFaults::kMostPlaces);
  for (unsigned line = 0; line < most + 7; ++line) noted.add(fault(FaultKind::Race, line, 1));
  EXPECT_EQ(noted.list().size(), NotedFaults::kMostPlaces);
  EXPECT_EQ(noted.unlisted(), 7U);
  NotedFaults all;
  all.add(noted);
  all.add(noted);
  EXPECT_EQ(all.list()[0].count, 2U);
  EXPECT_EQ(all.unlisted(), 14U);
}

}  // namespace
}  // namespace triptych::cuda::emulation
