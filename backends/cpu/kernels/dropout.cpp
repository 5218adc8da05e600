// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/exact_math.h"
#include "core/base/random.h"

namespace triptych::cpu {
namespace {

class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const KernelQuery& query, Device&)
      : op_(query.as<Dropout>()), elements_(query.inputs[0].spec.shape.elements()) {}
  static Verdict accepts(const KernelQuery& query) {
    return query.dense() ? Verdict::yes() : Verdict::no("needs dense operands");
  }

  void run(const KernelArgs& args) override {
    const auto* x = args.in<float>(0);
    auto* y = args.out<float>(0);
    auto* keep = args.out<std::uint8_t>(1);
    if (!op_.training_mode) {
      parallel_for(elements_, kElementwiseGrain, [=](std::int64_t begin, std::int64_t end) {
        std::copy(x + begin, x + end, y + begin);
        std::fill(keep + begin, keep + end, std::uint8_t{1});
      });
      return;
    }
    const auto step = static_cast<std::uint64_t>(*args.in<std::int64_t>(1));
    const auto stream = static_cast<std::uint64_t>(op_.stream) + (step << 32);
    const auto seed = static_cast<std::uint64_t>(op_.seed);
    const auto scale = static_cast<float>(1 / (1 - double{op_.ratio}));
    const float ratio = op_.ratio;
    parallel_for(elements_, kElementwiseGrain / 4, [=](std::int64_t begin, std::int64_t end) {
      simd([=] {
#pragma GCC ivdep
        for (auto i = begin; i < end; ++i) {
          const bool kept = random_uniform(seed, stream, static_cast<std::uint64_t>(i)) >= ratio;
          keep[i] = static_cast<std::uint8_t>(kept);
          y[i] = exact::select(kept, x[i] * scale, 0);
        }
      });
    });
  }

 private:
  Dropout op_;
  std::int64_t elements_;
};

}  // namespace

void add_dropout_kernels(KernelList& list) {
  list.push_back(kernel_entry<DropoutKernel>("Dropout", "elementwise"));
}

}  // namespace triptych::cpu
