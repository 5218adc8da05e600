// Products of matrix fragments on the tensor cores (nvcuda::wmma). Each lane holds neighbouring
// elements of a row, or of a column where the matrix lies by columns: CUDA leaves this open. Sums
// of half and float are one chain of float additions in the order of k; a GPU adds in another
// order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/narrow_floats.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}  // namespace precision

namespace details {

namespace emulation = triptych::cuda::emulation;
namespace plain = triptych::cuda::plain;
using emulation::Location;

/// Type of an element in a fragment, and of the arithmetic on it.
template <class T>
struct Element {
  using Stored = T;
  using Sum = T;
  TRIPTYCH_UNWATCHED static Sum value(T v) { return v; }
};
template <>
struct Element<__half> {
  using Stored = __half;
  using Sum = float;
  TRIPTYCH_UNWATCHED static float value(__half v) { return v; }
};
template <>
struct Element<__nv_bfloat16> {
  using Stored = __nv_bfloat16;
  using Sum = float;
  TRIPTYCH_UNWATCHED static float value(__nv_bfloat16 v) { return v; }
};
template <>
struct Element<precision::tf32> {
  using Stored = float;
  using Sum = float;
  /// The product ignores the lower bits.
  TRIPTYCH_UNWATCHED static float value(float v) {
    return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, v) & 0xFFFFE000U);
  }
};
template <>
struct Element<signed char> {
  using Stored = signed char;
  using Sum = int;
  TRIPTYCH_UNWATCHED static int value(signed char v) { return v; }
};
template <>
struct Element<unsigned char> {
  using Stored = unsigned char;
  using Sum = int;
  TRIPTYCH_UNWATCHED static int value(unsigned char v) { return v; }
};

TRIPTYCH_UNWATCHED inline float multiply_add(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
TRIPTYCH_UNWATCHED inline double multiply_add(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
TRIPTYCH_UNWATCHED inline int multiply_add(int a, int b, int c) { return a * b + c; }

}  // namespace details

template <class Use, int kM, int kN, int kK, class T, class Layout = void>
class fragment {
 public:
  using element_type = typename details::Element<T>::Stored;
  using storage_element_type = element_type;
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? kK : kM;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? kK : kN;
  static constexpr bool kByRows = !std::is_same_v<Layout, col_major>;
  static constexpr int num_elements = kRows * kColumns / 32;
  static constexpr int num_storage_elements = num_elements;

  element_type x[num_elements];

  /// Element i of a lane: its place in the matrix.
  TRIPTYCH_UNWATCHED static int row_of(int lane, int i) {
    const int place = lane * num_elements + i;
    return kByRows ? place / kColumns : place % kRows;
  }
  TRIPTYCH_UNWATCHED static int column_of(int lane, int i) {
    const int place = lane * num_elements + i;
    return kByRows ? place % kColumns : place / kRows;
  }
};

namespace details {

/// Copies a lane's elements to a matrix in row-major order.
template <class T, class Fragment, class Sum>
TRIPTYCH_UNWATCHED void gather(const Fragment& from, unsigned lane, Sum* matrix) {
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int place = static_cast<int>(lane) * Fragment::num_elements + i;
    const int row = place % Fragment::kRows, column = place / Fragment::kRows;
    const auto at = Fragment::kByRows ? place : row * Fragment::kColumns + column;
    matrix[at] = Element<T>::value(from.x[i]);
  }
}

/// Counts the accesses of the running lane to its elements in memory. Neighbours count together, up
/// to 16 bytes.
template <class Fragment, class T>
TRIPTYCH_UNWATCHED void touch(plain::Touch how, const T* memory, unsigned pitch, bool by_rows,
                              const Location& where) {
#if defined(TRIPTYCH_COMPILES_UNWATCHED)
  return;
#endif
  const auto lane = static_cast<int>(emulation::lane_index());
  const auto at = [&] TRIPTYCH_UNWATCHED(int i) {
    const int row = Fragment::row_of(lane, i), column = Fragment::column_of(lane, i);
    return memory + (by_rows ? row * pitch + column : column * pitch + row);
  };
  if (by_rows != Fragment::kByRows) {
    for (int i = 0; i < Fragment::num_elements; ++i) {
      plain::services->touch_at(how, at(i), sizeof(T), where);
    }
    return;
  }
  const auto* first = reinterpret_cast<const char*>(at(0));
  std::size_t rest = Fragment::num_elements * sizeof(T);
  while (rest > 0) {
    const auto limits = reinterpret_cast<std::uintptr_t>(first) | rest | 16;
    const auto piece = static_cast<std::size_t>(limits & (~limits + 1));
    plain::services->touch_at(how, first, piece, where);
    first += piece;
    rest -= piece;
  }
}

template <class Fragment, class T>
TRIPTYCH_UNWATCHED void load(Fragment& to, const T* memory, unsigned pitch, bool by_rows,
                             const Location& where) {
  touch<Fragment>(plain::Touch::Load, memory, pitch, by_rows, where);
  const auto lane = static_cast<int>(emulation::lane_index());
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int row = Fragment::row_of(lane, i), column = Fragment::column_of(lane, i);
    to.x[i] = memory[by_rows ? row * pitch + column : column * pitch + row];
  }
  emulation::exchange(~0U, 0, where, emulation::WarpWork::Synchronise);
}

}  // namespace details

template <class Use, int kM, int kN, int kK, class T, class Layout, class U>
TRIPTYCH_UNWATCHED void load_matrix_sync(fragment<Use, kM, kN, kK, T, Layout>& to, const U* memory,
                                         unsigned pitch,
                                         details::Location where = details::Location::current()) {
  details::load(to, memory, pitch, fragment<Use, kM, kN, kK, T, Layout>::kByRows, where);
}
template <int kM, int kN, int kK, class T, class U>
TRIPTYCH_UNWATCHED void load_matrix_sync(fragment<accumulator, kM, kN, kK, T>& to, const U* memory,
                                         unsigned pitch, layout_t layout,
                                         details::Location where = details::Location::current()) {
  details::load(to, memory, pitch, layout == mem_row_major, where);
}

template <int kM, int kN, int kK, class T, class U>
TRIPTYCH_UNWATCHED void store_matrix_sync(U* memory,
                                          const fragment<accumulator, kM, kN, kK, T>& from,
                                          unsigned pitch, layout_t layout,
                                          details::Location where = details::Location::current()) {
  using Fragment = fragment<accumulator, kM, kN, kK, T>;
  const bool by_rows = layout == mem_row_major;
  details::touch<Fragment>(details::plain::Touch::Store, memory, pitch, by_rows, where);
  const auto lane = static_cast<int>(details::emulation::lane_index());
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int row = Fragment::row_of(lane, i), column = Fragment::column_of(lane, i);
    memory[by_rows ? row * pitch + column : column * pitch + row] = from.x[i];
  }
  details::emulation::exchange(~0U, 0, where, details::emulation::WarpWork::Synchronise);
}

template <class Fragment, class V>
TRIPTYCH_UNWATCHED void fill_fragment(Fragment& to, const V& value) {
  for (auto& each : to.x) each = static_cast<typename Fragment::element_type>(value);
}

TRIPTYCH_UNWATCHED inline float __float_to_tf32(float v) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(unsigned, v) + 0x1000U) & 0xFFFFE000U);
}

/// d = a b + c, by the lane that arrives last. Counts as products of 16 x 8 x 16.
template <int kM, int kN, int kK, class A, class B, class LayoutA, class LayoutB, class D, class C>
TRIPTYCH_UNWATCHED void mma_sync(fragment<accumulator, kM, kN, kK, D>& d,
                                 const fragment<matrix_a, kM, kN, kK, A, LayoutA>& a,
                                 const fragment<matrix_b, kM, kN, kK, B, LayoutB>& b,
                                 const fragment<accumulator, kM, kN, kK, C>& c,
                                 details::Location where = details::Location::current()) {
  namespace emulation = details::emulation;
  using Sum = typename details::Element<C>::Sum;
  struct Operands {
    decltype(&d) to;
    decltype(&a) left;
    decltype(&b) right;
    decltype(&c) before;
  };
  Operands mine = {&d, &a, &b, &c};
  constexpr int kProducts = kM * kN * kK / (16 * 8 * 16);
  if (emulation::exchange(~0U, emulation::to_word(&mine), where, emulation::WarpWork::Multiply)) {
    const Operands* lanes[32];
    Sum left[kM * kK], right[kK * kN], sums[kM * kN];
    for (unsigned lane = 0; lane < 32; ++lane) {
      lanes[lane] = emulation::from_word<Operands*>(emulation::exchanged(~0U, lane, where));
      details::gather<A>(*lanes[lane]->left, lane, left);
      details::gather<B>(*lanes[lane]->right, lane, right);
      details::gather<C>(*lanes[lane]->before, lane, sums);
    }
    for (int m = 0; m < kM; ++m) {
      for (int k = 0; k < kK; ++k) {
        const Sum value = left[m * kK + k];
        for (int n = 0; n < kN; ++n) {
          Sum& sum = sums[m * kN + n];
          sum = details::multiply_add(value, right[k * kN + n], sum);
        }
      }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < d.num_elements; ++i) {
        lanes[lane]->to->x[i] =
            static_cast<typename details::Element<D>::Stored>(sums[lane * d.num_elements + i]);
      }
    }
  }
#if !defined(TRIPTYCH_COMPILES_UNWATCHED)
  for (int i = 1; i < kProducts; ++i) {
    emulation::exchange(~0U, 0, where, emulation::WarpWork::Multiply);
  }
#endif
}

}  // namespace nvcuda::wmma
#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming)
