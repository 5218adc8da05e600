// The progress of a run on disk as soon as it is known: metrics.csv, a row per evaluation, which is
// replaced as a whole, so that a resumed run repeats no row. The same as scalars for TensorBoard
// (event_file.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "experiments/training/event_file.h"
#include "experiments/training/run_folder.h"

namespace triptych::training {

/// An evaluation, and where in the run it came.
struct MetricsRow {
  EpochReport report;
  std::int64_t step = 0;    ///< finished steps
  float learning_rate = 0;  ///< of the last of them
};

/// Scores of a run.
struct MetricsColumns {
  std::int64_t classes = 1;  ///< classes with Dice and IoU. 0: none, the model makes no maps
  bool accuracy = true;
};

MetricsColumns columns_of(const RunConfig& config);

/// Header and rows. Unknown scores stay empty: without validation images, and of classes that are
/// neither there nor predicted.
std::string metrics_csv(std::span<const MetricsRow> rows, const MetricsColumns& columns);

/// The scalars of a row for TensorBoard.
Scalars scalars_of(const MetricsRow& row, const MetricsColumns& columns = {});

class MetricsLog {
 public:
  /// Begins or continues the log in `folder`, which is locked. Throws InvalidArgument when a
  /// metrics.csv that this program did not write is there.
  MetricsLog(std::filesystem::path folder, const MetricsColumns& columns);

  /// All evaluations so far, with the last one new.
  void write(std::span<const MetricsRow> rows);

 private:
  std::filesystem::path folder_;
  MetricsColumns columns_;
  std::optional<EventFile> events_;  ///< from the first evaluation on
};

}  // namespace triptych::training
