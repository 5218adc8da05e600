// Each system call of a save is made to fail in turn. The old file must survive, alone.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "core/io/input_file.h"
#include "tests/unit/io/test_files.h"

namespace {

/// Replaced system calls: call number `fail_at` of `call` (from 1) fails with `error`,
/// `times` times in a row, with writes cut to `longest_write` bytes.
struct Faults {
  std::string call;
  int fail_at = 0;
  int times = 1;
  int error = 0;
  std::size_t longest_write = SIZE_MAX;
  std::map<std::string, int> seen;
  std::vector<std::string> order;
};
Faults faults;

bool fails(const std::string& call) {
  const int number = ++faults.seen[call];
  faults.order.push_back(call);
  const bool failing =
      call == faults.call && number >= faults.fail_at && number < faults.fail_at + faults.times;
  if (failing) errno = faults.error;
  return failing;
}

}  // namespace

extern "C" {
int __real_open(const char* path, int flags, mode_t mode);
int __real_openat(int folder, const char* path, int flags, mode_t mode);
ssize_t __real_write(int descriptor, const void* bytes, std::size_t count);
int __real_fsync(int descriptor);
int __real_renameat(int from_folder, const char* from, int to_folder, const char* to);

int __wrap_open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : mode_t{0};
  va_end(list);
  return fails("open") ? -1 : __real_open(path, flags, mode);
}
int __wrap_openat(int folder, const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : mode_t{0};
  va_end(list);
  return fails("openat") ? -1 : __real_openat(folder, path, flags, mode);
}
ssize_t __wrap_write(int descriptor, const void* bytes, std::size_t count) {
  return fails("write") ? -1
                        : __real_write(descriptor, bytes, std::min(count, faults.longest_write));
}
int __wrap_fsync(int descriptor) { return fails("fsync") ? -1 : __real_fsync(descriptor); }
int __wrap_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return fails("rename") ? -1 : __real_renameat(from_folder, from, to_folder, to);
}
}

namespace triptych {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest() { test::put_file(path, "old"); }
  ~AtomicFileTest() override { faults = {}; }

  test::TemporaryFolder folder;
  std::filesystem::path path = folder / "file";
};

TEST_F(AtomicFileTest, replaces_the_content) {
  write_file_atomically(path, "new content");
  EXPECT_EQ(test::get_file(path), "new content");
  EXPECT_EQ(test::files_in(folder.path()), 1);
}

TEST_F(AtomicFileTest, syncs_the_file_then_renames_then_syncs_the_folder) {
  faults = {};
  write_file_atomically(path, "new");
  EXPECT_THAT(faults.order, ElementsAre("open", "openat", "write", "fsync", "rename", "fsync"));
}

TEST_F(AtomicFileTest, goes_on_after_short_and_interrupted_calls) {
  for (const auto* call : {"open", "openat", "write", "fsync"}) {
    faults = {.call = call, .fail_at = 1, .times = 3, .error = EINTR, .longest_write = 2};
    write_file_atomically(path, std::string("interrupted ") + call);
    EXPECT_EQ(test::get_file(path), std::string("interrupted ") + call);
  }
}

TEST_F(AtomicFileTest, keeps_the_old_file_alone_and_says_why_when_a_call_fails) {
  const std::pair<const char*, int> cases[] = {
      {"openat", EROFS}, {"open", EACCES}, {"write", ENOSPC}, {"write", EIO},
      {"write", EDQUOT}, {"fsync", EIO},   {"fsync", ENOSPC}, {"rename", EXDEV}};
  for (const auto& [call, error] : cases) {
    faults = {.call = call, .fail_at = 1, .error = error};
    try {
      write_file_atomically(path, "new");
      FAIL() << call;
    } catch (const IoError& failure) {
      EXPECT_THAT(failure.what(), HasSubstr(folder.path().string()));
      EXPECT_THAT(failure.what(), HasSubstr(std::generic_category().message(error)));
    }
    EXPECT_EQ(test::get_file(path), "old") << call;
    EXPECT_EQ(test::files_in(folder.path()), 1) << call;
  }
}

TEST_F(AtomicFileTest, a_dropped_file_leaves_nothing) {
  {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span("part", 4)));
  }
  EXPECT_EQ(test::get_file(path), "old");
  EXPECT_EQ(test::files_in(folder.path()), 1);
}

TEST_F(AtomicFileTest, refuses_a_folder_that_is_not_there) {
  EXPECT_THROW(write_file_atomically(folder / "absent/file", "x"), IoError);
  EXPECT_THROW(write_file_atomically("", "x"), IoError);
}

TEST_F(AtomicFileTest, input_refuses_what_is_no_regular_file) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(InputFile(folder / "pipe"), IoError);
  EXPECT_THROW(InputFile(folder.path()), IoError);
  EXPECT_THROW(InputFile("/dev/zero"), IoError);
  EXPECT_THROW(InputFile(folder / "absent"), IoError);
  EXPECT_THROW(InputFile(std::filesystem::path(std::string("file\0x", 6))), IoError);
  EXPECT_THROW(read_file(path, 2), IoError);
  EXPECT_EQ(read_file(path, 3), "old");
}

/// Every write, fsync, rename and open of a save fails once: the checkpoint before stays loadable,
/// and the next save works.
TEST_F(AtomicFileTest, a_checkpoint_survives_the_failure_of_every_call) {
  const auto run = folder / "run";
  TensorMap tensors;
  tensors.emplace("weight", Tensor(Shape{3}, std::vector<float>{1, 2, 3}));
  std::int64_t saved = 2;
  for (const std::int64_t step : {1, 2}) save_checkpoint(run, tensors, {.step = step});
  int failures = 0;
  for (const auto* call : {"open", "openat", "write", "fsync", "rename"}) {
    for (int number = 1; number <= 6; ++number) {
      for (const int error : {ENOSPC, EIO}) {
        faults = {.call = call, .fail_at = number, .error = error};
        bool failed = false;
        try {
          save_checkpoint(run, tensors, {.step = saved + 1});
        } catch (const IoError&) {
          failed = true;
          ++failures;
        }
        faults = {};
        const auto loaded = load_checkpoint(run).info.step;
        // The last call of a save makes the rename durable. The new file is then already there.
        EXPECT_TRUE(loaded == saved + 1 || (failed && loaded == saved)) << call << " " << number;
        EXPECT_NO_THROW(load_checkpoint(run, CheckpointAge::Previous)) << call << " " << number;
        saved = loaded;
      }
    }
  }
  EXPECT_GE(failures, 20);
  save_checkpoint(run, tensors, {.step = saved + 1});
  EXPECT_EQ(test::files_in(run), 4);
}

TEST_F(AtomicFileTest, saving_a_step_again_does_not_touch_the_file_in_use) {
  const auto save = [&](float value) {
    TensorMap tensors;
    tensors.emplace("weight", scalar_tensor(value));
    save_checkpoint(folder / "run", tensors, {.step = 1});
  };
  save(1);
  // The first rename is that of the tensors, the second that of the metadata.
  faults = {.call = "rename", .fail_at = 2, .error = EIO};
  EXPECT_THROW(save(2), IoError);
  faults = {};
  EXPECT_EQ(load_checkpoint(folder / "run").tensors.at("weight").as<float>()[0], 1);
}

}  // namespace
}  // namespace triptych
