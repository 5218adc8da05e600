// Arrays as kernels see them. On a GPU, and in plain emulation, they are bare pointers; the counted
// emulation (emulation/counted_memory.h) has the same names, and sees every access.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/host_device.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Elements that one access moves at once: 4, 8 or 16 bytes.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T values[kCount];
  TRIPTYCH_HOST_DEVICE T& operator[](int i) { return values[i]; }
  TRIPTYCH_HOST_DEVICE const T& operator[](int i) const { return values[i]; }
};

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
  /// Elements i to i + kCount - 1; i is a multiple of kCount.
  template <int kCount, class Index>
  TRIPTYCH_ALWAYS_INLINE auto& vector(Index i) const {
    if constexpr (std::is_const_v<T>) {
      return *reinterpret_cast<const Vector<std::remove_const_t<T>, kCount>*>(data_ + i);
    } else {
      return *reinterpret_cast<Vector<T, kCount>*>(data_ + i);
    }
  }
  /// From element i on.
  template <class Index>
  TRIPTYCH_ALWAYS_INLINE Global from(Index i) const {
    return {data_ + i, 0};
  }

 private:
  T* data_ = nullptr;
};

/// An array in shared memory, rows of kWidth elements; a member of the struct that shared() gives.
template <class T, int kHeight, int kWidth = 1>
struct Shared {
  T data[kHeight * kWidth];

  TRIPTYCH_ALWAYS_INLINE T& operator[](int i) { return data[i]; }
  TRIPTYCH_ALWAYS_INLINE T& operator()(int row, int column) { return data[row * kWidth + column]; }
  template <int kCount>
  TRIPTYCH_ALWAYS_INLINE Vector<T, kCount>& vector(int row, int column) {
    return *reinterpret_cast<Vector<T, kCount>*>(data + row * kWidth + column);
  }
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
