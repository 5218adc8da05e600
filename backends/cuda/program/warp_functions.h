// Votes, matches and reductions of blocks and warps, and integer functions of a kernel, beyond
// those of plain/device_functions.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
namespace triptych::cuda::program {

using emulation::Location;

/// The number of threads of the block for which the predicate is not zero.
TRIPTYCH_UNWATCHED inline int count_in_block(int predicate, const Location& where) {
  static thread_local int count;
  __syncthreads(where);
  count = 0;
  __syncthreads(where);
  count += predicate != 0 ? 1 : 0;  // a block runs on one thread of the processor
  __syncthreads(where);
  return count;
}

/// Combines the values of the lanes of `mask`.
template <class T, class Op>
TRIPTYCH_UNWATCHED T reduce_lanes(unsigned mask, T value, Op op, const Location& where) {
  T all{};
  bool first = true;
  emulation::exchange(mask, emulation::to_word(value), where);
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    const T other = emulation::from_word<T>(emulation::exchanged(mask, lane, where));
    all = first ? other : op(all, other);
    first = false;
  }
  return all;
}

}  // namespace triptych::cuda::program

#define TRIPTYCH_WHERE \
  triptych::cuda::emulation::Location where = triptych::cuda::emulation::Location::current()

TRIPTYCH_UNWATCHED inline int __syncthreads_count(int predicate, TRIPTYCH_WHERE) {
  return triptych::cuda::program::count_in_block(predicate, where);
}
TRIPTYCH_UNWATCHED inline int __syncthreads_or(int predicate, TRIPTYCH_WHERE) {
  return triptych::cuda::program::count_in_block(predicate, where) != 0 ? 1 : 0;
}
TRIPTYCH_UNWATCHED inline int __syncthreads_and(int predicate, TRIPTYCH_WHERE) {
  return triptych::cuda::program::count_in_block(predicate == 0 ? 1 : 0, where) == 0 ? 1 : 0;
}

#define TRIPTYCH_REDUCE(name, expression)                                         \
  template <class T>                                                              \
  TRIPTYCH_UNWATCHED T name(unsigned mask, T value, TRIPTYCH_WHERE) {             \
    return triptych::cuda::program::reduce_lanes(                                 \
        mask, value, [](T a, T b) { return static_cast<T>(expression); }, where); \
  }
TRIPTYCH_REDUCE(__reduce_add_sync, a + b)
TRIPTYCH_REDUCE(__reduce_min_sync, b < a ? b : a)
TRIPTYCH_REDUCE(__reduce_max_sync, a < b ? b : a)
TRIPTYCH_REDUCE(__reduce_and_sync, a& b)
TRIPTYCH_REDUCE(__reduce_or_sync, a | b)
TRIPTYCH_REDUCE(__reduce_xor_sync, a ^ b)
#undef TRIPTYCH_REDUCE

/// Lanes of `mask` whose value has the same bytes.
template <class T>
TRIPTYCH_UNWATCHED unsigned __match_any_sync(unsigned mask, T value, TRIPTYCH_WHERE) {
  namespace emulation = triptych::cuda::emulation;
  const auto word = emulation::to_word(value);
  emulation::exchange(mask, word, where);
  unsigned same = 0;
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    if (emulation::exchanged(mask, lane, where) == word) same |= 1U << lane;
  }
  return same;
}
template <class T>
TRIPTYCH_UNWATCHED unsigned __match_all_sync(unsigned mask, T value, int* all, TRIPTYCH_WHERE) {
  *all = __match_any_sync(mask, value, where) == mask ? 1 : 0;
  return *all != 0 ? mask : 0;
}

// Integers.
TRIPTYCH_UNWATCHED inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i) & 15U;
    auto byte = static_cast<unsigned>(bytes >> (8 * (pick & 7U)) & 255U);
    if ((pick & 8U) != 0) byte = (byte & 128U) != 0 ? 255U : 0;
    result |= byte << (8 * i);
  }
  return result;
}
TRIPTYCH_UNWATCHED inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const auto both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31U) >> 32);
}
TRIPTYCH_UNWATCHED inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const auto both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31U));
}
TRIPTYCH_UNWATCHED inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  }
  return sum;
}
TRIPTYCH_UNWATCHED inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (unsigned i = 0; i < 4; ++i) sum += (a >> (8 * i) & 255U) * (b >> (8 * i) & 255U);
  return sum;
}
TRIPTYCH_UNWATCHED inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xFFFFFFU) * (b & 0xFFFFFFU);
}
TRIPTYCH_UNWATCHED inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
TRIPTYCH_UNWATCHED inline unsigned long long __umul64hi(unsigned long long a,
                                                        unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
TRIPTYCH_UNWATCHED inline unsigned __usad(unsigned a, unsigned b, unsigned sum) {
  return sum + (a < b ? b - a : a - b);
}
TRIPTYCH_UNWATCHED inline unsigned long long __brevll(unsigned long long v) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(v))) << 32 |
         __brev(static_cast<unsigned>(v >> 32));
}
TRIPTYCH_UNWATCHED inline unsigned __float2uint_rn(float v) {
  return v <= 0 ? 0U : static_cast<unsigned>(std::nearbyint(v));
}
TRIPTYCH_UNWATCHED inline unsigned __float2uint_rz(float v) {
  return v <= 0 ? 0U : static_cast<unsigned>(v);
}
TRIPTYCH_UNWATCHED inline int __double2int_rz(double v) { return static_cast<int>(v); }
TRIPTYCH_UNWATCHED inline int __double2int_rn(double v) {
  return static_cast<int>(std::nearbyint(v));
}
TRIPTYCH_UNWATCHED inline float __double2float_rn(double v) { return static_cast<float>(v); }
TRIPTYCH_UNWATCHED inline double __int2double_rn(int v) { return v; }
TRIPTYCH_UNWATCHED inline float __frsqrt_rn(float v) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(v)));
}
TRIPTYCH_UNWATCHED inline void __sincosf(float v, float* sine, float* cosine) {
  *sine = std::sin(v);
  *cosine = std::cos(v);
}
TRIPTYCH_UNWATCHED inline float norm3df(float a, float b, float c) {
  return std::sqrt(a * a + b * b + c * c);
}
TRIPTYCH_UNWATCHED inline float rnorm3df(float a, float b, float c) { return 1 / norm3df(a, b, c); }
TRIPTYCH_UNWATCHED inline float sinpif(float v) {
  return static_cast<float>(std::sin(3.14159265358979323846 * v));
}
TRIPTYCH_UNWATCHED inline float cospif(float v) {
  return static_cast<float>(std::cos(3.14159265358979323846 * v));
}
TRIPTYCH_UNWATCHED inline void __nanosleep(unsigned) {}
TRIPTYCH_UNWATCHED inline unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
TRIPTYCH_UNWATCHED inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }

/// In place of cycles: each read of the clock takes 32.
TRIPTYCH_UNWATCHED inline long long clock64() {
  static thread_local long long last;
  return last += 32;
}

#define TRIPTYCH_SCOPED(name)                                                                   \
  template <class T>                                                                            \
  TRIPTYCH_UNWATCHED T name##_block(T* at, triptych::cuda::plain::Same<T> v, TRIPTYCH_WHERE) {  \
    return name(at, v, where);                                                                  \
  }                                                                                             \
  template <class T>                                                                            \
  TRIPTYCH_UNWATCHED T name##_system(T* at, triptych::cuda::plain::Same<T> v, TRIPTYCH_WHERE) { \
    return name(at, v, where);                                                                  \
  }
TRIPTYCH_SCOPED(atomicAdd)
TRIPTYCH_SCOPED(atomicSub)
TRIPTYCH_SCOPED(atomicExch)
TRIPTYCH_SCOPED(atomicMin)
TRIPTYCH_SCOPED(atomicMax)
TRIPTYCH_SCOPED(atomicAnd)
TRIPTYCH_SCOPED(atomicOr)
TRIPTYCH_SCOPED(atomicXor)
TRIPTYCH_SCOPED(atomicInc)
TRIPTYCH_SCOPED(atomicDec)
#undef TRIPTYCH_SCOPED
#define TRIPTYCH_SCOPED_CAS(scope)                                                          \
  template <class T>                                                                        \
  TRIPTYCH_UNWATCHED T atomicCAS##scope(T* at, triptych::cuda::plain::Same<T> compare,      \
                                        triptych::cuda::plain::Same<T> v, TRIPTYCH_WHERE) { \
    return atomicCAS(at, compare, v, where);                                                \
  }
TRIPTYCH_SCOPED_CAS(_block)
TRIPTYCH_SCOPED_CAS(_system)
#undef TRIPTYCH_SCOPED_CAS
#undef TRIPTYCH_WHERE
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
