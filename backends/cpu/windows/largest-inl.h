// The order of a maximum, on vectors. Included once for each instruction set, as Highway's own
// headers of this kind.
// SPDX-License-Identifier: Apache-2.0
#if defined(TRIPTYCH_LARGEST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_LARGEST_INL_H
#undef TRIPTYCH_LARGEST_INL_H
#else
#define TRIPTYCH_LARGEST_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {

/// `most`, or x in the lanes where it outranks `most` (core/base/reduction.h).
template <class V>
HWY_INLINE V largest_of(V x, V most) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::IfThenElse(hn::Or(hn::Gt(x, most), hn::IsNaN(x)), x, most);
  } else {
    return hn::IfThenElse(hn::Gt(x, most), x, most);
  }
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TRIPTYCH_LARGEST_INL_H
