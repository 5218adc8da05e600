// The matrices of winograd.h along one axis, as functions from arrays of vectors to arrays of
// vectors. From the interpolation points p: column j of A^T holds the powers of p_j, row j of G the
// same over the product of its distances to the other points, row j of B^T the coefficients of the
// polynomial that has those as roots. The last ones belong to infinity. Included once for each
// instruction set, as Highway's own headers of this kind.
// SPDX-License-Identifier: Apache-2.0
#if defined(TRIPTYCH_WINOGRAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_WINOGRAD_INL_H
#undef TRIPTYCH_WINOGRAD_INL_H
#else
#define TRIPTYCH_WINOGRAD_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {

/// Arithmetic on vectors, and of numbers with vectors.
template <class D>
struct VectorMath {
  using N = hwy::HWY_NAMESPACE::Vec<D>;
  static HWY_INLINE N add(N a, N b) { return hwy::HWY_NAMESPACE::Add(a, b); }
  static HWY_INLINE N sub(N a, N b) { return hwy::HWY_NAMESPACE::Sub(a, b); }
  static HWY_INLINE N mul(float a, N b) {
    return hwy::HWY_NAMESPACE::Mul(hwy::HWY_NAMESPACE::Set(D(), a), b);
  }
  static HWY_INLINE N fma(float a, N b, N c) {
    return hwy::HWY_NAMESPACE::MulAdd(hwy::HWY_NAMESPACE::Set(D(), a), b, c);
  }
};

template <int kTile, class D>
struct WinogradMatrices;

template <class D>
struct WinogradMatrices<4, D> {
  using M = VectorMath<D>;
  using N = typename M::N;

  /// to = B^T from.
  static HWY_INLINE void patch(const N (&from)[6], N (&to)[6]) {
    to[0] = M::fma(kA2 * kB2, from[0], M::fma(-kA2 - kB2, from[2], from[4]));
    both_signs(kA, M::fma(-kB2, from[2], from[4]), M::fma(-kB2, from[1], from[3]), to[1], to[2]);
    both_signs(kB, M::fma(-kA2, from[2], from[4]), M::fma(-kA2, from[1], from[3]), to[3], to[4]);
    to[5] = M::fma(kA2 * kB2, from[1], M::fma(-kA2 - kB2, from[3], from[5]));
  }

  /// to = A^T from.
  static HWY_INLINE void output(const N (&from)[6], N (&to)[4]) {
    const N even_a = M::add(from[1], from[2]), odd_a = M::sub(from[1], from[2]);
    const N even_b = M::add(from[3], from[4]), odd_b = M::sub(from[3], from[4]);
    to[0] = M::add(from[0], M::add(even_a, even_b));
    to[1] = M::fma(kA, odd_a, M::mul(kB, odd_b));
    to[2] = M::fma(kA2, even_a, M::mul(kB2, even_b));
    to[3] = M::fma(kA2 * kA, odd_a, M::fma(kB2 * kB, odd_b, from[5]));
  }

  /// to = A from.
  static HWY_INLINE void output_gradient(const N (&from)[4], N (&to)[6]) {
    to[0] = from[0];
    both_signs(kA, M::fma(kA2, from[2], from[0]), M::fma(kA2, from[3], from[1]), to[1], to[2]);
    both_signs(kB, M::fma(kB2, from[2], from[0]), M::fma(kB2, from[3], from[1]), to[3], to[4]);
    to[5] = from[3];
  }

  /// to = G from.
  static HWY_INLINE void filter(const N (&from)[3], N (&to)[6]) {
    to[0] = M::mul(kOver0, from[0]);
    both_signs(kA * kOverA, M::mul(kOverA, M::fma(kA2, from[2], from[0])), from[1], to[1], to[2]);
    both_signs(kB * kOverB, M::mul(kOverB, M::fma(kB2, from[2], from[0])), from[1], to[3], to[4]);
    to[5] = from[2];
  }

  /// to = G^T from.
  static HWY_INLINE void filter_gradient(const N (&from)[6], N (&to)[3]) {
    const N even_a = M::add(from[1], from[2]), odd_a = M::sub(from[1], from[2]);
    const N even_b = M::add(from[3], from[4]), odd_b = M::sub(from[3], from[4]);
    to[0] = M::fma(kOver0, from[0], M::fma(kOverA, even_a, M::mul(kOverB, even_b)));
    to[1] = M::fma(kA * kOverA, odd_a, M::mul(kB * kOverB, odd_b));
    to[2] = M::fma(kA2 * kOverA, even_a, M::fma(kB2 * kOverB, even_b, from[5]));
  }

 private:
  // The points are 0, +-a, +-b and infinity.
  static constexpr float kA = 0.75F, kB = 1.5F;
  static constexpr float kA2 = kA * kA, kB2 = kB * kB;
  // One over the product of the distances of 0, a and b to the other points.
  static constexpr float kOver0 = 1 / (kA2 * kB2);
  static constexpr float kOverA = 1 / (2 * kA2 * (kA2 - kB2));
  static constexpr float kOverB = 1 / (2 * kB2 * (kB2 - kA2));

  /// even + point * odd and even - point * odd.
  static HWY_INLINE void both_signs(float point, const N& even, const N& odd, N& plus, N& minus) {
    plus = M::fma(point, odd, even);
    minus = M::fma(-point, odd, even);
  }
};

/// The points are 0, +-1 and infinity.
template <class D>
struct WinogradMatrices<2, D> {
  using M = VectorMath<D>;
  using N = typename M::N;

  static HWY_INLINE void patch(const N (&from)[4], N (&to)[4]) {
    to[0] = M::sub(from[2], from[0]);
    to[1] = M::add(from[2], from[1]);
    to[2] = M::sub(from[2], from[1]);
    to[3] = M::sub(from[3], from[1]);
  }

  static HWY_INLINE void output(const N (&from)[4], N (&to)[2]) {
    to[0] = M::add(from[0], M::add(from[1], from[2]));
    to[1] = M::add(M::sub(from[1], from[2]), from[3]);
  }

  static HWY_INLINE void output_gradient(const N (&from)[2], N (&to)[4]) {
    to[0] = from[0];
    to[1] = M::add(from[0], from[1]);
    to[2] = M::sub(from[0], from[1]);
    to[3] = from[1];
  }

  static HWY_INLINE void filter(const N (&from)[3], N (&to)[4]) {
    const N even = M::mul(0.5F, M::add(from[0], from[2]));
    to[0] = M::mul(-1, from[0]);
    to[1] = M::fma(0.5F, from[1], even);
    to[2] = M::fma(-0.5F, from[1], even);
    to[3] = from[2];
  }

  static HWY_INLINE void filter_gradient(const N (&from)[4], N (&to)[3]) {
    const N even = M::mul(0.5F, M::add(from[1], from[2]));
    to[0] = M::sub(even, from[0]);
    to[1] = M::mul(0.5F, M::sub(from[1], from[2]));
    to[2] = M::add(even, from[3]);
  }
};

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
