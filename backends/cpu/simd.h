// Loops compiled for several instruction sets, the best chosen at run time: simd(body) calls body()
// inlined into a function for AVX-512, AVX2 with fma, or the baseline. g++ then vectorises the
// loops of `body` for that target and std::fma becomes one instruction. The results are the same.
// On other processors than x86 the baseline is all there is, and has both. So it is where the whole
// backend is compiled for this processor (TRIPTYCH_NATIVE_SIMD).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/targets.h>

namespace triptych::cpu {

enum class Simd { Baseline, Avx2, Avx512 };

inline Simd detect_simd() {
#if defined(__x86_64__)
  const auto supported = hwy::SupportedTargets();
  if ((supported & HWY_AVX3) != 0) return Simd::Avx512;
  if ((supported & HWY_AVX2) != 0) return Simd::Avx2;
#endif
  return Simd::Baseline;
}

/// The best instruction set of this processor.
inline Simd simd_level() {
  static const Simd level = detect_simd();
  return level;
}

namespace internal {

#if defined(__x86_64__) && !defined(TRIPTYCH_NATIVE_SIMD)
template <class Body>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512"),
  gnu::flatten, gnu::noinline]] void
run_avx512(const Body& body) {
  body();
}

template <class Body>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] void run_avx2(const Body& body) {
  body();
}
#endif

template <class Body>
[[gnu::flatten, gnu::noinline]] void run_baseline(const Body& body) {
  body();
}

}  // namespace internal

/// Calls `body`, a lambda around loops over plain arrays, on the best instruction set.
template <class Body>
void simd(const Body& body) {
#if defined(__x86_64__) && !defined(TRIPTYCH_NATIVE_SIMD)
  if (simd_level() == Simd::Avx512) return internal::run_avx512(body);
  if (simd_level() == Simd::Avx2) return internal::run_avx2(body);
#endif
  internal::run_baseline(body);
}

}  // namespace triptych::cpu
