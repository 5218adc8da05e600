// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/progress.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/console.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

constexpr std::int64_t kWidth = 30;
constexpr double kSoonest = 1;  // seconds of work before the first estimate

}  // namespace

Progress::Progress(bool silent) : enabled_(!silent && shows_bars()) {}

Progress::~Progress() { erase_bar(); }

void Progress::update(std::int64_t done, std::int64_t total, const std::string& text) {
  using std::chrono::steady_clock;
  if (!enabled_) return;
  const auto now = steady_clock::now();
  if (total != total_ || done < done_) {
    total_ = total;
    first_ = done;
    began_ = now;
  }
  done_ = done;
  if (drawn_ && done < total && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  std::string left;
  const double spent = std::chrono::duration<double>(now - began_).count();
  if (spent >= kSoonest && done > first_ && done < total) {
    const auto pace = spent / static_cast<double>(done - first_);
    left = fmt::format(", {} left", page::format_seconds(pace * static_cast<double>(total - done)));
  }
  const auto filled = kWidth * done / std::max<std::int64_t>(1, total);
  const std::string bar(static_cast<std::size_t>(filled), '#');
  const std::string rest(static_cast<std::size_t>(kWidth - filled), '.');
  draw_bar(
      {{"["}, {bar, Style::Green}, {rest}, {fmt::format("] {}/{} {}{}", done, total, text, left)}});
}

}  // namespace triptych::app
