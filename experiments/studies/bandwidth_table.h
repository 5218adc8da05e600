// The memories of several machines next to each other, and next to the survey's figures of a GPU's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/machines/machine_figures.h"
#include "experiments/page/json.h"

namespace triptych::studies {

struct BandwidthOptions {
  std::string backends = "cpu";
  std::string devices;  ///< published machines or device files, as a comma list
  std::string machine;  ///< of a systolic machine
  int threads = 0;
};

/// One machine.
struct BandwidthRow {
  std::string name;                           ///< "cpu", "systolic:mmu16", "h200"
  std::string description;                    ///< empty: not here
  std::string reason, remedy;                 ///< why it has no levels
  std::vector<machines::MemoryLevel> levels;  ///< the nearest first. The last is the main memory
};

/// Figures of the survey: 19 TB/s of SRAM, 1.5 to 2.0 TB/s of HBM.
inline constexpr double kSurveySram = 19e12, kSurveyHbmLow = 1.5e12, kSurveyHbmHigh = 2.0e12;

/// The better of copy and triad, nothing where neither is known.
std::optional<machines::Figure> best_of(const machines::MemoryLevel& level);

/// A level's best over the main memory's. Nothing where one of them is not known.
struct LevelRatio {
  double value = 0;
  TimeKind level = TimeKind::Measured, memory = TimeKind::Measured;
};
std::optional<LevelRatio> ratio_to_memory(const BandwidthRow& row, std::size_t level);

/// Measures, simulates and looks up. Backends that are not here get a reason. Throws
/// InvalidArgument for unknown ones.
std::vector<BandwidthRow> bandwidths_of(const BandwidthOptions& options);

/// One result per machine, and one of the survey's figures.
page::Json to_json(const std::vector<BandwidthRow>& rows);
void print_bandwidths(const std::vector<BandwidthRow>& rows);

}  // namespace triptych::studies
