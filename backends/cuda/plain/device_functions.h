// CUDA's functions of a kernel beyond those of language.h: fences, votes of a block, atomic
// operations, loads with a hint, arithmetic. Functions of <cmath> are the processor's: their last
// bits may differ from a GPU's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
namespace triptych::cuda::plain {

using emulation::Location;

/// Tells of an access of a function that knows its place, in pieces that a GPU has instructions
/// for.
template <class T>
TRIPTYCH_UNWATCHED void touch(Touch how, const T* at, const Location& where) {
#if defined(TRIPTYCH_COMPILES_UNWATCHED)  // whose atomic reads are polled
  return;
#endif
  constexpr std::size_t kLowest = sizeof(T) & (~sizeof(T) + 1);
  constexpr std::size_t kPiece = kLowest < 16 ? kLowest : 16;
  for (std::size_t offset = 0; offset < sizeof(T); offset += kPiece) {
    services->touch_at(how, reinterpret_cast<const char*>(at) + offset, kPiece, where);
  }
}

/// An integer as wide as T.
template <std::size_t kBytes>
struct WordOf {
  using Type = unsigned;
};
template <>
struct WordOf<8> {
  using Type = unsigned long long;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;
};

/// Replaces *at by change(*at) as one operation. Returns the previous value.
template <class T, class Change>
TRIPTYCH_UNWATCHED T atomically(T* at, const Location& where, const Change& change,
                                Touch how = Touch::Atomic) {
  touch(how, at, where);
  using Word = typename WordOf<sizeof(T)>::Type;
  auto* word = reinterpret_cast<Word*>(at);
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const T value = __builtin_bit_cast(T, before);
    const Word after = __builtin_bit_cast(Word, static_cast<T>(change(value)));
    if (__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED)) {
      return value;
    }
  }
}

/// The type of T, from which no T is deduced.
template <class T>
using Same = std::type_identity_t<T>;

}  // namespace triptych::cuda::plain

#define TRIPTYCH_ATOMIC(name, expression)                                                   \
  template <class T>                                                                        \
  TRIPTYCH_UNWATCHED T name(                                                                \
      T* at, triptych::cuda::plain::Same<T> v,                                              \
      triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) { \
    return triptych::cuda::plain::atomically(                                               \
        at, where, [v](T old) TRIPTYCH_UNWATCHED { return static_cast<T>(expression); });   \
  }
TRIPTYCH_ATOMIC(atomicAdd, old + v)
TRIPTYCH_ATOMIC(atomicSub, old - v)
TRIPTYCH_ATOMIC(atomicExch, (static_cast<void>(old), v))
TRIPTYCH_ATOMIC(atomicMin, v < old ? v : old)
TRIPTYCH_ATOMIC(atomicMax, old < v ? v : old)
TRIPTYCH_ATOMIC(atomicAnd, old& v)
TRIPTYCH_ATOMIC(atomicOr, old | v)
TRIPTYCH_ATOMIC(atomicXor, old ^ v)
TRIPTYCH_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
TRIPTYCH_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef TRIPTYCH_ATOMIC

template <class T>
TRIPTYCH_UNWATCHED T
atomicCAS(T* at, triptych::cuda::plain::Same<T> expected, triptych::cuda::plain::Same<T> v,
          triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) {
  using triptych::cuda::plain::Touch;
  const T before = triptych::cuda::plain::atomically(
      at, where, [=](T old) TRIPTYCH_UNWATCHED { return old == expected ? v : old; },
      Touch::AtomicRead);
  if (before == expected) triptych::cuda::plain::touch(Touch::AtomicWrite, at, where);
  return before;
}

#define TRIPTYCH_LOAD(name)                                                                \
  template <class T>                                                                       \
  TRIPTYCH_UNWATCHED T name(const T* at, triptych::cuda::plain::Location where =           \
                                             triptych::cuda::plain::Location::current()) { \
    triptych::cuda::plain::touch(triptych::cuda::plain::Touch::Load, at, where);           \
    return *at;                                                                            \
  }
TRIPTYCH_LOAD(__ldg)
TRIPTYCH_LOAD(__ldca)
TRIPTYCH_LOAD(__ldcg)
TRIPTYCH_LOAD(__ldcs)
#undef TRIPTYCH_LOAD
#define TRIPTYCH_STORE(name)                                                                \
  template <class T>                                                                        \
  TRIPTYCH_UNWATCHED void name(                                                             \
      T* at, triptych::cuda::plain::Same<T> value,                                          \
      triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) { \
    triptych::cuda::plain::touch(triptych::cuda::plain::Touch::Store, at, where);           \
    *at = value;                                                                            \
  }
TRIPTYCH_STORE(__stcg)
TRIPTYCH_STORE(__stcs)
TRIPTYCH_STORE(__stwb)
#undef TRIPTYCH_STORE

/// memcpy and memset of a kernel: byte by byte as a GPU's compiler without knowledge would, in
/// pieces of up to 16 bytes where both addresses allow it.
namespace triptych::cuda::plain {
TRIPTYCH_UNWATCHED inline void* copy(void* to, const void* from, std::size_t bytes,
                                     Location where = Location::current()) {
  for (std::size_t at = 0, piece = 0; at < bytes; at += piece) {
    auto* target = static_cast<char*>(to) + at;
    const auto* source = static_cast<const char*>(from) + at;
    const auto both =
        reinterpret_cast<std::uintptr_t>(target) | reinterpret_cast<std::uintptr_t>(source) | 16;
    for (piece = both & (~both + 1); piece > bytes - at;) piece /= 2;
    services->touch_at(Touch::Load, source, piece, where);
    services->touch_at(Touch::Store, target, piece, where);
    std::memmove(target, source, piece);
  }
  return to;
}
TRIPTYCH_UNWATCHED inline void* fill(void* to, int value, std::size_t bytes,
                                     Location where = Location::current()) {
  for (std::size_t at = 0, piece = 0; at < bytes; at += piece) {
    auto* target = static_cast<char*>(to) + at;
    const auto address = reinterpret_cast<std::uintptr_t>(target) | 16;
    for (piece = address & (~address + 1); piece > bytes - at;) piece /= 2;
    services->touch_at(Touch::Store, target, piece, where);
    std::memset(target, value, piece);
  }
  return to;
}
}  // namespace triptych::cuda::plain
TRIPTYCH_UNWATCHED inline void __threadfence(
    triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) {
  triptych::cuda::plain::services->fence(where, true);
}
TRIPTYCH_UNWATCHED inline void __threadfence_block(
    triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) {
  triptych::cuda::plain::services->fence(where, false);
}
TRIPTYCH_UNWATCHED inline void __threadfence_system(
    triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) {
  triptych::cuda::plain::services->fence(where, true);
}
TRIPTYCH_UNWATCHED inline void __trap(
    triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()) {
  triptych::cuda::plain::services->fail("the kernel calls __trap", where);
}
__attribute__((
    error("which lanes are active is no property of CUDA's language since Volta: give "
          "the mask of the lanes that take part"))) unsigned
__activemask();

// Bits and numbers.
#define TRIPTYCH_FUNCTION TRIPTYCH_UNWATCHED inline
TRIPTYCH_FUNCTION int __popc(unsigned v) { return __builtin_popcount(v); }
TRIPTYCH_FUNCTION int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
TRIPTYCH_FUNCTION int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
TRIPTYCH_FUNCTION int __clzll(long long v) {
  return v == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(v));
}
TRIPTYCH_FUNCTION int __ffs(int v) { return __builtin_ffs(v); }
TRIPTYCH_FUNCTION int __ffsll(long long v) { return __builtin_ffsll(v); }
TRIPTYCH_FUNCTION unsigned __brev(unsigned v) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit, v >>= 1) reversed = reversed << 1 | (v & 1);
  return reversed;
}
TRIPTYCH_FUNCTION int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
TRIPTYCH_FUNCTION int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
TRIPTYCH_FUNCTION unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
TRIPTYCH_FUNCTION int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
TRIPTYCH_FUNCTION unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
TRIPTYCH_FUNCTION float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
TRIPTYCH_FUNCTION float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
TRIPTYCH_FUNCTION long long __double_as_longlong(double v) {
  return __builtin_bit_cast(long long, v);
}
TRIPTYCH_FUNCTION double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
TRIPTYCH_FUNCTION float __int2float_rn(int v) { return static_cast<float>(v); }
TRIPTYCH_FUNCTION float __uint2float_rn(unsigned v) { return static_cast<float>(v); }
TRIPTYCH_FUNCTION int __float2int_rz(float v) { return static_cast<int>(v); }
TRIPTYCH_FUNCTION int __float2int_rn(float v) { return static_cast<int>(std::nearbyintf(v)); }
TRIPTYCH_FUNCTION int __float2int_rd(float v) { return static_cast<int>(std::floor(v)); }
TRIPTYCH_FUNCTION int __float2int_ru(float v) { return static_cast<int>(std::ceil(v)); }

// Single operations, which are never contracted.
TRIPTYCH_FUNCTION float __fadd_rn(float a, float b) { return a + b; }
TRIPTYCH_FUNCTION float __fsub_rn(float a, float b) { return a - b; }
TRIPTYCH_FUNCTION float __fmul_rn(float a, float b) { return a * b; }
TRIPTYCH_FUNCTION float __fdiv_rn(float a, float b) { return a / b; }
TRIPTYCH_FUNCTION float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
TRIPTYCH_FUNCTION float __fsqrt_rn(float v) { return std::sqrt(v); }
TRIPTYCH_FUNCTION float __frcp_rn(float v) { return 1 / v; }
TRIPTYCH_FUNCTION double __dadd_rn(double a, double b) { return a + b; }
TRIPTYCH_FUNCTION double __dmul_rn(double a, double b) { return a * b; }
TRIPTYCH_FUNCTION double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// Those that a GPU approximates are rounded here.
TRIPTYCH_FUNCTION float __fdividef(float a, float b) { return a / b; }
TRIPTYCH_FUNCTION float fdividef(float a, float b) { return a / b; }
TRIPTYCH_FUNCTION float __expf(float v) { return std::exp(v); }
TRIPTYCH_FUNCTION float __exp10f(float v) { return std::pow(10.0F, v); }
TRIPTYCH_FUNCTION float __logf(float v) { return std::log(v); }
TRIPTYCH_FUNCTION float __log2f(float v) { return std::log2(v); }
TRIPTYCH_FUNCTION float __log10f(float v) { return std::log10(v); }
TRIPTYCH_FUNCTION float __powf(float a, float b) { return std::pow(a, b); }
TRIPTYCH_FUNCTION float __sinf(float v) { return std::sin(v); }
TRIPTYCH_FUNCTION float __cosf(float v) { return std::cos(v); }
TRIPTYCH_FUNCTION float __tanf(float v) { return std::tan(v); }
TRIPTYCH_FUNCTION float __saturatef(float v) { return v > 1 ? 1.0F : v > 0 ? v : 0.0F; }
TRIPTYCH_FUNCTION float rsqrtf(float v) { return 1 / std::sqrt(v); }
TRIPTYCH_FUNCTION double rsqrt(double v) { return 1 / std::sqrt(v); }
TRIPTYCH_FUNCTION float rsqrt(float v) { return 1 / std::sqrt(v); }
// Addresses for inline PTX: of one in shared memory, the lower 32 bits are enough.
TRIPTYCH_FUNCTION std::size_t __cvta_generic_to_shared(const volatile void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}
TRIPTYCH_FUNCTION std::size_t __cvta_generic_to_global(const volatile void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}
#undef TRIPTYCH_FUNCTION

template <class A, class B>
TRIPTYCH_UNWATCHED constexpr std::common_type_t<A, B> min(A a, B b) {
  using Common = std::common_type_t<A, B>;
  return static_cast<Common>(b) < static_cast<Common>(a) ? static_cast<Common>(b)
                                                         : static_cast<Common>(a);
}
template <class A, class B>
TRIPTYCH_UNWATCHED constexpr std::common_type_t<A, B> max(A a, B b) {
  using Common = std::common_type_t<A, B>;
  return static_cast<Common>(a) < static_cast<Common>(b) ? static_cast<Common>(b)
                                                         : static_cast<Common>(a);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
