// A TIFF that is larger than memory through a model: rows are read, predicted and written band by
// band, to the bits of a prediction of the whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/output_ledger.h"
#include "core/io/picture.h"
#include "experiments/training/prediction_files.h"
#include "experiments/training/segmenter.h"

namespace triptych::training {

/// Pixels above which a picture goes through in bands where it can.
inline constexpr std::int64_t kStreamedPixels = std::int64_t{1} << 26;

class StreamedPrediction {
 public:
  /// Page `page` of `file`. All must outlive it.
  StreamedPrediction(Segmenter& segmenter, const SavedRun& run, PictureFile& file,
                     std::int64_t page);

  /// Why it cannot be done. Empty: it can.
  std::string obstacle(const std::vector<PredictionTarget>& targets,
                       const PredictionFileOptions& options, TestTime test_time) const;
  /// Most bytes that it takes besides the network.
  std::int64_t bytes(std::size_t targets) const;
  /// Statistics of the picture, by two readings, which write() normalises by where the training's
  /// images were normalised by themselves. Else a warning when they are far from those.
  std::string prepare();
  void write(const std::vector<PredictionTarget>& targets, const PredictionFileOptions& options,
             OutputLedger& own);

 private:
  segmentation::Size size() const;

  Segmenter& segmenter_;
  const SavedRun& run_;
  PictureFile& file_;
  std::int64_t page_;
  segmentation::Normalization own_;  ///< of the picture alone. Else nothing is done
};

}  // namespace triptych::training
