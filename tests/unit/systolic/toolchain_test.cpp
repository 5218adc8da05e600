// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/toolchain.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "core/io/temporary_folder.h"

namespace triptych::mmu {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(RunLogged, TheTemporaryFilesOfACommandGoToTheCallersFolder) {
  const TemporaryFolder work("run_logged"), other("run_logged");
  const auto log = work.path() / "log";
  EXPECT_EQ(run_logged({"sh", "-c", "env | grep -c ^TMPDIR= && echo $TMPDIR"}, log, other.path(),
                       work.path()),
            0);
  EXPECT_THAT(text_of(log), testing::EndsWith("\n1\n" + other.path().string() + "\n"));
}

TEST(RunLogged, RelativeFoldersAreOfTheCallersCurrentOne) {
  const TemporaryFolder work("run_logged");
  const auto log = work.path() / "log";
  EXPECT_EQ(run_logged({"sh", "-c", "echo $TMPDIR; pwd"}, log, "tmp", work.path()), 0);
  EXPECT_THAT(text_of(log),
              testing::EndsWith("\n" + (std::filesystem::current_path() / "tmp").string() + "\n" +
                                work.path().string() + "\n"));
}

}  // namespace
}  // namespace triptych::mmu
