// SPDX-License-Identifier: Apache-2.0
#include "core/io/checkpoint.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "core/base/random.h"
#include "core/io/sha256.h"
#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorMap tensors_of(std::int64_t step, std::int64_t elements = 10) {
  TensorMap tensors;
  const std::vector<float> values(static_cast<std::size_t>(elements), static_cast<float>(step));
  tensors.emplace("weight", Tensor(Shape{elements}, values));
  tensors.emplace("moment", Tensor(Shape{elements}, values));
  return tensors;
}

void expect_step(const Checkpoint& checkpoint, std::int64_t step) {
  EXPECT_EQ(checkpoint.info.step, step);
  ASSERT_EQ(checkpoint.tensors.size(), 2u);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    EXPECT_THAT(tensor.as<float>(), Each(static_cast<float>(step))) << name;
  }
}

std::string refusal(const std::filesystem::path& folder) {
  try {
    load_checkpoint(folder);
    return "loaded";
  } catch (const IoError& error) {
    return error.what();
  }
}

TEST(Checkpoint, round_trip_keeps_everything) {
  const test::TemporaryFolder folder;
  const CheckpointInfo info = {.step = 120,
                               .epoch = 3,
                               .seed = ~std::uint64_t{0},
                               .samples_drawn = 1920,
                               .model_json = R"({"base":8,"depth":3})",
                               .run_json = R"({"losses":[0.5,0.25]})"};
  save_checkpoint(folder / "a/b", tensors_of(120), info);
  const auto loaded = load_checkpoint(folder / "a/b");
  expect_step(loaded, 120);
  EXPECT_EQ(loaded.info.epoch, info.epoch);
  EXPECT_EQ(loaded.info.seed, info.seed);
  EXPECT_EQ(loaded.info.samples_drawn, info.samples_drawn);
  EXPECT_EQ(loaded.info.model_json, info.model_json);
  EXPECT_EQ(loaded.info.run_json, info.run_json);
}

TEST(Checkpoint, keeps_the_newest_and_the_one_before) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(has_checkpoint(folder.path()));
  for (const int step : {1, 2, 2, 3}) {
    save_checkpoint(folder.path(), tensors_of(step), {.step = step});
    EXPECT_TRUE(has_checkpoint(folder.path()));
    expect_step(load_checkpoint(folder.path()), step);
  }
  expect_step(load_checkpoint(folder.path(), CheckpointAge::Previous), 2);
  EXPECT_EQ(test::files_in(folder.path()), 4);
}

/// A save is killed between the renaming of its tensors and that of its metadata.
void leave_half_a_save(const std::filesystem::path& folder, std::int64_t step) {
  save_checkpoint(folder, tensors_of(step), {.step = step});
  const auto name = fmt::format("checkpoint-{:06}.json", step);
  std::filesystem::rename(folder / name, folder / fmt::format(".{}.1.0.triptych.tmp", name));
}

TEST(Checkpoint, removes_what_a_killed_save_left_and_nothing_else) {
  const test::TemporaryFolder folder;
  leave_half_a_save(folder.path(), 1);
  for (const auto* name : {".step-000000009.safetensors.1.0.triptych.tmp", "notes.txt",
                           ".other.tmp", "step-000000009.safetensors"}) {
    test::put_file(folder / name, "x");
  }
  EXPECT_THAT(left_by_killed_saves(folder.path()), ElementsAre("step-000000001.safetensors"));
  save_checkpoint(folder.path(), tensors_of(9), {.step = 9});
  expect_step(load_checkpoint(folder.path()), 9);
  EXPECT_EQ(test::files_in(folder.path()), 5);
  for (const auto* name : {"notes.txt", ".other.tmp", "step-000000009.safetensors"})
    EXPECT_EQ(test::get_file(folder / name), "x") << name;
}

TEST(Checkpoint, half_a_save_is_removed_with_its_tensors_and_no_other) {
  const test::TemporaryFolder folder;
  save_checkpoint(folder.path(), tensors_of(1), {.step = 1});
  leave_half_a_save(folder.path(), 2);
  test::put_file(folder / "step-000000003.safetensors", "x");
  remove_killed_saves(folder.path());
  expect_step(load_checkpoint(folder.path()), 1);
  EXPECT_EQ(test::files_in(folder.path()), 3);
  EXPECT_EQ(test::get_file(folder / "step-000000003.safetensors"), "x");
  EXPECT_NO_THROW(remove_killed_saves(folder / "none"));
}

TEST(Checkpoint, copies_and_changed_files_of_its_user_stay) {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const auto save = [&](std::int64_t step) {
    save_checkpoint(folder.path(), tensors_of(step), {.step = step});
  };
  save(1);
  fs::copy_file(folder / "step-000000001.safetensors", folder / "step-000000001-good.safetensors");
  fs::copy_file(folder / "checkpoint-000001.json", folder / "checkpoint-000001-good.json");
  test::put_file(folder / "step-000000001.safetensors", "changed by hand");
  save(2);
  fs::remove(folder / "step-000000002.safetensors");
  fs::create_symlink("notes", folder / "step-000000002.safetensors");
  test::put_file(folder / "notes", "x");
  for (const std::int64_t step : {3, 4, 5}) save(step);
  EXPECT_EQ(load_safetensors(folder / "step-000000001-good.safetensors").tensors.size(), 2u);
  EXPECT_TRUE(fs::exists(folder / "checkpoint-000001-good.json"));
  EXPECT_EQ(test::get_file(folder / "step-000000001.safetensors"), "changed by hand");
  EXPECT_TRUE(fs::is_symlink(folder / "step-000000002.safetensors"));
  EXPECT_EQ(test::get_file(folder / "notes"), "x");
  EXPECT_EQ(test::files_in(folder.path()), 9) << "these five and two checkpoints";
}

TEST(Checkpoint, damaged_metadata_stays_and_is_passed_over) {
  const test::TemporaryFolder folder;
  for (const int step : {1, 2}) save_checkpoint(folder.path(), tensors_of(step), {.step = step});
  const auto damaged = folder / "checkpoint-000002.json";
  auto text = test::get_file(damaged);
  text[text.find("\"step\": 2") + 8] = '7';
  test::put_file(damaged, text);
  save_checkpoint(folder.path(), tensors_of(3), {.step = 3});
  EXPECT_EQ(test::get_file(damaged), text);
  expect_step(load_checkpoint(folder.path()), 3);
  expect_step(load_checkpoint(folder.path(), CheckpointAge::Previous), 1);
}

TEST(Checkpoint, refuses_a_configuration_that_is_no_json_object) {
  const test::TemporaryFolder folder;
  for (const auto* text : {"", "[]", "{", R"({"a":1,"a":2})", "\"text\""}) {
    EXPECT_THROW(save_checkpoint(folder.path(), {}, {.model_json = text}), InvalidArgument) << text;
  }
  EXPECT_THROW(save_checkpoint(folder.path(), {}, {.step = -1}), InvalidArgument);
  EXPECT_FALSE(has_checkpoint(folder.path()));
}

TEST(Checkpoint, says_what_is_missing_or_damaged) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.path()), HasSubstr("holds no checkpoint"));
  EXPECT_THAT(refusal(folder / "absent"), HasSubstr("holds no checkpoint"));
  save_checkpoint(folder.path(), tensors_of(1), {.step = 1});
  save_checkpoint(folder.path(), tensors_of(2), {.step = 2});

  const auto file = folder / "step-000000002.safetensors";
  auto content = test::get_file(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  test::put_file(file, content);
  EXPECT_THAT(refusal(folder.path()), HasSubstr("SHA-256"));
  std::filesystem::remove(file);
  EXPECT_THAT(refusal(folder.path()), HasSubstr(file.string()));
  expect_step(load_checkpoint(folder.path(), CheckpointAge::Previous), 1);
  EXPECT_THROW(load_checkpoint(folder.path(), CheckpointAge::Previous, 8), IoError);
}

/// The metadata of one checkpoint with another value or version, and the SHA-256 of its values.
std::string edited_metadata(const std::string& valid, const std::string& from,
                            const std::string& to) {
  auto text = valid;
  text.replace(text.find(from), from.size(), to);
  const auto digest = text.find("\"metadata_sha256\"");
  auto values = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (values.is_discarded() || digest == std::string::npos) return text;
  values.erase("metadata_sha256");
  Sha256 hash;
  const auto dumped = values.dump();
  hash.update(std::as_bytes(std::span(dumped)));
  const auto start = text.find(": \"", digest) + 3;
  return text.replace(start, 64, hash.finish());
}

TEST(Checkpoint, refuses_hostile_metadata_and_does_not_overwrite_it) {
  const test::TemporaryFolder folder;
  save_checkpoint(folder.path(), tensors_of(1), {.step = 1});
  const auto metadata = folder / "checkpoint-000001.json";
  const auto valid = test::get_file(metadata);
  const auto edited = [&](const std::string& from, const std::string& to) {
    return edited_metadata(valid, from, to);
  };
  const std::string cases[] = {"",
                               "{}",
                               "[]",
                               "null",
                               valid.substr(0, valid.size() / 2),
                               valid + "x",
                               std::string(100000, '['),
                               edited("\"schema\": 3", "\"schema\": \"3\""),
                               edited("\"schema\"", "\"version\""),
                               edited("\"metadata_sha256\"", "\"ignored\""),
                               edited("\"step\": 1", "\"step\": -1"),
                               edited("\"step\": 1", "\"step\": 18446744073709551615"),
                               edited("\"step\": 1", "\"step\": 1.5"),
                               edited("\"step\": 1", "\"step\": 1, \"step\": 2"),
                               edited("\"file\": \"", "\"file\": \"../"),
                               edited("\"file\": \"step-", "\"file\": \"step-/../"),
                               edited("\"file\"", "\"File\""),
                               edited("\"model\": {}", "\"model\": 1"),
                               edited("\"run\": {}", "\"run\": {\"a\": " + std::string(100, '[') +
                                                         std::string(100, ']') + "}")};
  for (const auto& text : cases) {
    test::put_file(metadata, text);
    EXPECT_THAT(refusal(folder.path()), HasSubstr("checkpoint-000001.json")) << text.substr(0, 200);
    save_checkpoint(folder.path(), tensors_of(2), {.step = 2});
    expect_step(load_checkpoint(folder.path()), 2);
    EXPECT_EQ(test::get_file(metadata), text);
    std::filesystem::remove(folder / "checkpoint-000002.json");
  }
}

TEST(Checkpoint, of_another_schema_is_refused_and_neither_replaced_nor_passed_over) {
  const test::TemporaryFolder folder;
  for (const int step : {1, 2}) save_checkpoint(folder.path(), tensors_of(step), {.step = step});
  const auto metadata = folder / "checkpoint-000002.json";
  const auto old = edited_metadata(test::get_file(metadata), "\"schema\": 3", "\"schema\": 2");
  test::put_file(metadata, old);
  try {
    load_checkpoint(folder.path());
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr(metadata.string()), HasSubstr("schema 2"),
                               HasSubstr("reads schema 3"), HasSubstr("train again")));
  }
  save_checkpoint(folder.path(), tensors_of(3), {.step = 3});
  EXPECT_EQ(test::get_file(metadata), old);
}

/// Every byte of each metadata file is changed and every length cut: the checkpoint loads with the
/// same values or is refused, and the other one always loads.
TEST(Checkpoint, no_damage_of_metadata_changes_a_value_or_touches_the_other_checkpoint) {
  const test::TemporaryFolder folder;
  const std::string model = R"({"deviation":0.125,"mean":-1.5})";
  for (const int step : {1, 2}) {
    save_checkpoint(folder.path(), tensors_of(step), {.step = step, .model_json = model});
  }
  RandomStream random(7, 0);
  int refused = 0;
  const auto try_with = [&](const std::filesystem::path& file, const std::string& text, int step) {
    test::put_file(file, text);
    const auto own = step == 2 ? CheckpointAge::Newest : CheckpointAge::Previous;
    const auto other = step == 2 ? CheckpointAge::Previous : CheckpointAge::Newest;
    expect_step(load_checkpoint(folder.path(), other), 3 - step);
    try {
      const auto loaded = load_checkpoint(folder.path(), own);
      expect_step(loaded, step);
      EXPECT_EQ(loaded.info.model_json, model) << text;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (const int step : {1, 2}) {
    const auto file = folder / ("checkpoint-00000" + std::to_string(step) + ".json");
    const auto valid = test::get_file(file);
    for (std::size_t i = 0; i < valid.size(); ++i) {
      auto text = valid;
      text[i] = static_cast<char>(text[i] ^ (1 << random.below(8)));
      try_with(file, text, step);
      try_with(file, valid.substr(0, i), step);
    }
    test::put_file(file, valid);
  }
  EXPECT_GT(refused, 500);
}

TEST(Checkpoint, a_full_disk_leaves_the_previous_checkpoint_alone) {
  const test::TemporaryFolder folder;
  save_checkpoint(folder.path(), tensors_of(1), {.step = 1});
  const auto child = test::in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    save_checkpoint(folder.path(), tensors_of(2, 10000), {.step = 2});
  });
  const auto status = test::status_of(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  expect_step(load_checkpoint(folder.path()), 1);
  EXPECT_EQ(test::files_in(folder.path()), 2);
}

/// Saves without end from `step` on and writes each step that is complete to `acknowledge`.
void save_until_killed(const std::filesystem::path& folder, std::int64_t step, int acknowledge) {
  for (;; ++step) {
    save_checkpoint(folder, tensors_of(step, 20000), {.step = step});
    if (::write(acknowledge, &step, sizeof step) != sizeof step) return;
  }
}

/// Kills `save` at a random moment after its first acknowledgement. Returns the last step that it
/// acknowledged. 0: none.
std::int64_t last_before_kill(const std::function<void(int)>& save, RandomStream& random) {
  int channel[2];
  if (::pipe(channel) != 0) return 0;
  const auto child = test::in_child([&] { save(channel[1]); });
  ::close(channel[1]);
  std::int64_t acknowledged = 0;
  // The first acknowledgement shows that saves are under way.
  EXPECT_EQ(::read(channel[0], &acknowledged, sizeof acknowledged), 8);
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(4000)));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(test::status_of(child)));
  while (::read(channel[0], &acknowledged, sizeof acknowledged) == 8) {
  }
  ::close(channel[0]);
  return acknowledged;
}

TEST(Checkpoint, a_reader_beside_a_writer_always_finds_both) {
  const test::TemporaryFolder folder;
  for (const int step : {1, 2}) save_checkpoint(folder.path(), tensors_of(step), {.step = step});
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int step = 3; step <= 100; ++step) {
      save_checkpoint(folder.path(), tensors_of(step), {.step = step});
    }
    done = true;
  });
  int failures = 0;
  while (!done) {
    for (const auto age : {CheckpointAge::Newest, CheckpointAge::Previous}) {
      try {
        load_checkpoint(folder.path(), age);
      } catch (const Error&) {
        ++failures;
      }
    }
  }
  EXPECT_EQ(failures, 0);
}

/// TRIPTYCH_KILLS sets how many.
int kills() {
  const char* wanted = std::getenv("TRIPTYCH_KILLS");
  return wanted == nullptr ? 60 : std::atoi(wanted);
}

TEST(Checkpoint, kills_at_random_moments_lose_nothing_acknowledged) {
  const test::TemporaryFolder folder;
  RandomStream random(2024, 0);
  std::int64_t newest = 0;
  int kills_during_a_save = 0;
  for (int kill = 0; kill < kills(); ++kill) {
    const auto acknowledged = last_before_kill(
        [&](int channel) { save_until_killed(folder.path(), newest + 1, channel); }, random);
    const auto loaded = load_checkpoint(folder.path());
    EXPECT_GE(loaded.info.step, acknowledged);
    EXPECT_LE(loaded.info.step, acknowledged + 1);
    expect_step(loaded, loaded.info.step);
    if (test::files_in(folder.path()) != 4) ++kills_during_a_save;
    newest = loaded.info.step;
  }
  EXPECT_GT(kills_during_a_save, 0) << "no kill fell into a save: the test proves nothing";
}

/// The control: a writer that replaces nothing, but overwrites the existing file.
void write_in_place_until_killed(const std::filesystem::path& path, int acknowledge) {
  for (std::int64_t step = 1;; ++step) {
    const auto scratch = path.parent_path() / "scratch";
    save_safetensors(scratch, tensors_of(step, 20000));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << read_file(scratch);
    if (::write(acknowledge, &step, sizeof step) != sizeof step) return;
  }
}

TEST(Checkpoint, kills_tear_the_file_of_a_writer_in_place) {
  const test::TemporaryFolder folder;
  RandomStream random(2025, 0);
  int torn = 0;
  for (int kill = 0; kill < 2000 && torn == 0; ++kill) {
    last_before_kill([&](int channel) { write_in_place_until_killed(folder / "w", channel); },
                     random);
    try {
      load_safetensors(folder / "w");
    } catch (const IoError&) {
      ++torn;
    }
  }
  EXPECT_GT(torn, 0) << "the kills of the test above would find nothing";
}

}  // namespace
}  // namespace triptych
