// __half, __nv_bfloat16 and their pairs for users' programs. Each operation is computed in float
// and rounded to nearest, ties to even, as a GPU rounds it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
#include "backends/cuda/program/narrow_bits.h"

#define TRIPTYCH_NARROW(type, pair, to_bits, to_float)                               \
  struct alignas(2) type {                                                           \
    unsigned short bits;                                                             \
    type() = default;                                                                \
    type(float v) : bits(triptych::cuda::program::to_bits(v)) {}                     \
    type(double v) : type(static_cast<float>(v)) {}                                  \
    type(int v) : type(static_cast<float>(v)) {}                                     \
    type(unsigned v) : type(static_cast<float>(v)) {}                                \
    operator float() const { return triptych::cuda::program::to_float(bits); }       \
    type& operator+=(type v) { return *this = type(float(*this) + float(v)); }       \
    type& operator-=(type v) { return *this = type(float(*this) - float(v)); }       \
    type& operator*=(type v) { return *this = type(float(*this) * float(v)); }       \
    type& operator/=(type v) { return *this = type(float(*this) / float(v)); }       \
  };                                                                                 \
  inline type operator+(type a, type b) { return type(float(a) + float(b)); }        \
  inline type operator-(type a, type b) { return type(float(a) - float(b)); }        \
  inline type operator*(type a, type b) { return type(float(a) * float(b)); }        \
  inline type operator/(type a, type b) { return type(float(a) / float(b)); }        \
  inline type operator-(type a) { return type(-float(a)); }                          \
  inline bool operator<(type a, type b) { return float(a) < float(b); }              \
  inline bool operator>(type a, type b) { return float(a) > float(b); }              \
  inline bool operator<=(type a, type b) { return float(a) <= float(b); }            \
  inline bool operator>=(type a, type b) { return float(a) >= float(b); }            \
  inline bool operator==(type a, type b) { return float(a) == float(b); }            \
  inline bool operator!=(type a, type b) { return float(a) != float(b); }            \
  struct alignas(4) pair {                                                           \
    type x, y;                                                                       \
    pair() = default;                                                                \
    pair(type a, type b) : x(a), y(b) {}                                             \
  };                                                                                 \
  inline pair operator+(pair a, pair b) { return {a.x + b.x, a.y + b.y}; }           \
  inline pair operator-(pair a, pair b) { return {a.x - b.x, a.y - b.y}; }           \
  inline pair operator*(pair a, pair b) { return {a.x * b.x, a.y * b.y}; }           \
  inline pair operator/(pair a, pair b) { return {a.x / b.x, a.y / b.y}; }           \
  inline type __hadd(type a, type b) { return a + b; }                               \
  inline type __hsub(type a, type b) { return a - b; }                               \
  inline type __hmul(type a, type b) { return a * b; }                               \
  inline type __hdiv(type a, type b) { return a / b; }                               \
  inline type __hneg(type a) { return -a; }                                          \
  inline type __habs(type a) { return type(std::fabs(float(a))); }                   \
  inline type __hmax(type a, type b) { return type(std::fmax(float(a), float(b))); } \
  inline type __hmin(type a, type b) { return type(std::fmin(float(a), float(b))); } \
  inline type __hfma(type a, type b, type c) {                                       \
    return type(static_cast<float>(double(float(a)) * float(b) + float(c)));         \
  }                                                                                  \
  inline bool __hlt(type a, type b) { return a < b; }                                \
  inline bool __hgt(type a, type b) { return a > b; }                                \
  inline bool __hle(type a, type b) { return a <= b; }                               \
  inline bool __hge(type a, type b) { return a >= b; }                               \
  inline bool __heq(type a, type b) { return a == b; }                               \
  inline bool __hisnan(type a) { return float(a) != float(a); }                      \
  inline type hsqrt(type a) { return type(std::sqrt(float(a))); }                    \
  inline type hrsqrt(type a) { return type(1 / std::sqrt(float(a))); }               \
  inline type hexp(type a) { return type(std::exp(float(a))); }                      \
  inline type hlog(type a) { return type(std::log(float(a))); }                      \
  inline pair __hadd2(pair a, pair b) { return a + b; }                              \
  inline pair __hsub2(pair a, pair b) { return a - b; }                              \
  inline pair __hmul2(pair a, pair b) { return a * b; }                              \
  inline pair __h2div(pair a, pair b) { return a / b; }                              \
  inline pair __hfma2(pair a, pair b, pair c) {                                      \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                           \
  }

TRIPTYCH_NARROW(__half, __half2, bits_of_half, float_of_half)
TRIPTYCH_NARROW(__nv_bfloat16, __nv_bfloat162, bits_of_bfloat16, float_of_bfloat16)
#undef TRIPTYCH_NARROW
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline float __half2float(__half v) { return v; }
inline __half __float2half(float v) { return v; }
inline __half __float2half_rn(float v) { return v; }
inline __half __double2half(double v) { return v; }
inline __half __int2half_rn(int v) { return v; }
inline int __half2int_rn(__half v) { return static_cast<int>(std::nearbyint(float(v))); }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline __half2 __float2half2_rn(float v) { return {__half(v), __half(v)}; }
inline __half2 __half2half2(__half v) { return {v, v}; }
inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 make_half2(__half a, __half b) { return {a, b}; }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline unsigned short __half_as_ushort(__half v) { return v.bits; }
inline __half __ushort_as_half(unsigned short bits) { return __builtin_bit_cast(__half, bits); }
inline float __bfloat162float(__nv_bfloat16 v) { return v; }
inline __nv_bfloat16 __float2bfloat16(float v) { return v; }
inline __nv_bfloat16 __float2bfloat16_rn(float v) { return v; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 v) { return {v, v}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {float(v.x), float(v.y)}; }
#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
