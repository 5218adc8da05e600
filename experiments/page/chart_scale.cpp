// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "experiments/page/chart_canvas.h"

namespace triptych::page {
namespace {

constexpr double kEpsilon = 1e-9;

/// The next of 1, 2, 5, 10, 20, … at or above the value.
double nice_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - kEpsilon)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

AxisScale::AxisScale(const ChartAxis& axis, const std::vector<double>& values, int ticks,
                     bool from_zero)
    : axis_(axis) {
  const bool log = axis.scale == Scale::Log;
  for (const double value : values) {
    if (!std::isfinite(value) || (log && !(value > 0))) {
      throw InvalidArgument(fmt::format("{} cannot be drawn on the {} axis \"{}\"", value,
                                        log ? "logarithmic" : "linear", axis.label));
    }
  }
  if (values.empty()) throw InvalidArgument("there is nothing to draw");
  const auto [least, most] = std::ranges::minmax(values);
  low_ = log ? std::log10(least) : least;
  high_ = log ? std::log10(most) : most;
  if (!log && from_zero) {
    low_ = std::min(low_, 0.0);
    high_ = std::max(high_, 0.0);
  }
  log ? round_log(ticks) : round_linear(ticks);
}

void AxisScale::round_linear(int ticks) {
  if (high_ - low_ < kEpsilon * std::max(std::fabs(low_), std::fabs(high_)) || high_ == low_) {
    const double margin = high_ == 0 ? 1 : std::fabs(high_) / 2;
    if (low_ != 0) low_ -= margin;
    high_ += margin;
  }
  const double asked = nice_step((high_ - low_) / ticks);
  const double step = axis_.whole ? std::max(1.0, asked) : asked;
  low_ = step * std::floor(low_ / step + kEpsilon);
  high_ = step * std::ceil(high_ / step - kEpsilon);
  prefix_ = prefix_for(std::max(std::fabs(low_), std::fabs(high_)), axis_.unit);
  decimals_ =
      std::max(0, static_cast<int>(-std::floor(std::log10(step / prefix_.factor) + kEpsilon)));
  const auto count = static_cast<int>(std::lround((high_ - low_) / step));
  for (int i = 0; i <= count; ++i) ticks_.push_back(low_ + i * step);
}

void AxisScale::round_log(int ticks) {
  const bool wide = high_ - low_ > 1.5;
  const double near_low = low_ + (low_ == high_ ? -kEpsilon : kEpsilon);
  double low = std::floor(low_) - 1, high = std::ceil(high_) + 1;
  std::vector<double> labelled;
  for (double e = low; e <= high_ + 1; ++e) {
    for (const double fraction : {0.0, std::log10(2), std::log10(5)}) {
      const double at = e + fraction;
      if (at <= near_low) low = at;
      if (at >= high_ - kEpsilon && at < high && at > low) high = at;
      if (fraction == 0 || !wide) labelled.push_back(at);
    }
  }
  low_ = low;
  high_ = high;
  std::erase_if(labelled, [&](double at) { return at < low_ - kEpsilon || at > high_ + kEpsilon; });
  const auto stride = std::max(1, static_cast<int>(std::ceil((high_ - low_) / ticks)));
  for (std::size_t i = 0; i < labelled.size(); i += wide ? static_cast<std::size_t>(stride) : 1) {
    ticks_.push_back(std::pow(10, labelled[i]));
  }
}

double AxisScale::place(double value) const {
  return ((axis_.scale == Scale::Log ? std::log10(value) : value) - low_) / (high_ - low_);
}

double AxisScale::high() const { return axis_.scale == Scale::Log ? std::pow(10, high_) : high_; }

std::string AxisScale::tick_label(double value) const {
  if (axis_.scale == Scale::Linear) {
    const double shown = value / prefix_.factor;
    return fmt::format("{:.{}f}", std::fabs(shown) < kEpsilon ? 0.0 : shown, decimals_);
  }
  const auto symbol = unit_symbol(axis_.unit);
  const bool prefixed = prefix_for(1e3, axis_.unit).factor > 1 || axis_.unit == "s";
  if (!prefixed) return fmt::format("{:g}", value);
  const auto prefix = prefix_for(value, axis_.unit);
  const bool short_unit = symbol.size() <= 1;
  const auto suffix = prefix.symbol + (short_unit ? symbol : "");
  return fmt::format("{:g}", value / prefix.factor) + (suffix.empty() ? "" : "\u00A0" + suffix);
}

std::string AxisScale::title() const {
  if (axis_.unit == "count") return axis_.label;
  const auto symbol = prefix_.symbol + unit_symbol(axis_.unit);
  return fmt::format("{} ({})", axis_.label, symbol.empty() ? "no unit" : symbol);
}

}  // namespace triptych::page
