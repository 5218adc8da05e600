// Operators whose elements are a formula of the inputs' elements at the same place. A formula is a
// type with a call operator, written once for all types of elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// kEach elements of an operand, from element i on.
template <int kEach, class X>
__device__ Vector<X, kEach> held(Global<const X> x, std::int64_t i) {
  if constexpr (kEach == 1) {
    return {{x[i]}};
  } else {
    return x.template load<kEach>(i);
  }
}

/// f(x[e], ...) for kEach elements. A braced list reads the operands in their order.
template <class F, class Y, int kEach, class... X>
struct Mapped {
  Vector<Y, kEach> y;

  __device__ Mapped(const F& f, const Vector<X, kEach>&... x) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) y[e] = static_cast<Y>(f(x[e]...));
  }
};

template <int kEach, class Y, class F, class... X, std::size_t... kInput>
__device__ Vector<Y, kEach> mapped(std::index_sequence<kInput...>, const F& f,
                                   const std::int64_t (&at)[1 + sizeof...(X)],
                                   Global<const X>... x) {
  return Mapped<F, Y, kEach, X...>{f, held<kEach>(x, at[1 + kInput])...}.y;
}

/// y[i] = f(x[i], ...): one element per thread.
template <class F, class Y, class... X>
__global__ void map_kernel(F f, Global<Y> y, ElementOffsets<1 + sizeof...(X)> offsets,
                           Global<const X>... x) {
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[1 + sizeof...(X)];
    offsets.at(i, at);
    y[at[0]] = mapped<1, Y>(std::index_sequence_for<X...>(), f, at, x...)[0];
  }
}

/// The same where elements lie in fours: four per thread and access.
template <class F, class Y, class... X>
__global__ void map_fours_kernel(F f, Global<Y> y,
                                 const __grid_constant__ ElementOffsets<1 + sizeof...(X)> offsets,
                                 Global<const X>... x) {
  const std::int64_t count = offsets.elements;
  for (auto i = 4 * global_thread(); i < count; i += 4 * all_threads()) {
    if (i + 4 <= count) {
      std::int64_t at[1 + sizeof...(X)];
      offsets.at(i, at);
      const auto out = mapped<4, Y>(std::index_sequence_for<X...>(), f, at, x...);
      y.template store<4>(at[0], out);
    } else {  // there is one axis
      for (auto j = i; j < count; ++j) y[j] = Mapped<F, Y, 1, X...>{f, held<1>(x, j)...}.y[0];
    }
  }
}

/// Names of the launches of a map. Without `fours` it takes one element per thread.
struct MapNames {
  const char* one;
  const char* fours = nullptr;
};

/// An operator whose elements are f of the inputs' elements at the same place.
template <int kInputs>
class MapKernel : public Kernel {
 public:
  using Launch = std::function<void(const KernelArgs&, const ElementOffsets<1 + kInputs>&)>;

  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  MapKernel(const KernelQuery& query, Launch launch)
      : offsets_(offsets_of<1 + kInputs>(query)), launch_(std::move(launch)) {}

  void run(const KernelArgs& args) override { launch_(args, offsets_); }

 private:
  ElementOffsets<1 + kInputs> offsets_;
  Launch launch_;
};

/// For inputs of types X and a result of Y.
template <class Y, class... X, class F>
typename MapKernel<sizeof...(X)>::Launch launch_of(MapNames names, F f) {
  return [=](const KernelArgs& args, const ElementOffsets<1 + sizeof...(X)>& offsets) {
    const auto start = [&]<std::size_t... k>(std::index_sequence<k...>) {
      const Global<Y> y(args.out<Y>(0), offsets.reach(0));
      if constexpr (std::is_same_v<Y, float> && (std::is_same_v<X, float> && ...)) {
        if (names.fours != nullptr && offsets.in_fours() && !(offsets.single(1 + k) || ...) &&
            is_aligned<16>(args.outputs[0], args.inputs[k]...)) {
          launch(args.stream, names.fours, one_dimension((offsets.elements + 3) / 4),
                 map_fours_kernel<F, Y, X...>, f, y, offsets,
                 Global<const X>(args.in<X>(k), offsets.reach(1 + k))...);
          return;
        }
      }
      launch(args.stream, names.one, one_dimension(offsets.elements), map_kernel<F, Y, X...>, f, y,
             offsets, Global<const X>(args.in<X>(k), offsets.reach(1 + k))...);
    };
    start(std::index_sequence_for<X...>());
  };
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
