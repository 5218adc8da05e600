// Predictions of a run on its validation images: pictures and scores.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/io/image.h"
#include "experiments/training/data/calibration.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/data/panels.h"
#include "experiments/training/training_run.h"

namespace triptych::training {

std::filesystem::path TrainingRun::mask_file(const segmentation::Sample& sample) {
  return kMasksFolder / (sample.name + ".png");
}

void TrainingRun::write_masks(std::size_t count) {
  if (!config_.model.maps) return;
  const auto in_place = for_evaluation();
  if (!leads_) return;
  make_folder(folder_ / kMasksFolder);
  OutputLedger own(folder_);
  own.remove_own_of(kMasksFolder);
  for (std::size_t i = 0; i < std::min(count, data_.validation.samples.size()); ++i)
    write_picture(own, *data_.validation.whole(i));
}

void TrainingRun::write_picture(OutputLedger& own, const segmentation::Sample& sample) {
  const auto classes = std::max<std::int64_t>(2, config_.model.classes);
  const auto picture = segmentation::truth_and_prediction(sample, predict(sample), classes);
  own.write(mask_file(sample), encode_png(picture));
}

std::optional<Evaluation> TrainingRun::judge_images(std::size_t worst,
                                                    const std::atomic<bool>& interrupted) {
  if (!config_.model.maps || data_.validation.samples.empty()) return std::nullopt;
  const auto in_place = for_evaluation();
  if (!leads_) return std::nullopt;
  const auto channels = config_.model.classes;
  Evaluation evaluation(channels, {});
  for (std::size_t i = 0; i < data_.validation.samples.size(); ++i) {
    trainer_.tell_busy("evaluating images");
    const auto sample = data_.validation.whole(i);
    const segmentation::Size size = {sample->height, sample->width};
    const auto logits = predictor_.logits(segmentation::normalized(*sample, data_.normalization),
                                          size, [&] { return !interrupted; });
    if (logits.empty()) return std::nullopt;
    evaluation.add(*sample,
                   {size, channels, segmentation::probabilities_from_logits(logits, channels),
                    segmentation::classes_from_logits(logits, channels)});
  }
  OutputLedger own(folder_);
  for (const auto i : evaluation.worst(worst)) write_picture(own, *data_.validation.whole(i));
  return evaluation;
}

}  // namespace triptych::training
