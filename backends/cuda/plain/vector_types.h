// CUDA's vector types and their make_ functions, with CUDA's alignments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#define TRIPTYCH_VECTOR(name, T, bytes)                                                 \
  struct name##1 {                                                                      \
    T x;                                                                                \
  };                                                                                    \
  struct __attribute__((aligned(2 * bytes))) name##2 {                                  \
    T x, y;                                                                             \
  };                                                                                    \
  struct name##3 {                                                                      \
    T x, y, z;                                                                          \
  };                                                                                    \
  struct __attribute__((aligned(4 * bytes > 16 ? 16 : 4 * bytes))) name##4 {            \
    T x, y, z, w;                                                                       \
  };                                                                                    \
  TRIPTYCH_UNWATCHED inline name##1 make_##name##1(T x) { return {x}; }                 \
  TRIPTYCH_UNWATCHED inline name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  TRIPTYCH_UNWATCHED inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  TRIPTYCH_UNWATCHED inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

TRIPTYCH_VECTOR(char, signed char, 1)
TRIPTYCH_VECTOR(uchar, unsigned char, 1)
TRIPTYCH_VECTOR(short, short, 2)
TRIPTYCH_VECTOR(ushort, unsigned short, 2)
TRIPTYCH_VECTOR(int, int, 4)
TRIPTYCH_VECTOR(uint, unsigned, 4)
TRIPTYCH_VECTOR(long, long, 8)
TRIPTYCH_VECTOR(ulong, unsigned long, 8)
TRIPTYCH_VECTOR(longlong, long long, 8)
TRIPTYCH_VECTOR(ulonglong, unsigned long long, 8)
TRIPTYCH_VECTOR(float, float, 4)
TRIPTYCH_VECTOR(double, double, 8)
#undef TRIPTYCH_VECTOR

struct dim3 {
  unsigned x, y, z;
  // Watched, they would end the piece of code in front of a branch that depends on a dim3.
  TRIPTYCH_UNWATCHED constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1)
      : x(vx), y(vy), z(vz) {}
  TRIPTYCH_UNWATCHED constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  TRIPTYCH_UNWATCHED constexpr operator uint3() const { return {x, y, z}; }
};
// NOLINTEND(readability-identifier-naming)
