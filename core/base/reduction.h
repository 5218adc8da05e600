// The one stated reduction tree. Every floating-point reduction outside a matrix product computes
// it, so that sums have the same bits on every backend and at any number of threads.
//
// A sequence of elements consists of rows. It is one row unless the operator says otherwise. Each
// row is cut into blocks of kReductionBlock elements, the last one shorter. In a block, lane l of
// kReductionLanes starts at +0 and adds elements l, l + lanes, l + 2 lanes, ... in ascending order.
// The lanes are then folded by halving: lane l += lane l + 16, then + 8, + 4, + 2, + 1. A balanced
// tree folds the block sums, row after row: it adds neighbours (0, 1), (2, 3), ... and keeps an odd
// last one, until one is left. An empty sequence sums to +0. Lanes without elements may be left
// out: no lane is ever -0, so adding their +0 changes nothing. The only NaN that it folds is
// 0x7FC00000.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/exact_math.h"
#include "core/base/host_device.h"

namespace triptych {

inline constexpr std::int64_t kReductionLanes = 32;
inline constexpr std::int64_t kReductionBlock = 1024;

/// Blocks of a row of `length` elements.
TRIPTYCH_HOST_DEVICE constexpr std::int64_t reduction_blocks(std::int64_t length) {
  return (length + kReductionBlock - 1) / kReductionBlock;
}

/// Additions on the longest path of the tree over `count` elements, however they lie in rows.
constexpr std::int64_t reduction_depth(std::int64_t count) {
  const auto in_block = count < kReductionBlock ? count : kReductionBlock;
  std::int64_t depth = (in_block + kReductionLanes - 1) / kReductionLanes;
  for (std::int64_t lanes = kReductionLanes; lanes > 1; lanes /= 2) ++depth;
  for (std::int64_t blocks = count; blocks > 1; blocks = (blocks + 1) / 2) ++depth;
  return depth;
}

/// x, or the one NaN of exact_math.h. Additions give other ones, another on each processor.
template <class T>
TRIPTYCH_HOST_DEVICE constexpr T one_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x ? std::numeric_limits<T>::quiet_NaN() : x;
  return x;
}

/// True for a NaN. Integers have none.
template <class T>
TRIPTYCH_HOST_DEVICE constexpr bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

/// The order of ArgMax: a NaN is above every number, and as large as another NaN.
template <class T>
TRIPTYCH_HOST_DEVICE constexpr bool exceeds(T a, T b) {
  return a > b || (is_nan(a) && !is_nan(b));
}
template <class T>
TRIPTYCH_HOST_DEVICE constexpr bool ties(T a, T b) {
  return a == b || (is_nan(a) && is_nan(b));
}

/// The order of maxima, where `b` is the largest so far: a NaN replaces everything, so that the
/// last one of a sequence remains, as in PyTorch's pooling.
template <class T>
TRIPTYCH_HOST_DEVICE constexpr bool outranks(T a, T b) {
  return (a > b) | is_nan(a);
}

/// `condition ? a : b`, which keeps a subnormal: g++ would compile the conditional of floats to an
/// instruction that flushes it.
template <class T>
TRIPTYCH_HOST_DEVICE constexpr T chosen(bool condition, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    return exact::select(condition, a, b);
  } else {
    return condition ? a : b;
  }
}

/// Kind of a tree: sums (of integers they wrap), maxima or minima, which are NaN if any element is.
/// `kStart` is the result for an empty sequence.
template <class T>
struct SumOf {
  using Type = T;
  static constexpr T kStart = 0;
  TRIPTYCH_HOST_DEVICE constexpr T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

template <class T>
struct MaxOf {
  using Type = T;
  static constexpr T kStart =
      std::is_integral_v<T> ? std::numeric_limits<T>::min() : -std::numeric_limits<T>::infinity();
  TRIPTYCH_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return chosen(outranks(b, a), b, a);
  }
};

template <class T>
struct MinOf {
  using Type = T;
  static constexpr T kStart =
      std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
  TRIPTYCH_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return chosen((b < a) | is_nan(b), b, a);
  }
};

/// One block: `count` <= kReductionBlock elements, element i = value(i).
template <class Combine, class Value>
TRIPTYCH_HOST_DEVICE constexpr auto fold_block(std::int64_t count, const Value& value,
                                               Combine combine) {
  typename Combine::Type lanes[kReductionLanes];
  for (auto& lane : lanes) lane = Combine::kStart;
  std::int64_t i = 0;
  for (; i + kReductionLanes <= count; i += kReductionLanes) {
    for (std::int64_t l = 0; l < kReductionLanes; ++l) lanes[l] = combine(lanes[l], value(i + l));
  }
  for (std::int64_t l = 0; i + l < count; ++l) lanes[l] = combine(lanes[l], value(i + l));
  for (std::int64_t half = kReductionLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) lanes[l] = combine(lanes[l], lanes[l + half]);
  }
  return one_nan(lanes[0]);
}

/// Folds the results of `count` blocks, `stride` apart, by the balanced tree, overwriting them.
template <class Combine>
TRIPTYCH_HOST_DEVICE constexpr auto fold_tree(typename Combine::Type* blocks, std::int64_t count,
                                              Combine combine, std::int64_t stride = 1) {
  if (count == 0) return Combine::kStart;
  for (; count > 1; count = (count + 1) / 2) {
    for (std::int64_t i = 0; i + 1 < count; i += 2) {
      blocks[i / 2 * stride] = combine(blocks[i * stride], blocks[(i + 1) * stride]);
    }
    if (count % 2 == 1) blocks[count / 2 * stride] = blocks[(count - 1) * stride];
  }
  return one_nan(blocks[0]);
}

/// The same tree for block results that come one after another. The count must stay below 2^40.
template <class Combine>
class TreeFold {
 public:
  using Type = typename Combine::Type;

  TRIPTYCH_HOST_DEVICE constexpr void push(Type block) {
    // As in a binary counter, a full subtree of each size waits for its neighbour.
    for (auto bit = count_++; bit % 2 == 1; bit /= 2) block = Combine()(pending_[--depth_], block);
    pending_[depth_++] = block;
  }
  TRIPTYCH_HOST_DEVICE constexpr Type result() const {
    if (depth_ == 0) return Combine::kStart;
    Type total = pending_[depth_ - 1];
    for (int i = depth_ - 2; i >= 0; --i) total = Combine()(pending_[i], total);
    return one_nan(total);
  }

 private:
  Type pending_[40] = {};
  int depth_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace triptych
