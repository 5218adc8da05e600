// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize.h"

#include "backends/cuda/kernels/elementwise.cuh"
#include "core/base/quantized_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

struct Quantize {
  using In = float;
  using Out = std::int8_t;
  static __device__ Out apply(In x, float scale) { return quantize_to_i8(x, scale); }
};

template <class T>
struct Dequantize {
  using In = T;
  using Out = float;
  static __device__ Out apply(In x, float scale) {
    return exact::canonical(static_cast<float>(x) * scale);
  }
};

/// y[i] = f(x[i], scale[i]): one element per thread. Operands are y, x and the scales.
template <class F>
__global__ void scaled_kernel(Global<const typename F::In> x, Global<const float> scale,
                              Global<typename F::Out> y, ElementOffsets<3> offsets) {
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[3];
    offsets.at(i, at);
    const typename F::In value = x[at[1]];
    const float factor = scale[at[2]];
    y[at[0]] = F::apply(value, factor);
  }
}

/// The same with one scale, where x and y lie contiguous: four elements per thread and access.
template <class F>
__global__ void scaled_contiguous_kernel(Global<const typename F::In> x, Global<const float> scale,
                                         Global<typename F::Out> y, std::int64_t count) {
  const float factor = scale[0];
  for (auto i = 4 * global_thread(); i < count; i += 4 * all_threads()) {
    if (i + 4 <= count) {
      const Vector<typename F::In, 4> in = x.template load<4>(i);
      Vector<typename F::Out, 4> out;
      for (int j = 0; j < 4; ++j) out[j] = F::apply(in[j], factor);
      y.template store<4>(i, out);
    } else {
      for (auto j = i; j < count; ++j) {
        const typename F::In value = x[j];
        y[j] = F::apply(value, factor);
      }
    }
  }
}

/// The scales' strides are those of a scalar, or the operator's own.
ElementOffsets<3> scaled_offsets(const KernelQuery& query) {
  const Shape& y = query.outputs[0].spec.shape;
  Dims scales(static_cast<std::size_t>(y.rank()), 0);
  if (query.op.name() == DequantizeLinear::kName) {
    scales = query.as<DequantizeLinear>().scale_strides(y, operand_view(query.inputs[1]));
  }
  return ElementOffsets<3>(BroadcastWalk<3>(
      y, {operand_strides(query.outputs[0], y), operand_strides(query.inputs[0], y), scales}));
}

template <class F>
class ScaledKernel : public Kernel {
  using In = typename F::In;
  using Out = typename F::Out;

 public:
  explicit ScaledKernel(const KernelQuery& query) : offsets_(scaled_offsets(query)) {}

  void run(const KernelArgs& args) override {
    const auto count = offsets_.elements;
    if (contiguous() && is_aligned<4 * sizeof(In)>(args.inputs[0]) &&
        is_aligned<4 * sizeof(Out)>(args.outputs[0])) {
      launch(args.stream, "scaled_contiguous", one_dimension((count + 3) / 4),
             scaled_contiguous_kernel<F>, Global(args.in<In>(0), count),
             Global(args.in<float>(1), 1), Global(args.out<Out>(0), count), count);
      return;
    }
    launch(args.stream, "scaled", one_dimension(count), scaled_kernel<F>,
           Global(args.in<In>(0), offsets_.reach(1)), Global(args.in<float>(1), offsets_.reach(2)),
           Global(args.out<Out>(0), offsets_.reach(0)), offsets_);
  }

 private:
  bool contiguous() const {
    if (offsets_.axes != 1) return offsets_.axes == 0;
    const auto& strides = offsets_.strides[0];
    return strides[0] == 1 && strides[1] == 1 && strides[2] == 0;
  }

  ElementOffsets<3> offsets_;
};

std::unique_ptr<Kernel> prepare_quantize(const KernelQuery& query, Device&) {
  return std::make_unique<ScaledKernel<Quantize>>(query);
}

std::unique_ptr<Kernel> prepare_dequantize(const KernelQuery& query, Device&) {
  if (query.inputs[0].spec.dtype == DType::I8) {
    return std::make_unique<ScaledKernel<Dequantize<std::int8_t>>>(query);
  }
  return std::make_unique<ScaledKernel<Dequantize<std::int32_t>>>(query);
}

}  // namespace

void add_quantize_kernels(KernelList& list) {
  list.push_back({QuantizeLinear::kName, "elementwise", &accepts_rank, &prepare_quantize});
  list.push_back({DequantizeLinear::kName, "elementwise", &accepts_rank, &prepare_dequantize});
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
