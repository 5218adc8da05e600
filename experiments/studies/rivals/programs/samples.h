// Common part of the baseline programs: times of runs after a warm-up, and one line of JSON with
// them. Every run is waited for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace triptych::rivals {

inline double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// Seconds of `repeats` runs.
template <class Run>
std::vector<double> time_runs(int repeats, const Run& run) {
  run();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const double start = now();
    run();
    seconds.push_back(now() - start);
  }
  return seconds;
}

/// The largest resident set that this process had.
inline double peak_memory_mib() {
  double kib = 0;
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    for (char line[256]; std::fgets(line, sizeof line, status) != nullptr;) {
      if (std::strncmp(line, "VmHWM:", 6) == 0) std::sscanf(line + 6, "%lf", &kib);
    }
    std::fclose(status);
  }
  return kib / 1024;
}

inline void print_samples(const std::string& version, const std::vector<double>& seconds) {
  std::printf("{\"version\": \"%s\", \"peak_memory_mib\": %.1f, \"seconds\": [", version.c_str(),
              peak_memory_mib());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::printf("%s%.9f", i == 0 ? "" : ", ", seconds[i]);
  }
  std::printf("]}\n");
}

}  // namespace triptych::rivals
