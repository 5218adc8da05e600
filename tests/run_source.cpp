// The main function of programs with the tests of many sources: PROGRAM SOURCE runs those of one
// source. PROGRAM without it runs all, or the selection of GoogleTest's options.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// A filter of GoogleTest for the tests of one file. Empty if it has none.
std::string tests_of(std::string_view source) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      if (!("/" + std::string(test.file())).ends_with("/" + std::string(source))) continue;
      filter += std::string(filter.empty() ? "" : ":") + suite.name() + "." + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1) {
    const std::string filter = tests_of(argv[1]);
    if (filter.empty()) {
      std::fprintf(stderr, "%s has no tests of \"%s\"\n", argv[0], argv[1]);
      return 2;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
