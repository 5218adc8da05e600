// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/statistics.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/base/error.h"

namespace triptych::measure {

Statistics statistics_of(std::vector<double> values) {
  if (values.empty()) throw InvalidArgument("no samples to take the median of");
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back(), static_cast<int>(values.size())};
}

Statistics time_repeatedly(const std::function<void()>& run, const std::function<double()>& now,
                           int repeats) {
  run();
  std::vector<double> samples;
  double total = 0;
  const auto enough = [&] {
    const auto count = static_cast<int>(samples.size());
    if (repeats > 0) return count >= repeats;
    return (total > 1 && count >= 5) || count >= 1000;
  };
  while (!enough()) {
    const double start = now();
    run();
    samples.push_back(now() - start);
    total += samples.back();
  }
  return statistics_of(std::move(samples));
}

double peak_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace triptych::measure
