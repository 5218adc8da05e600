// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/statistics.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/median.h"

namespace triptych::measure {

page::Json times_json(const Statistics& times, TimeKind kind) {
  return {{"samples", times.samples},
          {"median", page::time_json({times.median, kind})},
          {"min", page::time_json({times.min, kind})},
          {"max", page::time_json({times.max, kind})}};
}

Statistics times_from(const page::Json& json) {
  const auto seconds = [&](const char* name) { return json.at(name).at("value").get<double>(); };
  return {seconds("median"), seconds("min"), seconds("max"), json.at("samples")};
}

Statistics statistics_of(std::vector<double> values) {
  if (values.empty()) throw InvalidArgument("no samples to take the median of");
  const auto [least, most] = std::ranges::minmax(values);
  const auto samples = static_cast<int>(values.size());
  return {median_of(std::move(values)), least, most, samples};
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
