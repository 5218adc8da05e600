// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const KernelQuery& query, Device&)
      : training_(query.as<Dropout>().training_mode),
        formula_(query.as<Dropout>()),
        elements_(query.inputs[0].spec.shape.elements()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

  void run(const KernelArgs& args) override {
    const auto* x = args.in<float>(0);
    auto* y = args.out<float>(0);
    auto* keep = args.out<std::uint8_t>(1);
    if (!training_) {
      parallel_for(elements_, kGrainElements, [=](std::int64_t begin, std::int64_t end) {
        std::copy(x + begin, x + end, y + begin);
        std::fill(keep + begin, keep + end, std::uint8_t{1});
      });
      return;
    }
    const auto step = *args.in<std::int64_t>(1);
    // Random numbers come in fours.
    parallel_for(ceil_div(elements_, kBlock), grain_of(kSlowOperation * kBlock),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto block = begin; block < end; ++block) {
                     drop(x, y, keep, step, block * kBlock);
                   }
                 });
  }

 private:
  static constexpr std::int64_t kBlock = 512;

  void drop(const float* x, float* y, std::uint8_t* keep, std::int64_t step,
            std::int64_t first) const {
    const auto end = std::min(first + kBlock, elements_);
    const auto formula = formula_;
    std::uint32_t buffer[kBlock + 4];
    auto* bits = buffer;
    const auto skipped = static_cast<std::int64_t>(formula.skipped());
    simd([=] {
      for (std::int64_t q = 0; q < kBlock / 4 + (skipped > 0 ? 1 : 0); ++q) {
        const auto four = formula.bits(step, first / 4 + q);
        for (std::size_t k = 0; k < 4; ++k) bits[4 * q + static_cast<std::int64_t>(k)] = four[k];
      }
#pragma GCC ivdep
      for (auto i = first; i < end; ++i) {
        const bool kept = formula.keeps(bits[i - first + skipped]);
        keep[i] = static_cast<std::uint8_t>(kept);
        y[i] = formula.value(x[i], kept);
      }
    });
  }

  bool training_;
  DropoutFormula formula_;
  std::int64_t elements_;
};

}  // namespace

void add_dropout_kernels(KernelList& list) {
  list.push_back(kernel_entry<DropoutKernel>("Dropout", "elementwise"));
}

}  // namespace triptych::cpu
