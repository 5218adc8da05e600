// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/copy_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/windows/copy_rows.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

/// Elements 0, kStep, 2 kStep, ... of the data that `load` reads from element 0 on and from its end
/// on.
template <std::int64_t kStep, class Load>
HWY_INLINE hn::Vec<Floats> every(const Load& load) {
  const auto low = load(0);
#if HWY_TARGET != HWY_SCALAR
  const Floats d;
  if constexpr (kStep == 2) return hn::ConcatEven(d, load(hn::Lanes(d)), low);
#endif
  return low;
}

template <std::int64_t kStep>
void copy(const float* from, const RowCopy& rows, float* to) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto whole = (rows.columns - 1) / lanes * lanes, rest = rows.columns - whole;
  const auto reach = (rest - 1) * kStep + 1;  // of the last elements, from the first of them
  const LaneRange<Floats> last(d, rest), low(d, reach), high(d, std::max(lanes, reach) - lanes);
  for (std::int64_t r = 0; r < rows.rows; ++r, from += rows.from_stride, to += rows.to_stride) {
    for (std::int64_t c = 0; c < whole; c += lanes) {
      const float* at = from + c * kStep;
      hn::StoreU(every<kStep>([=](auto first) { return hn::LoadU(d, at + first); }), d, to + c);
    }
    const float* at = from + whole * kStep;
    const auto part = [=](auto first) { return (first == 0 ? low : high).load(d, at + first); };
    last.store(every<kStep>(part), d, to + whole);
  }
}

}  // namespace

void copy_rows(const float* from, const RowCopy& rows, float* to) {
  if (rows.columns <= 0) return;
  rows.step == 1 ? copy<1>(from, rows, to) : copy<2>(from, rows, to);
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(copy_rows);

void copy_rows(const float* from, const RowCopy& copy, float* to) {
  HWY_DYNAMIC_DISPATCH(copy_rows)(from, copy, to);
}

}  // namespace triptych::cpu
#endif  // HWY_ONCE
