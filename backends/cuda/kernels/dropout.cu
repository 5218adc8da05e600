// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Four elements per thread, as the random numbers come. kVector moves them at once.
template <bool kVector>
__global__ void dropout_kernel(Global<const float> x, Global<const std::int64_t> step,
                               Global<float> y, Global<std::uint8_t> keep, std::int64_t count,
                               DropoutFormula formula) {
  const std::int64_t number = step[0];
  for (auto i = 4 * global_thread(); i < count; i += 4 * all_threads()) {
    const RandomQuad bits = formula.aligned_bits(number, i / 4);
    if (kVector && i + 4 <= count) {
      const Vector<float, 4> in = x.template load<4>(i);
      Vector<float, 4> out;
      Vector<std::uint8_t, 4> kept;
      for (int j = 0; j < 4; ++j) {
        kept[j] = formula.keeps(bits.words[j]) ? 1 : 0;
        out[j] = formula.value(in[j], kept[j] != 0);
      }
      y.template store<4>(i, out);
      keep.template store<4>(i, kept);
      continue;
    }
    for (int j = 0; j < 4 && i + j < count; ++j) {
      const bool kept = formula.keeps(bits.words[j]);
      const float in = x[i + j];
      y[i + j] = formula.value(in, kept);
      keep[i + j] = static_cast<std::uint8_t>(kept);
    }
  }
}

/// Outside training: y = x, and keep is true everywhere. One element per thread.
__global__ void keep_all_kernel(Global<const float> x, Global<float> y, Global<std::uint8_t> keep,
                                std::int64_t count) {
  for (auto i = global_thread(); i < count; i += all_threads()) {
    const float value = x[i];
    y[i] = value;
    keep[i] = std::uint8_t{1};
  }
}

class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const KernelQuery& query, Device&)
      : training_(query.as<Dropout>().training_mode),
        formula_(query.as<Dropout>()),
        count_(query.inputs[0].spec.shape.elements()) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

  void run(const KernelArgs& args) override {
    const Global x(args.in<float>(0), count_);
    const Global y(args.out<float>(0), count_);
    const Global keep(args.out<std::uint8_t>(1), count_);
    if (!training_) {
      launch(args.stream, "keep_all", one_dimension(count_), keep_all_kernel, x, y, keep, count_);
      return;
    }
    const bool vector =
        is_aligned<16>(args.inputs[0], args.outputs[0]) && is_aligned<4>(args.outputs[1]);
    launch(args.stream, "dropout", one_dimension((count_ + 3) / 4),
           vector ? &dropout_kernel<true> : &dropout_kernel<false>, x,
           Global(args.in<std::int64_t>(1), 1), y, keep, count_, formula_);
  }

 private:
  bool training_;
  DropoutFormula formula_;
  std::int64_t count_;
};

}  // namespace

void add_dropout_kernels(KernelList& list) {
  list.push_back(kernel_entry<DropoutKernel>(Dropout::kName, "elementwise"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
