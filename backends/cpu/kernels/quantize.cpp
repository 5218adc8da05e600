// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/node_rows.h"
#include "core/base/quantized_math.h"

namespace triptych::cpu {
namespace {

class QuantizeLinearKernel : public Kernel {
 public:
  QuantizeLinearKernel(const KernelQuery& query, Device&) : rows_(query) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    const float scale = *args.in<float>(1);
    rows_.run(args, [&](const auto& inputs, std::byte* to, std::int64_t count) {
      const auto* x = reinterpret_cast<const float*>(inputs[0].x);
      auto* y = reinterpret_cast<std::int8_t*>(to);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) y[i] = quantize_to_i8(x[i], scale);
      });
    });
  }

 private:
  NodeRows<1> rows_;  // one scale for all
};

template <class T>
class DequantizeLinearKernel : public Kernel {
 public:
  explicit DequantizeLinearKernel(const KernelQuery& query)
      : loop_(query.outputs[0].spec.shape,
              {operand_strides(query.outputs[0], query.outputs[0].spec.shape),
               operand_strides(query.inputs[0], query.outputs[0].spec.shape),
               query.as<DequantizeLinear>().scale_strides(query.inputs[0].spec.shape,
                                                          operand_view(query.inputs[1]))}) {}

  void run(const KernelArgs& args) override {
    const auto scale_stride = loop_.row_stride(2);
    loop_.run([&](const auto& at, std::int64_t count) {
      const auto* x = args.in<T>(0) + at[1];
      const auto* scale = args.in<float>(1) + at[2];
      auto* y = args.out<float>(0) + at[0];
      simd([=] {
        for (std::int64_t i = 0; i < count; ++i) {
          y[i] = exact::canonical(static_cast<float>(x[i]) * scale[i * scale_stride]);
        }
      });
    });
  }

 private:
  ElementwiseLoop<3> loop_;
};

std::unique_ptr<Kernel> prepare_dequantize(const KernelQuery& query, Device&) {
  if (query.inputs[0].spec.dtype == DType::I8) {
    return std::make_unique<DequantizeLinearKernel<std::int8_t>>(query);
  }
  return std::make_unique<DequantizeLinearKernel<std::int32_t>>(query);
}

}  // namespace

void add_quantize_kernels(KernelList& list) {
  list.push_back(kernel_entry<QuantizeLinearKernel>(QuantizeLinear::kName, "elementwise"));
  list.push_back({DequantizeLinear::kName, "elementwise", &accepts_any, &prepare_dequantize});
}

}  // namespace triptych::cpu
