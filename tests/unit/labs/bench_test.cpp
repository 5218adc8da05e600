// The folder of a submission's trial: files that its code left there are not trusted.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/bench.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace triptych::labs {
namespace {

TEST(Bench, files_that_are_links_are_not_read) {
  Bench bench;
  EXPECT_TRUE(bench.run({"sh", "-c", "ln -s /etc/passwd x; mkdir d; ln -s / d/e"}).good());
  EXPECT_THROW(static_cast<void>(bench.text("x")), IoError);
  EXPECT_THROW(static_cast<void>(bench.text("d/e/etc/passwd")), IoError);
  EXPECT_THROW(static_cast<void>(bench.text("y")), IoError);
  bench.put("x", "mine");
  EXPECT_EQ(bench.text("x"), "mine");
}

TEST(Bench, files_are_not_put_through_links) {
  Bench bench;
  const TemporaryFolder outside("outside");
  std::filesystem::create_directory_symlink(outside.path(), bench.folder() / "d");
  EXPECT_THROW(bench.put("d/x", "mine"), IoError);
  EXPECT_FALSE(std::filesystem::exists(outside.path() / "x"));
  std::filesystem::create_symlink(outside.path() / "y", bench.folder() / "y");
  bench.put("y", "mine");
  EXPECT_FALSE(std::filesystem::exists(outside.path() / "y"));
  EXPECT_EQ(bench.text("y"), "mine");
}

TEST(Bench, files_with_a_second_name_are_not_read) {
  Bench bench;
  bench.put("x", "mine");
  std::filesystem::create_hard_link(bench.folder() / "x", bench.folder() / "y");
  EXPECT_THROW(static_cast<void>(bench.text("y")), IoError);
}

}  // namespace
}  // namespace triptych::labs
