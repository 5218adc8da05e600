// Progress for people: one bar that is drawn over on a terminal, plain lines elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace triptych::app {

class Progress {
 public:
  /// Draws nothing when `silent`: another process speaks.
  explicit Progress(bool silent = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "[#####.....] 12/40 text, 3.2 min left", at most ten times a second. The estimate uses the
  /// pace since work with this total began or resumed.
  void update(std::int64_t done, std::int64_t total, const std::string& text);

 private:
  bool enabled_;
  bool drawn_ = false;  ///< some of the work
  std::chrono::steady_clock::time_point last_, began_;
  std::int64_t total_ = -1, first_ = 0, done_ = 0;  ///< of the work in progress
};

}  // namespace triptych::app
