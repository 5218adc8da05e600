// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/tap_chains.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/windows/tap_chains.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/windows/largest-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Taps = std::span<const std::int64_t>;

// Enough chains to hide the latency of an addition, with the smallest vectors of a block.
constexpr std::int64_t kVectors = 4;

// Rows of outputs that share the rows of the plane.
constexpr int kSharedRows = 4;

/// y = step(t, operand of tap t, y) for each tap t, with y starting at begin(p).
template <class D, class Begin, class Step>
HWY_INLINE void chains(D d, const hn::TFromD<D>* plane, Taps taps, std::int64_t outputs,
                       const Begin& begin, const Step& step, hn::TFromD<D>* y) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  static_assert(hn::MaxLanes(D()) * kVectors <= kChainBlock);
  for (std::int64_t p = 0; p < outputs; p += kVectors * lanes) {
    auto a = begin(y + p), b = begin(y + p + lanes);
    auto c = begin(y + p + 2 * lanes), e = begin(y + p + 3 * lanes);
    for (std::size_t t = 0; t < taps.size(); ++t) {
      const auto* from = plane + taps[t] + p;
      a = step(t, hn::LoadU(d, from), a);
      b = step(t, hn::LoadU(d, from + lanes), b);
      c = step(t, hn::LoadU(d, from + 2 * lanes), c);
      e = step(t, hn::LoadU(d, from + 3 * lanes), e);
    }
    hn::StoreU(a, d, y + p);
    hn::StoreU(b, d, y + p + lanes);
    hn::StoreU(c, d, y + p + 2 * lanes);
    hn::StoreU(e, d, y + p + 3 * lanes);
  }
}

void multiply(const float* plane, Taps taps, const float* weights, std::int64_t outputs,
              float* sums) {
  const hn::CappedTag<float, kChainBlock / kVectors> d;
  chains(
      d, plane, taps, outputs, [=](const float*) { return hn::Zero(d); },
      [=](std::size_t t, auto x, auto sum) { return hn::MulAdd(hn::Set(d, weights[t]), x, sum); },
      sums);
}

/// The part of one row of the kernel, if it has that row.
template <int kRow, int kRows, class D, class V>
HWY_INLINE void add_tap(D d, const float* weight, const V& low, const V& high, V& low_sum,
                        V& high_sum) {
  if constexpr (kRow >= 0 && kRow < kRows) {
    const auto factor = hn::Set(d, *weight);
    low_sum = hn::MulAdd(factor, low, low_sum);
    high_sum = hn::MulAdd(factor, high, high_sum);
  }
}

/// Sums of kSharedRows rows by two vectors of outputs, the second `apart` columns behind the first.
/// A vector of the plane is loaded once for all rows that read it: row j of the plane is row j - r
/// of the kernel for the outputs of row r.
template <int kRows, class D, int... kPlaneRows>
HWY_INLINE void share_rows(D d, const float* plane, const RowWindow& w, const float* weights,
                           std::int64_t apart, float* sums,
                           std::integer_sequence<int, kPlaneRows...>) {
  const auto width = static_cast<std::int64_t>(w.columns.size());
  auto low0 = hn::Zero(d), low1 = low0, low2 = low0, low3 = low0;
  auto high0 = low0, high1 = low0, high2 = low0, high3 = low0;
  const auto add_row = [&](auto row) {
    constexpr int j = decltype(row)::value;
    for (std::int64_t kx = 0; kx < width; ++kx) {
      const float* from = plane + j * w.pitch + w.columns[static_cast<std::size_t>(kx)];
      const auto low = hn::LoadU(d, from), high = hn::LoadU(d, from + apart);
      const float* weight = weights + j * width + kx;
      add_tap<j, kRows>(d, weight, low, high, low0, high0);
      add_tap<j - 1, kRows>(d, weight - width, low, high, low1, high1);
      add_tap<j - 2, kRows>(d, weight - 2 * width, low, high, low2, high2);
      add_tap<j - 3, kRows>(d, weight - 3 * width, low, high, low3, high3);
    }
  };
  (add_row(std::integral_constant<int, kPlaneRows>()), ...);
  const auto store = [&](auto low, auto high, float* to) {
    hn::StoreU(low, d, to);
    hn::StoreU(high, d, to + apart);
  };
  store(low0, high0, sums);
  store(low1, high1, sums + w.out_columns);
  store(low2, high2, sums + 2 * w.out_columns);
  store(low3, high3, sums + 3 * w.out_columns);
}

/// The last vectors and rows overlap those before them. Rows have a vector of outputs at least.
template <int kRows, class D>
HWY_INLINE void multiply_blocks(D d, const float* plane, const RowWindow& w, const float* weights,
                                float* sums) {
  constexpr std::make_integer_sequence<int, kRows + kSharedRows - 1> plane_rows;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto apart = std::min(lanes, w.out_columns - lanes), width = lanes + apart;
  for (std::int64_t r = 0; r < w.out_rows; r += kSharedRows) {
    const auto row = std::min<std::int64_t>(r, w.out_rows - kSharedRows);
    for (std::int64_t c = 0; c < w.out_columns; c += width) {
      const auto column = std::min(c, w.out_columns - width);
      share_rows<kRows>(d, plane + row * w.pitch + column, w, weights, apart,
                        sums + row * w.out_columns + column, plane_rows);
    }
  }
}

template <class D>
HWY_INLINE void multiply_lanes(D d, const float* plane, const RowWindow& w, const float* weights,
                               float* sums) {
  if (w.kernel_rows == 3) return multiply_blocks<3>(d, plane, w, weights, sums);
  if (w.kernel_rows == 5) return multiply_blocks<5>(d, plane, w, weights, sums);
  multiply_blocks<7>(d, plane, w, weights, sums);
}

void multiply_shared(const float* plane, const RowWindow& w, const float* weights, float* sums) {
  const hn::CappedTag<float, 16> most;
  if (w.out_columns >= static_cast<std::int64_t>(hn::Lanes(most))) {
    return multiply_lanes(most, plane, w, weights, sums);
  }
  multiply_lanes(hn::CappedTag<float, 8>(), plane, w, weights, sums);
}

/// A vector of channels at kOutputs outputs.
struct ChannelChains {
  const float* x;
  Taps taps;
  const float* weights;
  std::int64_t step;
  float* sums;
};

constexpr std::size_t kMostOutputs = 8;

template <std::size_t... kOutput>
HWY_INLINE void multiply_outputs(const ChannelChains& chains, std::index_sequence<kOutput...>) {
  const hn::CappedTag<float, kSideBySide> d;
  hn::Vec<decltype(d)> sums[] = {((void)kOutput, hn::Zero(d))...};
  const float* weight = chains.weights;
  for (const auto tap : chains.taps) {
    const float* x = chains.x + tap;
    const auto factor = hn::LoadU(d, weight);
    ((sums[kOutput] =
          hn::MulAdd(factor, hn::LoadU(d, x + static_cast<std::int64_t>(kOutput) * chains.step),
                     sums[kOutput])),
     ...);
    weight += kSideBySide;
  }
  (hn::StoreU(sums[kOutput], d, chains.sums + static_cast<std::int64_t>(kOutput) * kSideBySide),
   ...);
}

template <std::size_t kOutputs>
void multiply_some(const ChannelChains& chains) {
  multiply_outputs(chains, std::make_index_sequence<kOutputs>());
}

using SomeOutputs = void (*)(const ChannelChains&);

template <std::size_t... kOutputsMinusOne>
constexpr std::array<SomeOutputs, kMostOutputs + 1> some_outputs(
    std::index_sequence<kOutputsMinusOne...>) {
  return {nullptr, &multiply_some<kOutputsMinusOne + 1>...};
}

/// Blocks of equal size, the last of which overlaps the one before it.
void multiply_side_by_side(const float* x, Taps taps, const float* weights, std::int64_t outputs,
                           std::int64_t step, float* sums) {
  static constexpr auto by_outputs = some_outputs(std::make_index_sequence<kMostOutputs>());
  constexpr auto most = static_cast<std::int64_t>(kMostOutputs);
  const auto blocks = (outputs + most - 1) / most, block = (outputs + blocks - 1) / blocks;
  const auto multiply = by_outputs[static_cast<std::size_t>(block)];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::CappedTag<float, kSideBySide>()));
  for (std::int64_t p = 0; p < outputs; p += block) {
    const auto first = std::min(p, outputs - block);
    for (std::int64_t c = 0; c < kSideBySide; c += lanes) {
      multiply({x + first * step + c, taps, weights + c, step, sums + first * kSideBySide + c});
    }
  }
}

void add(const float* plane, Taps taps, std::int64_t outputs, float* sums) {
  const hn::CappedTag<float, kChainBlock / kVectors> d;
  chains(
      d, plane, taps, outputs, [=](const float*) { return hn::Zero(d); },
      [](std::size_t, auto x, auto sum) { return hn::Add(sum, x); }, sums);
}

template <class T>
HWY_INLINE void largest(const T* plane, Taps taps, std::int64_t outputs, T* y) {
  const hn::CappedTag<T, kChainBlock / kVectors> d;
  chains(
      d, plane, taps, outputs, [=](const T* first) { return hn::LoadU(d, first); },
      [](std::size_t, auto x, auto most) { return largest_of(x, most); }, y);
}

void largest_float(const float* plane, Taps taps, std::int64_t outputs, float* y) {
  largest(plane, taps, outputs, y);
}
void largest_int8(const std::int8_t* plane, Taps taps, std::int64_t outputs, std::int8_t* y) {
  largest(plane, taps, outputs, y);
}

}  // namespace
}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(multiply);
HWY_EXPORT(multiply_shared);
HWY_EXPORT(multiply_side_by_side);
HWY_EXPORT(add);
HWY_EXPORT(largest_float);
HWY_EXPORT(largest_int8);

void multiply_taps(const float* plane, std::span<const std::int64_t> taps, const float* weights,
                   std::int64_t outputs, float* sums) {
  HWY_DYNAMIC_DISPATCH(multiply)(plane, taps, weights, outputs, sums);
}

bool shares_rows(const RowWindow& w) {
  const bool known = w.kernel_rows == 3 || w.kernel_rows == 5 || w.kernel_rows == 7;
  return known && w.out_rows >= 4 && w.out_columns >= 8;
}

void multiply_rows(const float* plane, const RowWindow& window, const float* weights, float* sums) {
  HWY_DYNAMIC_DISPATCH(multiply_shared)(plane, window, weights, sums);
}

void multiply_channels(const float* x, std::span<const std::int64_t> taps, const float* weights,
                       std::int64_t outputs, std::int64_t step, float* sums) {
  HWY_DYNAMIC_DISPATCH(multiply_side_by_side)(x, taps, weights, outputs, step, sums);
}

void add_taps(const float* plane, std::span<const std::int64_t> taps, std::int64_t outputs,
              float* sums) {
  HWY_DYNAMIC_DISPATCH(add)(plane, taps, outputs, sums);
}

void largest_of_taps(const float* plane, std::span<const std::int64_t> taps, std::int64_t outputs,
                     float* y) {
  HWY_DYNAMIC_DISPATCH(largest_float)(plane, taps, outputs, y);
}

void largest_of_taps(const std::int8_t* plane, std::span<const std::int64_t> taps,
                     std::int64_t outputs, std::int8_t* y) {
  HWY_DYNAMIC_DISPATCH(largest_int8)(plane, taps, outputs, y);
}

}  // namespace triptych::cpu
#endif  // HWY_ONCE
