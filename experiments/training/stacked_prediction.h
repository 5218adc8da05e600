// Predictions of all sections of a stack in one TIFF file of each kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/io/output_ledger.h"
#include "core/io/picture.h"
#include "core/io/tiff_stream.h"
#include "experiments/training/prediction_files.h"

namespace triptych::training {

/// Writes one section after another. Without finish() no file remains.
class StackedPrediction {
 public:
  /// All must outlive it.
  StackedPrediction(const std::vector<PredictionTarget>& targets, const RunConfig& config,
                    const PictureFile& input, const PredictionFileOptions& options,
                    OutputLedger& own);

  /// The next section. Throws InvalidArgument when its objects need more bits than those before.
  void add(const segmentation::Sample& sample, const Segmentation& predicted);
  void finish();

 private:
  struct Output {
    PredictionTarget target;
    OutputLedger::Draft file;
    std::unique_ptr<TiffPages> pages;
    int bits = 0;  ///< per sample of the pages so far, or 0
  };

  PictureNotes first_notes(const Picture& page, std::int64_t pages_of_section) const;

  const RunConfig& config_;
  const PictureFile& input_;
  const PredictionFileOptions& options_;
  OutputLedger& own_;
  std::vector<Output> outputs_;
};

}  // namespace triptych::training
