// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/unit_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/list_text.h"

namespace triptych::app {
namespace {

using Suffixes = std::span<const std::pair<std::string_view, double>>;

constexpr double kKibi = 1024, kMebi = kKibi * kKibi;

constexpr auto kMebibytes = std::to_array<std::pair<std::string_view, double>>({
    {"B", 1 / kMebi},
    {"K", 1 / kKibi},
    {"KiB", 1 / kKibi},
    {"KB", 1e3 / kMebi},
    {"kB", 1e3 / kMebi},
    {"M", 1},
    {"MiB", 1},
    {"MB", 1e6 / kMebi},
    {"G", kKibi},
    {"GiB", kKibi},
    {"GB", 1e9 / kMebi},
    {"T", kMebi},
    {"TiB", kMebi},
    {"TB", 1e12 / kMebi},
});

constexpr auto kSeconds = std::to_array<std::pair<std::string_view, double>>({
    {"ns", 1e-9},
    {"us", 1e-6},
    {"µs", 1e-6},
    {"ms", 1e-3},
    {"s", 1},
    {"min", 60},
    {"h", 3600},
});

constexpr auto kBytesPerSecond = std::to_array<std::pair<std::string_view, double>>({
    {"B/s", 1},
    {"KB/s", 1e3},
    {"kB/s", 1e3},
    {"MB/s", 1e6},
    {"GB/s", 1e9},
    {"TB/s", 1e12},
    {"KiB/s", kKibi},
    {"MiB/s", kMebi},
    {"GiB/s", kMebi* kKibi},
    {"TiB/s", kMebi* kMebi},
});

Suffixes suffixes_of(training::Unit unit) {
  switch (unit) {
    case training::Unit::None:
      break;
    case training::Unit::Mebibytes:
      return kMebibytes;
    case training::Unit::Seconds:
      return kSeconds;
    case training::Unit::BytesPerSecond:
      return kBytesPerSecond;
  }
  return {};
}

std::optional<double> factor_of(training::Unit unit, std::string_view suffix) {
  for (const auto& [name, factor] : suffixes_of(unit))
    if (name == suffix) return factor;
  return std::nullopt;
}

}  // namespace

std::string number_in(training::Unit unit, const std::string& text) {
  double value = 0;
  const auto* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end == last) return text;
  const auto factor =
      factor_of(unit, trimmed(std::string_view(end, static_cast<std::size_t>(last - end))));
  if (!factor || !std::isfinite(value * *factor)) return text;
  // A limit in MiB is a whole number. One below 1 MiB stays 1: 0 would mean "no limit".
  if (unit == training::Unit::Mebibytes && value > 0)
    return fmt::format("{:.0f}", std::max(1.0, std::floor(value * *factor)));
  return fmt::format("{}", value * *factor);
}

std::string unit_example(training::Unit unit) {
  switch (unit) {
    case training::Unit::None:
      break;
    case training::Unit::Mebibytes:
      return "2GiB";
    case training::Unit::Seconds:
      return "50us";
    case training::Unit::BytesPerSecond:
      return "10GB/s";
  }
  return {};
}

}  // namespace triptych::app
