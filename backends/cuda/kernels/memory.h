// Arrays as kernels see them. On a GPU, and in plain emulation, they are bare pointers. The counted
// emulation (emulation/counted_memory.h) has the same names, and sees every access.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/host_device.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Elements that one access moves at once: 2, 4, 8 or 16 bytes.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T values[kCount];
  TRIPTYCH_HOST_DEVICE T& operator[](int i) { return values[i]; }
  TRIPTYCH_HOST_DEVICE const T& operator[](int i) const { return values[i]; }
};

#if defined(__CUDACC__)
/// Type of an access of kBytes: one built-in type, since nvcc takes accesses to a struct
/// apart, element by element.
template <int kBytes>
struct WordOf;
template <>
struct WordOf<2> {
  using Type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

template <class V>
__device__ V load_whole(const void* from) {
  return __builtin_bit_cast(V, *static_cast<const typename WordOf<sizeof(V)>::Type*>(from));
}

/// nvcc splits a plain store, too, once its elements come out of different branches.
template <class V>
__device__ void store_whole(void* to, const V& value) {
  const auto word = __builtin_bit_cast(typename WordOf<sizeof(V)>::Type, value);
  const auto address = __cvta_generic_to_global(to);
  if constexpr (sizeof(V) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(word.x),
                 "r"(word.y), "r"(word.z), "r"(word.w)
                 : "memory");
  } else if constexpr (sizeof(V) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(address), "r"(word.x), "r"(word.y)
                 : "memory");
  } else if constexpr (sizeof(V) == 2) {
    asm volatile("st.global.b16 [%0], %1;" ::"l"(address), "h"(word) : "memory");
  } else {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(address), "r"(word) : "memory");
  }
}
#else
template <class V>
V load_whole(const void* from) {
  return *static_cast<const V*>(from);
}
template <class V>
void store_whole(void* to, const V& value) {
  *static_cast<V*>(to) = value;
}
#endif

/// An array in global memory: `size` elements, which the counted emulation checks.
template <class T>
class Global {
 public:
  Global() = default;
  TRIPTYCH_HOST_DEVICE Global(T* data, std::int64_t) : data_(data) {}

  template <class Index>
  TRIPTYCH_ALWAYS_INLINE T& operator[](Index i) const {
    return data_[i];
  }
  /// Elements i to i + kCount - 1 in one access. I is a multiple of kCount.
  template <int kCount, class Index>
  [[gnu::always_inline]] __device__ auto load(Index i) const {
    return load_whole<Vector<std::remove_const_t<T>, kCount>>(data_ + i);
  }
  template <int kCount, class Index>
  [[gnu::always_inline]] __device__ void store(Index i, const Vector<T, kCount>& values) const {
    store_whole(data_ + i, values);
  }
  /// Its memory, for questions about alignment.
  TRIPTYCH_HOST_DEVICE const void* address() const { return data_; }
  /// From element i on.
  template <class Index>
  TRIPTYCH_ALWAYS_INLINE Global from(Index i) const {
    return {data_ + i, 0};
  }

 private:
  T* data_ = nullptr;
};

/// An array in shared memory, rows of kWidth elements. A member of the struct that shared() gives.
template <class T, int kHeight, int kWidth = 1>
struct Shared {
  T data[kHeight * kWidth];

  TRIPTYCH_ALWAYS_INLINE T& operator[](int i) { return data[i]; }
  TRIPTYCH_ALWAYS_INLINE T& operator()(int row, int column) { return data[row * kWidth + column]; }
  /// kCount elements of a row in one access. `column` is a multiple of kCount.
  template <int kCount>
  TRIPTYCH_ALWAYS_INLINE Vector<T, kCount> load(int row, int column) {
    return *reinterpret_cast<Vector<T, kCount>*>(data + row * kWidth + column);
  }
  template <int kCount>
  TRIPTYCH_ALWAYS_INLINE void store(int row, int column, const Vector<T, kCount>& values) {
    *reinterpret_cast<Vector<T, kCount>*>(data + row * kWidth + column) = values;
  }
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
