// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/processor_load.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

namespace triptych::measure {
namespace {

// Limit of other programs' share before a warning. They may always use idle time.
constexpr double kOthers = 0.1;
constexpr double kIdle = 0.25;

/// Ticks of all processors: user, nice, system, idle, iowait, irq, softirq, steal.
using Ticks = std::array<double, 8>;

std::optional<Ticks> ticks_of(std::string_view stat) {
  std::istringstream text{std::string(stat)};
  std::string name;
  Ticks ticks{};
  text >> name;
  for (auto& tick : ticks) text >> tick;
  if (name != "cpu" || !text) return std::nullopt;
  return ticks;
}

std::string read_stat() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return line;
}

/// Processor time of this process and of its children that have ended.
double own_seconds() {
  double seconds = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const auto& time : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return seconds;
}

}  // namespace

std::optional<ProcessorShares> shares_between(std::string_view before, std::string_view after,
                                              double own_s, double ticks_per_s) {
  const auto begin = ticks_of(before), end = ticks_of(after);
  if (!begin || !end) return std::nullopt;
  double all = 0;
  for (std::size_t i = 0; i < end->size(); ++i) all += (*end)[i] - (*begin)[i];
  if (all <= 0) return std::nullopt;
  const double idle = ((*end)[3] - (*begin)[3] + (*end)[4] - (*begin)[4]) / all;
  const double own = std::min(own_s * ticks_per_s / all, 1 - idle);
  return ProcessorShares{own, 1 - idle - own, idle};
}

std::string busy_note(const std::optional<ProcessorShares>& shares) {
  if (!shares || shares->others <= kOthers || shares->idle >= kIdle) return {};
  return fmt::format(
      "the processors were busy: other programs took {:.0f} % of their time and left {:.0f} % "
      "idle; measured times and speedups are unreliable, repeat them on a quiet machine",
      100 * shares->others, 100 * shares->idle);
}

ProcessorWatch::ProcessorWatch() : before_(read_stat()), own_s_(own_seconds()) {}

std::string ProcessorWatch::busy_note() const {
  return measure::busy_note(shares_between(before_, read_stat(), own_seconds() - own_s_,
                                           static_cast<double>(sysconf(_SC_CLK_TCK))));
}

}  // namespace triptych::measure
