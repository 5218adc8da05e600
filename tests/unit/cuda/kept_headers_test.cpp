// Headers in the user's cache and their precompiled forms. Whole builds with them: tests/cli.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/kept_headers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "systolic/sim/toolchain.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

class KeptHeadersTest : public testing::Test {
 protected:
  KeptHeadersTest() {
    if (const char* value = std::getenv("XDG_CACHE_HOME")) before_ = value;
    setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), 1);
    write(outside_, "constexpr int kSize = 4;\n");
  }
  ~KeptHeadersTest() override {
    if (before_.empty()) {
      unsetenv("XDG_CACHE_HOME");
    } else {
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
  }

  Headers headers() const {
    return {{"first.h", "#include \"more/second.h\"\n#include \"" + outside_.string() + "\"\n"},
            {"more/second.h", "inline int twice(int x) { return 2 * x; }\n"}};
  }
  /// From the second use on.
  KeptHeaders kept(const Headers& headers) const {
    KeptHeaders first(headers);
    EXPECT_TRUE(first.folder().empty());
    return KeptHeaders(headers);
  }
  /// Runs the command on a source and returns the compiler's output, or "" where it succeeds.
  std::string output_of(Words command) const {
    const auto log = folder_.path() / "log";
    fs::remove(log);
    write(folder_.path() / "source.cpp", "int array[kSize];\nint get() { return twice(3); }\n");
    for (const auto& word : {std::string("-c"), (folder_.path() / "source.cpp").string(),
                             std::string("-o"), (folder_.path() / "object.o").string()}) {
      command.push_back(word);
    }
    if (mmu::run_logged(command, log, folder_.path()) == 0) return "";
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    return text.str();
  }

  TemporaryFolder folder_{"kept"};
  fs::path outside_ = folder_.path() / "outside.h";

 private:
  std::string before_;
};

TEST_F(KeptHeadersTest, are_written_at_the_second_use) {
  const auto kept = this->kept(headers());
  EXPECT_EQ(kept.folder().parent_path(), folder_.path() / "cache/triptych/headers");
  EXPECT_TRUE(fs::exists(kept.folder() / "first.h"));
  EXPECT_TRUE(fs::exists(kept.folder() / "more/second.h"));
}

TEST_F(KeptHeadersTest, a_header_that_somebody_removed_comes_back) {
  const auto folder = kept(headers()).folder();
  fs::remove(folder / "more/second.h");
  EXPECT_EQ(KeptHeaders(headers()).folder(), folder);
  EXPECT_TRUE(fs::exists(folder / "more/second.h"));
}

TEST_F(KeptHeadersTest, other_content_is_in_another_folder) {
  auto changed = headers();
  changed["first.h"] += "\n";
  EXPECT_NE(kept(headers()).folder(), kept(changed).folder());
}

/// With the name of a compiler.
class PrecompiledTest : public KeptHeadersTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!find_program(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }
  Words command() const { return {GetParam(), "-x", "c++", "-std=c++20", "-O0"}; }
  Words including(const KeptHeaders& kept, const fs::path& file) const {
    auto words = command();
    words.emplace_back(is_clang(words) ? "-include-pch" : "-include");
    words.push_back((is_clang(words) ? file : kept.folder() / "first.h").string());
    return words;
  }
};
INSTANTIATE_TEST_SUITE_P(Compilers, PrecompiledTest, testing::Values("g++", "clang++"),
                         [](const auto& tested) { return std::string(tested.param, 1); });

TEST_P(PrecompiledTest, headers_are_compiled_once) {
  const auto kept = this->kept(headers());
  const auto file = kept.precompiled(command(), "first.h");
  ASSERT_TRUE(file);
  EXPECT_EQ(output_of(including(kept, *file)), "");
  const auto time = fs::last_write_time(*file);
  EXPECT_EQ(KeptHeaders(headers()).precompiled(command(), "first.h"), file);
  EXPECT_EQ(fs::last_write_time(*file), time);
}

TEST_P(PrecompiledTest, another_command_has_another_file) {
  const auto kept = this->kept(headers());
  auto other = command();
  other.emplace_back("-DWORD");
  EXPECT_NE(kept.precompiled(command(), "first.h"), kept.precompiled(other, "first.h"));
}

/// g++ would take the old one.
TEST_P(PrecompiledTest, a_changed_header_of_the_system_is_compiled_again) {
  const auto kept = this->kept(headers());
  ASSERT_TRUE(kept.precompiled(command(), "first.h"));
  write(outside_, "constexpr int kOther = 4;\n");
  const auto file = kept.precompiled(command(), "first.h");
  ASSERT_TRUE(file);
  EXPECT_NE(output_of(including(kept, *file)).find("kSize"), std::string::npos);
}

TEST_P(PrecompiledTest, a_header_that_does_not_compile_is_tried_once) {
  const auto kept = this->kept({{"first.h", "#include \"" + outside_.string() + "\"\n"}});
  write(outside_, "no C++\n");
  EXPECT_FALSE(kept.precompiled(command(), "first.h"));
  write(outside_, "\n");
  EXPECT_FALSE(kept.precompiled(command(), "first.h"));
}

TEST_F(KeptHeadersTest, a_damaged_file_gives_way_to_the_header) {
  if (!find_program("clang++")) GTEST_SKIP() << "clang++ is not installed";
  const Words command = {"clang++", "-x", "c++", "-std=c++20", "-O0"};
  const auto kept = this->kept(headers());
  const auto file = kept.precompiled(command, "first.h");
  ASSERT_TRUE(file);
  fs::resize_file(*file, fs::file_size(*file) / 2);
  auto words = command;
  words.insert(words.end(), {"-include-pch", file->string()});
  const auto output = output_of(words);
  ASSERT_NE(output, "");
  EXPECT_TRUE(replace_refused(words, output)) << output;
  EXPECT_EQ(output_of(words), "");
  EXPECT_FALSE(replace_refused(words, output));
}

}  // namespace
}  // namespace triptych::kernels
