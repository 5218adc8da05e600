// SPDX-License-Identifier: Apache-2.0
#include "core/io/cache_file.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "core/io/input_file.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CacheFileTest : public testing::Test {
 protected:
  CacheFileTest() { fs::remove_all(folder); }
  ~CacheFileTest() override { fs::remove_all(folder); }

  CacheFile::Report note() {
    return [this](const std::string& message) { messages.push_back(message); };
  }
  void write(const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }

  fs::path folder = fs::path(testing::TempDir()) / "triptych_cache_file_test";
  fs::path path = folder / "deep" / "kernels.json";
  std::vector<std::string> messages;
};

TEST_F(CacheFileTest, what_was_inserted_is_found_by_the_next_program) {
  {
    CacheFile cache(path, note());
    EXPECT_EQ(cache.find("a \"key\""), std::nullopt);
    cache.insert("a \"key\"", "its\ntext");
    EXPECT_EQ(cache.find("a \"key\""), "its\ntext");
    EXPECT_FALSE(fs::exists(path));
  }
  CacheFile cache(path, note());
  EXPECT_EQ(cache.find("a \"key\""), "its\ntext");
  EXPECT_TRUE(messages.empty());
}

/// A cache of this version. A later version must read it.
TEST_F(CacheFileTest, a_golden_file_is_read) {
  write("{\n \"schema\": 1,\n \"texts\": {\n  \"a \\\"key\\\"\": \"its\\ntext\"\n }\n}\n");
  CacheFile cache(path, note());
  EXPECT_EQ(cache.find("a \"key\""), "its\ntext");
  EXPECT_TRUE(messages.empty());
}

TEST_F(CacheFileTest, what_another_program_added_meanwhile_is_kept) {
  CacheFile one(path, note()), other(path, note());
  one.insert("a", "1");
  other.insert("b", "2");
  one.save();
  other.save();
  CacheFile later(path, note());
  EXPECT_EQ(later.find("a"), "1");
  EXPECT_EQ(later.find("b"), "2");
}

TEST_F(CacheFileTest, a_damaged_file_is_told_of_once_ignored_and_replaced) {
  for (const char* content :
       {"", "{", "[]", "{}", R"({"schema": 2, "texts": {}})", R"({"schema": 1, "texts": []})",
        R"({"texts": {}})", R"({"schema": 1, "texts": {"a": 1}})"}) {
    messages.clear();
    write(content);
    {
      CacheFile cache(path, note());
      EXPECT_EQ(cache.find("a"), std::nullopt) << content;
      cache.insert("a", "1");
    }
    EXPECT_THAT(messages, ElementsAre(AllOf(HasSubstr(path.string()), HasSubstr("ignored"))))
        << content;
    messages.clear();
    EXPECT_EQ(CacheFile(path, note()).find("a"), "1") << content;
    EXPECT_TRUE(messages.empty());
  }
}

TEST_F(CacheFileTest, a_file_that_cannot_be_written_is_told_of) {
  fs::create_directories(folder);
  std::ofstream(folder / "deep") << "a file where the folder should be";
  {
    CacheFile cache(path, note());
    cache.insert("a", "1");
    EXPECT_EQ(cache.find("a"), "1");
  }
  EXPECT_THAT(messages, ElementsAre(HasSubstr("was not written")));
}

TEST_F(CacheFileTest, nothing_is_written_where_nothing_was_inserted) {
  { CacheFile(path, note()).find("a"); }
  EXPECT_FALSE(fs::exists(folder));
}

TEST(CacheFolder, follows_the_environment) {
  setenv("HOME", "/home/me", 1);
  setenv("XDG_CACHE_HOME", "/var/mine", 1);
  EXPECT_EQ(cache_folder(), "/var/mine/triptych");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_folder(), "/home/me/.cache/triptych");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_folder(), "/home/me/.cache/triptych");
  unsetenv("HOME");
  EXPECT_EQ(cache_folder(), "");
  for (const char* relative : {"", "relative"}) {
    setenv("HOME", relative, 1);
    EXPECT_EQ(cache_folder(), "") << relative;
  }
}

}  // namespace
}  // namespace triptych
