// Pictures that pass through a model in bands: the bits of the whole, and the exceptions.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/streamed_prediction.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>

#include "core/base/interrupt.h"
#include "experiments/training/training_run.h"
#include "tests/unit/io/test_files.h"
#include "tests/unit/training/data/pictures.h"

namespace triptych::training::streamed_prediction_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<PredictionTarget> kBoth = {{PredictionFile::Mask, "mask.tif"},
                                             {PredictionFile::Probabilities, "p.tif"}};

class StreamedPredictionTest : public ::testing::Test {
 protected:
  StreamedPredictionTest() {
    auto& config = run.config;
    config.model = model_preset("unet-s");
    config.model.base = 2;
    config.model.depth = 1;
    config.model.size = 16;
    config.data.synthetic_images = 3;
    config.training.batch = 1;
    config.epochs = 0;
    config.steps = 1;
    const std::atomic<bool> interrupted = false;
    TrainingRun(machine, config, folder / "run").train({}, interrupted);
    run = load_run(folder / "run");
    predictor.emplace(machine, run.config.model, run.states, TileOptions{32, 8});
  }

  void put(const PictureForm& form) {
    const segmentation::Size size = {form.height, form.width * form.channels};
    const auto pixels = segmentation::random_picture(size, 5, 256, 3);
    const Picture picture = {form, {pixels.begin(), pixels.end()}};
    save_tiff(folder / "in.tif", {&picture, 1}, {300, 300, 2, "of a test"});
    file.emplace(folder / "in.tif");
  }

  /// Expects the files that a prediction of the whole gives, and fewer rows at a time.
  void expect_the_same(const SegmenterOptions& options = {}) {
    Segmenter segmenter(*predictor, run, options);
    const PredictionFileOptions files = {.format = PictureFormat::Tiff, .notes = file->notes()};
    auto sample = segmentation::load_sample(*file, 0, 1);
    const auto original = sample;
    if (run.config.data.normalize == segmentation::NormalizeBy::Image)
      segmentation::normalize_by_itself(sample);
    const auto predicted = segmenter.segment(sample);
    StreamedPrediction streamed(segmenter, run, *file, 0);
    EXPECT_THAT(streamed.obstacle(kBoth, files, options.test_time), IsEmpty());
    const auto warning = streamed.prepare();
    const bool alone = run.config.data.normalize == segmentation::NormalizeBy::Image;
    EXPECT_EQ(warning, alone ? ""
                             : segmentation::range_warning(segmentation::values_of(original, {}),
                                                           run.normalization));
    OutputLedger own(folder.path());
    streamed.write(kBoth, files, own);
    for (const auto& [kind, name] : kBoth) {
      test::put_file(folder / "whole.tif", encode(kind, original, predicted, run.config, files));
      PictureFile whole(folder / "whole.tif"), parts(folder.path() / name);
      EXPECT_EQ(parts.form(), whole.form());
      EXPECT_EQ(parts.read().samples, whole.read().samples);
      EXPECT_EQ(parts.notes().description, "of a test");
      EXPECT_EQ(parts.notes().x_resolution, whole.notes().x_resolution);
    }
  }

  test::TemporaryFolder folder;
  DeviceSet machine{{.threads = 1}};
  SavedRun run;
  std::optional<Predictor> predictor;
  std::optional<PictureFile> file;
};

TEST_F(StreamedPredictionTest, has_the_bits_of_the_whole_at_every_size) {
  for (const auto& [width, height] : {std::pair{100, 77}, {33, 32}, {32, 33}, {300, 9}, {5, 290}}) {
    put({width, height, 1, 8, false});
    expect_the_same();
  }
  put({90, 70, 3, 8, false, true});
  expect_the_same({.threshold = 0.4F});
  run.config.data.normalize = segmentation::NormalizeBy::Image;
  run.normalization = {};
  expect_the_same();
}

TEST_F(StreamedPredictionTest, a_wish_to_stop_leaves_no_file) {
  put({100, 77, 1, 8, false});
  std::atomic<bool> interrupted = false;
  predictor->stop_at(interrupted);
  Segmenter segmenter(*predictor, run);
  StreamedPrediction streamed(segmenter, run, *file, 0);
  OutputLedger own(folder.path());
  int tiles = 0;
  predictor->observe([&](const Executor&) { interrupted = ++tiles == 2; });
  EXPECT_THROW(streamed.write(kBoth, {.format = PictureFormat::Tiff}, own), Interrupted);
  EXPECT_EQ(tiles, 2);
  for (const auto& [kind, name] : kBoth) EXPECT_FALSE(std::filesystem::exists(folder / name));
}

TEST_F(StreamedPredictionTest, says_what_needs_the_picture_whole) {
  put({40, 40, 1, 8, false});
  Segmenter segmenter(*predictor, run);
  const StreamedPrediction streamed(segmenter, run, *file, 0);
  const PredictionFileOptions files = {.format = PictureFormat::Tiff};
  EXPECT_THAT(streamed.obstacle({{PredictionFile::Instances, "i.tif"}}, files, TestTime::None),
              HasSubstr("instances"));
  EXPECT_THAT(streamed.obstacle(kBoth, files, TestTime::Flips), HasSubstr("tta"));
  EXPECT_THAT(streamed.obstacle(kBoth, {.format = PictureFormat::Png}, TestTime::None),
              HasSubstr("format tiff"));
  EXPECT_LT(streamed.bytes(2), 4 << 20);
}

}  // namespace
}  // namespace triptych::training::streamed_prediction_tests
