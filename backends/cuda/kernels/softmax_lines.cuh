// Maximum and sum of exponentials along lines, for Softmax, LogSoftmax and the cross entropy over
// classes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/elementwise.cuh"
#include "backends/cuda/kernels/reduction.cuh"
#include "core/ops/axes.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Lines and how they are walked.
struct Lines : AxisLines {
  TRIPTYCH_HOST_DEVICE std::int64_t lines() const { return outer * inner; }
  TRIPTYCH_HOST_DEVICE std::int64_t elements() const { return outer * inner * count; }
  /// Index of the first element of `line`.
  __device__ std::int64_t start(std::int64_t line) const {
    return line / inner * count * inner + line % inner;
  }
};

/// Who owns a line. Where lines lie side by side it is a thread, which keeps kOwnLanes lanes of the
/// tree: 32, or fewer when a line has no more elements. Else it is a warp.
template <int kOwnLanes>
struct LineOwner {
  /// True when it suffices for every line.
  static constexpr bool kIsOneBlock = kOwnLanes < kLanes;
  static constexpr int kThreads = 1;

  __device__ static int member() { return 0; }

  /// One block of the tree, its lanes in registers.
  template <class Combine, class Value>
  __device__ static typename Combine::Type fold_block(std::int64_t count, const Value& value) {
    typename Combine::Type lanes[kOwnLanes];
#pragma unroll
    for (int l = 0; l < kOwnLanes; ++l) lanes[l] = Combine::kStart;
    for (std::int64_t i = 0; i < count; i += kOwnLanes) {
#pragma unroll
      for (int l = 0; l < kOwnLanes; ++l) {
        if (i + l < count) lanes[l] = Combine()(lanes[l], value(i + l));
      }
    }
#pragma unroll
    for (int half = kOwnLanes / 2; half > 0; half /= 2) {
#pragma unroll
      for (int l = 0; l < half; ++l) lanes[l] = Combine()(lanes[l], lanes[l + half]);
    }
    return lanes[0];
  }
};

struct WarpOwner {
  static constexpr bool kIsOneBlock = false;
  static constexpr int kThreads = kLanes;

  __device__ static int member() { return lane_of_warp(); }

  template <class Combine, class Value>
  __device__ static typename Combine::Type fold_block(std::int64_t count, const Value& value) {
    return __shfl_sync(kWholeWarp, fold_block_by_warp<Combine>(count, value), 0);
  }
};

/// The whole tree over value(i), i < count.
template <class Owner, class Combine, class Value>
__device__ typename Combine::Type fold_line(std::int64_t count, const Value& value) {
  if (Owner::kIsOneBlock || count <= kReductionBlock)
    return Owner::template fold_block<Combine>(count, value);
  TreeFold<Combine> tree;
  for (std::int64_t first = 0; first < count; first += kReductionBlock) {
    const std::int64_t rest = count - first;
    tree.push(
        Owner::template fold_block<Combine>(rest < kReductionBlock ? rest : kReductionBlock,
                                            [&](std::int64_t i) { return value(first + i); }));
  }
  return tree.result();
}

/// The largest element of a line, and the tree sum of exp(x - largest).
struct LineStatistics {
  float largest = 0, sum = 0;

  template <class Owner>
  __device__ static LineStatistics of(const Lines& lines, const Global<const float>& x,
                                      std::int64_t start) {
    const std::int64_t inner = lines.inner;
    const auto element = [&](std::int64_t i) -> float { return x[start + i * inner]; };
    const float largest = fold_line<Owner, MaxOf<float>>(lines.count, element);
    const auto exponential = [&](std::int64_t i) { return exact::exp(element(i) - largest); };
    return {largest, fold_line<Owner, SumOf<float>>(lines.count, exponential)};
  }
};

/// Calls visit(line) for the lines of this thread, or warp.
template <class Owner, class Visit>
__device__ void for_each_line(const Lines& lines, const Visit& visit) {
  constexpr int kThreads = Owner::kThreads;
  for (auto line = global_thread() / kThreads; line < lines.lines();
       line += all_threads() / kThreads) {
    visit(line);
  }
}

/// Calls visit(i) for the elements of a line that are this thread's.
template <class Owner, class Visit>
__device__ void for_each_element(const Lines& lines, const Visit& visit) {
  for (std::int64_t i = Owner::member(); i < lines.count; i += Owner::kThreads) visit(i);
}

template <class Owner>
LaunchShape line_shape(const Lines& lines) {
  return one_dimension(lines.lines() * Owner::kThreads);
}

/// Calls body with the Owner for these lines.
template <class Body>
void with_owner(const Lines& lines, const Body& body) {
  if (lines.inner == 1) {
    body(WarpOwner());
  } else if (lines.count <= 4) {
    body(LineOwner<4>());
  } else {
    body(LineOwner<kLanes>());
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
