// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/tap_chains.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/windows/tap_chains.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Taps = std::span<const std::int64_t>;

// Enough chains to hide the latency of an addition, with the smallest vectors of a block.
constexpr std::int64_t kVectors = 4;

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

void add(const float* plane, Taps taps, std::int64_t outputs, float* sums) {
  const hn::CappedTag<float, kChainBlock / kVectors> d;
  chains(
      d, plane, taps, outputs, [=](const float*) { return hn::Zero(d); },
      [](std::size_t, auto x, auto sum) { return hn::Add(sum, x); }, sums);
}

/// The lanes of x that outrank those of `most` (core/base/reduction.h).
template <class V>
HWY_INLINE auto outranking(V x, V most) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::Or(hn::Gt(x, most), hn::IsNaN(x));
  } else {
    return hn::Gt(x, most);
  }
}

template <class T>
HWY_INLINE void largest(const T* plane, Taps taps, std::int64_t outputs, T* y) {
  const hn::CappedTag<T, kChainBlock / kVectors> d;
  chains(
      d, plane, taps, outputs, [=](const T* first) { return hn::LoadU(d, first); },
      [](std::size_t, auto x, auto most) { return hn::IfThenElse(outranking(x, most), x, most); },
      y);
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
HWY_EXPORT(add);
HWY_EXPORT(largest_float);
HWY_EXPORT(largest_int8);

void multiply_taps(const float* plane, std::span<const std::int64_t> taps, const float* weights,
                   std::int64_t outputs, float* sums) {
  HWY_DYNAMIC_DISPATCH(multiply)(plane, taps, weights, outputs, sums);
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
