// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace triptych::app {
namespace {

constexpr std::int64_t kWidth = 30;

}  // namespace

Progress::Progress(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::update(std::int64_t done, std::int64_t total, const std::string& text) {
  using std::chrono::steady_clock;
  if (!enabled_) return;
  const auto now = steady_clock::now();
  if (drawn_ && done < total && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  const auto filled = kWidth * done / std::max<std::int64_t>(1, total);
  fmt::print(stderr, "\r\x1b[K[{}{}] {}/{} {}", std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(kWidth - filled), '.'), done, total, text);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace triptych::app
