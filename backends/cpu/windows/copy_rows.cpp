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

/// Elements 0, kStep, 2 kStep, ... of kStep vectors: `load` reads the one with this number.
template <std::size_t kStep, class Load>
HWY_INLINE hn::Vec<Floats> every(const Load& load) {
#if HWY_TARGET != HWY_SCALAR
  const Floats d;
  if constexpr (kStep == 2) return hn::ConcatEven(d, load(1), load(0));
  if constexpr (kStep == 4) {
    return hn::ConcatEven(d, hn::ConcatEven(d, load(3), load(2)),
                          hn::ConcatEven(d, load(1), load(0)));
  }
#endif
  return load(0);
}

template <std::size_t kStep>
void copy(const float* from, const RowCopy& rows, float* to) {
  const Floats d;
  constexpr auto step = static_cast<std::int64_t>(kStep);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto whole = (rows.columns - 1) / lanes * lanes;
  // The last vector overlaps the one before it: processors may store a part of one very slowly.
  const bool overlaps = rows.columns >= lanes;
  const auto begin = overlaps ? rows.columns - lanes : 0, rest = rows.columns - begin;
  const auto reach = (rest - 1) * step + 1;  // of the last elements, from the first of them
  const auto part_of = [=](std::size_t number) {
    const auto first = static_cast<std::int64_t>(number) * lanes;
    return LaneRange<Floats>(d, std::clamp<std::int64_t>(reach - first, 0, lanes));
  };
  const LaneRange<Floats> last(d, rest);
  const LaneRange<Floats> parts[] = {part_of(0), part_of(1), part_of(2), part_of(3)};
  for (std::int64_t r = 0; r < rows.rows; ++r, from += rows.from_stride, to += rows.to_stride) {
    const float* at = from;
    const auto vector = [&](std::size_t number) {
      return at + static_cast<std::int64_t>(number) * lanes;
    };
    for (std::int64_t c = 0; c < whole; c += lanes, at += lanes * step) {
      hn::StoreU(every<kStep>([&](std::size_t v) { return hn::LoadU(d, vector(v)); }), d, to + c);
    }
    at = from + begin * step;
    const auto elements = every<kStep>([&](std::size_t v) { return parts[v].load(d, vector(v)); });
    overlaps ? hn::StoreU(elements, d, to + begin) : last.store(elements, d, to);
  }
}

}  // namespace

void copy_rows(const float* from, const RowCopy& rows, float* to) {
  if (rows.columns <= 0) return;
  if (rows.step == 1) return copy<1>(from, rows, to);
  rows.step == 2 ? copy<2>(from, rows, to) : copy<4>(from, rows, to);
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
