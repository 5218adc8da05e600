// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/max_rows.h"

#include <algorithm>
#include <type_traits>

#include "core/base/checked_math.h"
#include "core/base/range.h"
#include "core/base/reduction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/windows/max_rows.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/windows/largest-inl.h"

#ifndef TRIPTYCH_MAX_ROWS_ONCE
#define TRIPTYCH_MAX_ROWS_ONCE
namespace triptych::cpu {

// Windows of a row that lie wholly inside and make a vector.
constexpr std::int64_t kFewestInside = 4;
constexpr std::int64_t kMostRows = 16;  // of a window

/// The windows of a row with all taps inside of the plane.
inline Range windows_inside(const Window& w) {
  const auto begin = ceil_div(w.pad_begin[1], w.stride[1]);
  const auto room = w.in[1] + w.pad_begin[1] - w.kernel[1];
  const auto end = room < 0 ? 0 : std::min(w.out[1], room / w.stride[1] + 1);
  return {begin, std::max(begin, end)};
}

/// Floats from one row of maxima to the next.
inline std::int64_t max_rows_pitch(const Window& w) { return round_up(w.out[1], 16); }

}  // namespace triptych::cpu
#endif  // TRIPTYCH_MAX_ROWS_ONCE

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls visit(first of a vector) for all of `range`, of a vector at least. The last one overlaps
/// the one before it.
template <class D, class Visit>
HWY_INLINE void for_each_vector(D d, Range range, const Visit& visit) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (auto c = range.begin; c < range.end; c += lanes) visit(std::min(c, range.end - lanes));
}

/// Maxima of `taps` neighbours, beginning at x and every element behind it.
template <class D, class Taps>
HWY_INLINE hn::Vec<D> neighbours(D d, const float* x, Taps taps) {
  auto most = hn::LoadU(d, x);
  for (std::int64_t k = 1; k < taps; ++k) most = largest_of(hn::LoadU(d, x + k), most);
  return most;
}

template <class D>
struct Halves {
  hn::Vec<D> even, odd;
};

/// Elements 0, 2, ... and 1, 3, ... of two vectors from x on.
template <class D>
HWY_INLINE Halves<D> halves(D d, const float* x) {
  const auto low = hn::LoadU(d, x), high = hn::LoadU(d, x + hn::Lanes(d));
#if HWY_TARGET == HWY_SCALAR
  return {low, high};
#else
  return {hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)};
#endif
}

/// Maxima of `taps` neighbours, beginning at x and every second element behind it. Reads no
/// element behind the last tap.
template <class D, class Taps>
HWY_INLINE hn::Vec<D> every_second(D d, const float* x, Taps taps) {
  const auto first = halves(d, x);
  auto most = largest_of(first.odd, first.even);
  std::int64_t k = 2;
  for (; k + 1 < taps; k += 2) {
    const auto pair = halves(d, x + k);
    most = largest_of(pair.odd, largest_of(pair.even, most));
  }
  return k < taps ? largest_of(halves(d, x + k - 1).odd, most) : most;
}

/// The maximum of one window's taps along a row. Some are inside.
float edge(const Window& w, const float* row, std::int64_t column) {
  const auto first = column * w.stride[1] - w.pad_begin[1];
  const auto end = std::min(first + w.kernel[1], w.in[1]);
  auto at = std::max<std::int64_t>(first, 0);
  constexpr MaxOf<float> largest;
  float most = row[at];
  for (++at; at < end; ++at) most = largest(most, row[at]);
  return most;
}

/// `taps`: those of a window, a constant where they are few.
template <class D, class Taps>
HWY_INLINE void along_row(D d, const Window& w, Taps taps, Range inside, const float* row,
                          float* to) {
  for (std::int64_t c = 0; c < inside.begin; ++c) to[c] = edge(w, row, c);
  for (auto c = inside.end; c < w.out[1]; ++c) to[c] = edge(w, row, c);
  const auto* first = row - w.pad_begin[1];
  if (w.stride[1] == 1) {
    for_each_vector(d, inside,
                    [&](std::int64_t c) { hn::StoreU(neighbours(d, first + c, taps), d, to + c); });
  } else {
    for_each_vector(d, inside, [&](std::int64_t c) {
      hn::StoreU(every_second(d, first + 2 * c, taps), d, to + c);
    });
  }
}

/// y = the maximum of `count` rows of `columns` maxima.
template <class D>
HWY_INLINE void across_rows(D d, const float* const* rows, std::int64_t count, std::int64_t columns,
                            float* y) {
  for_each_vector(d, {0, columns}, [&](std::int64_t c) {
    auto most = hn::LoadU(d, rows[0] + c);
    for (std::int64_t r = 1; r < count; ++r) most = largest_of(hn::LoadU(d, rows[r] + c), most);
    hn::StoreU(most, d, y + c);
  });
}

/// The rows of maxima that an output needs stand in a ring, row r in place r % kernel[0].
template <class D, class Taps>
void run(D d, const Window& w, Taps along, const float* x, float* ring, float* y) {
  const auto inside = windows_inside(w);
  const float* rows[kMostRows];
  std::int64_t next = 0;  // row of the plane without maxima yet
  for (std::int64_t o = 0; o < w.out[0]; ++o, y += w.out[1]) {
    const auto first = o * w.stride[0] - w.pad_begin[0];
    const Range taps = {std::max<std::int64_t>(first, 0), std::min(first + w.kernel[0], w.in[0])};
    for (next = std::max(next, taps.begin); next < taps.end; ++next) {
      float* to = ring + next % w.kernel[0] * max_rows_pitch(w);
      along_row(d, w, along, inside, x + next * w.in[1], to);
    }
    for (auto r = taps.begin; r < taps.end; ++r) {
      rows[r - taps.begin] = ring + r % w.kernel[0] * max_rows_pitch(w);
    }
    across_rows(d, rows, taps.size(), w.out[1], y);
  }
}

template <class D>
void run(D d, const Window& w, const float* x, float* rows, float* y) {
  if (w.kernel[1] == 2) return run(d, w, std::integral_constant<std::int64_t, 2>(), x, rows, y);
  if (w.kernel[1] == 3) return run(d, w, std::integral_constant<std::int64_t, 3>(), x, rows, y);
  run(d, w, w.kernel[1], x, rows, y);
}

void max_of_windows(const Window& w, const float* x, float* rows, float* y) {
  const hn::CappedTag<float, 16> sixteen;
  const hn::CappedTag<float, 8> eight;
  const auto inside = static_cast<std::size_t>(windows_inside(w).size());
  if (inside >= hn::Lanes(sixteen)) return run(sixteen, w, x, rows, y);
  if (inside >= hn::Lanes(eight)) return run(eight, w, x, rows, y);
  run(hn::CappedTag<float, kFewestInside>(), w, x, rows, y);
}

}  // namespace
}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(max_of_windows);

bool takes_max_rows(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    const auto last = (w.out[axis] - 1) * w.stride[axis] - w.pad_begin[axis];
    const bool meets = w.pad_begin[axis] < w.kernel[axis] && last < w.in[axis];
    if (w.dilation[axis] != 1 || !meets) return false;
  }
  const bool known = w.kernel[1] >= 2 && w.kernel[0] <= kMostRows && w.stride[1] <= 2;
  return known && windows_inside(w).size() >= kFewestInside;
}

std::int64_t max_rows_floats(const Window& w) {
  return checked_mul(w.kernel[0], max_rows_pitch(w));
}

void max_of_windows(const Window& window, const float* x, float* rows, float* y) {
  HWY_DYNAMIC_DISPATCH(max_of_windows)(window, x, rows, y);
}

}  // namespace triptych::cpu
#endif  // HWY_ONCE
