// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_folder.h"

#include <gmock/gmock.h>

#include <limits>

#include "core/base/random.h"
#include "core/io/checkpoint.h"
#include "core/io/output_ledger.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SavedRun run_of(int steps) {
  SavedRun run;
  run.config.model = model_preset("unet-s");
  run.config.accumulate = 2;
  run.normalization = {.mean = {0.5F}, .deviation = {0.25F}};
  run.losses.assign(static_cast<std::size_t>(steps), 0.5F);
  run.states.emplace("weight", scalar_tensor(static_cast<float>(steps)));
  return run;
}

void save(const std::filesystem::path& folder, const SavedRun& run) {
  save_run(folder, run, sources_of(run.states));
}

/// The problem that keeps the run from being loaded, or that it is loaded.
std::string problem_of(const std::filesystem::path& folder) {
  try {
    load_run(folder);
    return "loaded";
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_run(const SavedRun& run, int steps) {
  const auto expected = run_of(steps);
  EXPECT_EQ(to_json(run.config), to_json(expected.config));
  EXPECT_EQ(run.losses, expected.losses);
  EXPECT_EQ(run.normalization.mean, expected.normalization.mean);
  EXPECT_EQ(run.normalization.deviation, expected.normalization.deviation);
  EXPECT_EQ(run.states.at("weight").as<float>()[0], static_cast<float>(steps));
}

TEST(RunFolder, a_damaged_newest_checkpoint_gives_way_to_the_one_before_and_says_why) {
  for (const auto* file : {"checkpoint-000002.json", "step-000000002.safetensors"}) {
    const test::TemporaryFolder folder;
    for (const int steps : {1, 2}) save(folder.path(), run_of(steps));
    EXPECT_THAT(load_run(folder.path()).notes, IsEmpty());
    const auto path = folder.path() / "checkpoint" / file;
    const auto content = test::get_file(path);
    test::put_file(path, content.substr(0, content.size() / 2));
    const auto run = load_run(folder.path());
    expect_run(run, 1);
    EXPECT_THAT(run.notes, ElementsAre(testing::AllOf(HasSubstr(file), HasSubstr("of step 1"))));
    std::filesystem::remove(folder.path() / "checkpoint/step-000000001.safetensors");
    EXPECT_THAT(problem_of(folder.path()),
                testing::AllOf(HasSubstr(file), HasSubstr("step-000000001.safetensors")));
  }
}

TEST(RunFolder, each_channel_keeps_its_normalisation) {
  const test::TemporaryFolder folder;
  auto run = run_of(1);
  run.config.model.in_channels = 2;
  run.config.data.source = "folder";
  run.normalization = {.mean = {0.5F, 7}, .deviation = {0.25F, 1}};
  save(folder.path(), run);
  EXPECT_EQ(load_run(folder.path()).normalization, run.normalization);
  run.normalization.mean.push_back(3);
  save(folder.path(), run);
  EXPECT_THAT(problem_of(folder.path()), HasSubstr("3 numbers for 2 channels"));
}

/// Bits are flipped and ends cut off anywhere in the four files.
TEST(RunFolder, what_a_kill_left_of_a_first_checkpoint_is_no_obstacle) {
  const test::TemporaryFolder folder;
  const auto run = folder.path() / "run";
  const auto checkpoint = run / "checkpoint";
  std::filesystem::create_directories(checkpoint);
  test::put_file(checkpoint / "step-000000009.safetensors", "mine");
  EXPECT_THROW(require_room(run), InvalidArgument) << "no metadata lists it";
  std::filesystem::remove(checkpoint / "step-000000009.safetensors");
  TensorMap tensors;
  tensors.emplace("w", Tensor(Shape{1}, std::vector<float>{1}));
  save_checkpoint(checkpoint, tensors, {});
  std::filesystem::rename(checkpoint / "checkpoint-000001.json",
                          checkpoint / ".checkpoint-000001.json.1.0.triptych.tmp");
  EXPECT_NO_THROW(require_room(run));
  test::put_file(run / "checkpoint/notes.txt", "mine");
  EXPECT_THROW(require_room(run), InvalidArgument);
}

TEST(RunFolder, knows_the_files_that_its_run_needs) {
  const test::TemporaryFolder folder;
  const auto run = folder / "run";
  EXPECT_EQ(run_that_needs(run / "model.onnx"), "") << "there is no run yet";
  save(run, run_of(1));
  save(run / "best", run_of(1));
  std::filesystem::create_directory_symlink(run, folder / "link");
  for (const auto* name : {"model.onnx", "report.json", "losses.csv", "metrics.csv", "updates.csv",
                           "events.out.tfevents.000001.triptych", "checkpoint/anything",
                           "best/model.onnx", "best/checkpoint/step-000000001.safetensors"}) {
    EXPECT_THAT(run_that_needs(run / name), HasSubstr("run")) << name;
    EXPECT_THAT(run_that_needs(folder / "link/best/.." / name), HasSubstr("run")) << name;
  }
  for (const auto* name : {"report.html", "loss.svg", "other.onnx", "masks/a.png"})
    EXPECT_EQ(run_that_needs(run / name), "") << name;
}

TEST(RunFolder, damage_anywhere_gives_the_same_values_a_note_or_an_error) {
  const test::TemporaryFolder folder;
  for (const int steps : {1, 2}) save(folder.path(), run_of(steps));
  RandomStream random(11, 0);
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(folder / "checkpoint")) {
    files.push_back(item.path());
  }
  ASSERT_EQ(files.size(), 4U);
  std::ranges::sort(files);
  const auto damage = [&](const std::filesystem::path& file) {
    auto content = test::get_file(file);
    const auto at = static_cast<std::size_t>(random.below(std::ssize(content)));
    if (random.below(2) == 0) {
      content.resize(at);
    } else {
      content[at] = static_cast<char>(content[at] ^ (1 << random.below(8)));
    }
    test::put_file(file, content);
  };
  int replaced = 0, refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::string> contents;
    for (const auto& file : files) contents.push_back(test::get_file(file));
    for (auto count = 1 + random.below(2); count > 0; --count) {
      damage(files[static_cast<std::size_t>(random.below(4))]);
    }
    try {
      const auto run = load_run(folder.path());
      const bool newest = run.losses.size() == 2;
      EXPECT_EQ(run.notes.empty(), newest);
      expect_run(run, newest ? 2 : 1);
      if (!newest) ++replaced;
    } catch (const Error&) {
      ++refused;
    }
    for (std::size_t i = 0; i < files.size(); ++i) test::put_file(files[i], contents[i]);
  }
  EXPECT_GT(replaced, 50);
  EXPECT_GT(refused, 10);
}

/// Replaces the first `from` of the run that the newest checkpoint stores.
void edit_run(const std::filesystem::path& folder, const std::string& from, const std::string& to) {
  auto checkpoint = load_checkpoint(folder / "checkpoint");
  auto& run = checkpoint.info.run_json;
  ASSERT_NE(run.find(from), std::string::npos) << from << " in " << run;
  run.replace(run.find(from), from.size(), to);
  save_checkpoint(folder / "checkpoint", checkpoint.tensors, checkpoint.info);
}

TEST(RunFolder, values_that_no_run_has_are_named) {
  const std::pair<const char*, const char*> cases[] = {
      {"\"mean\":[0.5]", "\"mean\":[-1e9]"},
      {"\"deviation\":[0.25]", "\"deviation\":[0]"},
      {"\"deviation\":[0.25]", "\"deviation\":[1e300]"},
      {"\"deviation\":[0.25]", "\"deviation\":[null]"},
      {"\"deviation\":[0.25]", "\"deviation\":0.25"},
      {"\"ranks\":1", "\"ranks\":-1"},
      {"\"ranks\":1", "\"ranks\":1.5"},
      {"\"ranks\":1", "\"ranks\":4294967297"},
      {"\"shards\":0", "\"shards\":-1"},
      {"\"link_latency_s\":1e-06", "\"link_latency_s\":-1e-06"},
      {"\"transport\":\"threads\"", "\"transport\":\"pigeons\""},
      {"\"order\":\"rank-ordered\"", "\"order\":\"sorted\""},
      {"\"strategy\":\"dp\"", "\"strategy\":\"zero9\""},
      {"\"mesh\":\"\"", "\"mesh\":\"dp=2\""},
      {"\"simulate\":\"\"", "\"simulate\":\"vhdl\""},
      {"\"simulate\":\"\"", "\"simulate\":5"},
      {"\"optimizer\":\"adam\"", "\"optimizer\":\"lion\""},
      {"\"loss\":\"cross-entropy\"", "\"loss\":1"},
      {"\"batch\":4", "\"batch\":0"},
      {"\"batch\":4", "\"batch\":1e300"},
      {"\"epochs\":10", "\"epochs\":18446744073709551615"},
      {"\"memory_limit_mib\":0", "\"memory_limit_mib\":18446744073709551615"},
      {"\"momentum\":0.8999999761581421", "\"momentum\":5"},
      {"\"margin\":-1", "\"margin\":-1000"},
      {"\"seed\":0", "\"seed\":\"x\""}};
  for (const auto& [from, to] : cases) {
    const test::TemporaryFolder folder;
    save(folder.path(), run_of(1));
    edit_run(folder.path(), from, to);
    const std::string field = std::string(from).substr(0, std::string(from).find(':'));
    EXPECT_THAT(problem_of(folder.path()), HasSubstr(field)) << to;
  }
}

TEST(RunFolder, a_field_that_is_missing_is_named) {
  for (const std::string field :
       {"kernel", "choice", "winograd", "ranks", "mesh", "accumulate", "patience", "sections",
        "normalize_channels", "border", "statistics_batches", "deviation"}) {
    const test::TemporaryFolder folder;
    save(folder.path(), run_of(1));
    edit_run(folder.path(), "\"" + field + "\":", "\"" + field + "_\":");
    EXPECT_THAT(problem_of(folder.path()),
                testing::AllOf(HasSubstr(folder.path().string()), HasSubstr("\"" + field + "\"")));
  }
}

TEST(RunFolder, keeps_the_scores_of_each_class) {
  const test::TemporaryFolder folder;
  auto run = run_of(1);
  auto& scores = run.epochs.emplace_back().scores;
  scores.images = 2;
  scores.classes = {{2, 0.5, 0.25, 0.375, 0.125}, {}};
  run.epochs.emplace_back();
  save(folder.path(), run);
  const auto epochs = load_run(folder.path()).epochs;
  ASSERT_EQ(epochs.size(), 2U);
  EXPECT_EQ(epochs[0].scores.classes.at(0).pooled_iou, 0.125);
  EXPECT_EQ(epochs[0].scores.classes.at(1).dice, std::nullopt);
  EXPECT_THAT(epochs[1].scores.classes, IsEmpty());
}

TEST(RunFolder, weights_that_are_not_finite_are_neither_saved_nor_loaded) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const test::TemporaryFolder folder;
    save(folder.path(), run_of(1));
    auto run = run_of(2);
    run.states.at("weight").as<float>()[0] = bad;
    EXPECT_THROW(save(folder.path(), run), NumericError);
    expect_run(load_run(folder.path()), 1);

    auto stored = load_checkpoint(folder / "checkpoint");
    stored.tensors.at("weight").as<float>()[0] = bad;
    save_checkpoint(folder / "checkpoint", stored.tensors, stored.info);
    EXPECT_THROW(load_run(folder.path()), InvalidArgument);
    EXPECT_THAT(problem_of(folder.path()), HasSubstr("\"weight\" holds"));
    expect_run(load_run(folder.path(), CheckpointAge::Previous), 1);
  }
}

}  // namespace
}  // namespace triptych::training
