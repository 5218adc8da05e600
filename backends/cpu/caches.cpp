// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/caches.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <string>

namespace triptych::cpu {
namespace {

constexpr int kMostCaches = 10;
constexpr double kUsualSecondLevel = 1048576;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "48K", "32768K", "1M" as bytes, and 0 for anything else.
double bytes_of(const std::string& size) {
  char* rest = nullptr;
  const double number = std::strtod(size.c_str(), &rest);
  if (number <= 0) return 0;
  if (*rest == 'K') return number * 1024;
  return *rest == 'M' ? number * 1048576 : number;
}

/// Processors of a mask as hexadecimal digits with commas between: "00000000,00000003".
int processors_of(const std::string& mask) {
  int count = 0;
  for (const char c : mask) {
    if (c == ',') continue;
    const auto digit = std::string("0123456789abcdef").find(c);
    if (digit != std::string::npos) count += std::popcount(static_cast<unsigned>(digit));
  }
  return std::max(1, count);
}

std::vector<Cache> described_by(const std::string& system) {
  std::vector<Cache> caches;
  for (int i = 0; i < kMostCaches; ++i) {
    const auto folder = system + "/index" + std::to_string(i) + "/";
    const auto type = first_line(folder + "type");
    if (type != "Data" && type != "Unified") continue;
    const Cache cache = {std::atoi(first_line(folder + "level").c_str()),
                         bytes_of(first_line(folder + "size")),
                         processors_of(first_line(folder + "shared_cpu_map"))};
    if (cache.level > 0 && cache.bytes > 0) caches.push_back(cache);
  }
  std::ranges::sort(caches, {}, &Cache::level);
  return caches;
}

}  // namespace

std::vector<Cache> data_caches(const std::string& system) {
  auto caches = described_by(system);
  if (!caches.empty()) return caches;
  const int all = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  const std::pair<int, int> names[] = {
      {_SC_LEVEL1_DCACHE_SIZE, 1}, {_SC_LEVEL2_CACHE_SIZE, 2}, {_SC_LEVEL3_CACHE_SIZE, 3}};
  for (const auto& [name, level] : names) {
    const long bytes = sysconf(name);
    if (bytes > 0) caches.push_back({level, static_cast<double>(bytes), level == 3 ? all : 1});
  }
  return caches;
}

double second_level_bytes() {
  static const double bytes = [] {
    const auto caches = data_caches();
    const auto second = std::ranges::find(caches, 2, &Cache::level);
    return second == caches.end() ? kUsualSecondLevel : second->bytes;
  }();
  return bytes;
}

}  // namespace triptych::cpu
