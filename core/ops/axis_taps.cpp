// SPDX-License-Identifier: Apache-2.0
#include "core/ops/axis_taps.h"

#include <algorithm>

namespace triptych {
namespace {

/// Calls visit(position in y, position in x, weight) for every tap, y in row-major order.
template <class Visitor>
void for_each_tap(std::span<const AxisTaps> axes, std::span<const std::int64_t> x_strides,
                  const Visitor& visit, std::int64_t y = 0, std::int64_t x = 0, double weight = 1) {
  const auto depth = x_strides.size() - axes.size();
  if (axes.empty()) return visit(static_cast<std::size_t>(y), static_cast<std::size_t>(x), weight);
  const auto& axis = axes.front();
  for (std::int64_t i = 0; i < axis.size(); ++i) {
    const auto first = static_cast<std::size_t>(axis.begin[static_cast<std::size_t>(i)]);
    const auto last = static_cast<std::size_t>(axis.begin[static_cast<std::size_t>(i) + 1]);
    for (auto t = first; t < last; ++t) {
      for_each_tap(axes.subspan(1), x_strides, visit, y * axis.size() + i,
                   x + axis.index[t] * x_strides[depth], weight * double{axis.weight[t]});
    }
  }
}

}  // namespace

std::int64_t AxisTaps::most() const {
  std::int64_t most = 0;
  for (std::size_t i = 1; i < begin.size(); ++i) most = std::max(most, begin[i] - begin[i - 1]);
  return most;
}

void AxisTaps::add(std::int64_t input, float tap_weight) {
  index.push_back(input);
  weight.push_back(tap_weight);
}

AxisTaps copy_taps(std::span<const std::int64_t> sources) {
  AxisTaps taps;
  for (const auto source : sources) {
    if (source >= 0) taps.add(source, 1);
    taps.next();
  }
  return taps;
}

AxisTaps transposed(const AxisTaps& taps, std::int64_t inputs) {
  AxisTaps back;
  back.begin.assign(static_cast<std::size_t>(inputs) + 1, 0);
  for (const auto input : taps.index) ++back.begin[static_cast<std::size_t>(input) + 1];
  for (std::size_t i = 1; i < back.begin.size(); ++i) back.begin[i] += back.begin[i - 1];
  back.index.resize(taps.index.size());
  back.weight.resize(taps.index.size());
  auto next = back.begin;
  for (std::size_t output = 0; output + 1 < taps.begin.size(); ++output) {
    for (auto t = taps.begin[output]; t < taps.begin[output + 1]; ++t) {
      const auto tap = static_cast<std::size_t>(t);
      const auto slot = static_cast<std::size_t>(next[static_cast<std::size_t>(taps.index[tap])]++);
      back.index[slot] = static_cast<std::int64_t>(output);
      back.weight[slot] = taps.weight[tap];
    }
  }
  return back;
}

double most_terms(std::span<const AxisTaps> axes) {
  double terms = 1;
  for (const auto& axis : axes) terms *= static_cast<double>(axis.most());
  return terms;
}

void apply_taps(std::span<const AxisTaps> axes, const Shape& x_shape, std::span<const double> x,
                std::span<double> y) {
  std::fill(y.begin(), y.end(), 0.0);
  for_each_tap(axes, x_shape.strides(),
               [&](std::size_t p, std::size_t q, double weight) { y[p] += weight * x[q]; });
}

void scatter_taps(std::span<const AxisTaps> axes, const Shape& x_shape, std::span<const double> dy,
                  std::span<double> dx) {
  std::fill(dx.begin(), dx.end(), 0.0);
  for_each_tap(axes, x_shape.strides(),
               [&](std::size_t p, std::size_t q, double weight) { dx[q] += weight * dy[p]; });
}

}  // namespace triptych
