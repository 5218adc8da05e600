// Progress for people: one bar that is drawn over on a terminal, plain lines elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace triptych::app {

class Progress {
 public:
  /// Draws on standard error, and only when that is a terminal and `quiet` is false.
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "[#####.....] 12/40 text"; at most ten times a second.
  void update(std::int64_t done, std::int64_t total, const std::string& text);
  /// Removes the bar, so that a line can be printed.
  void clear();

 private:
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace triptych::app
