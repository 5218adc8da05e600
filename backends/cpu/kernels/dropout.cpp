// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/checked_math.h"
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
    // Random numbers come in fours.
    parallel_for(ceil_div(elements_, kBlock), kElementwiseGrain / 4 / kBlock,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto block = begin; block < end; ++block) {
                     drop(x, y, keep, stream, block * kBlock);
                   }
                 });
  }

 private:
  static constexpr std::int64_t kBlock = 512;

  void drop(const float* x, float* y, std::uint8_t* keep, std::uint64_t stream,
            std::int64_t first) const {
    const auto seed = static_cast<std::uint64_t>(op_.seed);
    const auto quad = static_cast<std::uint64_t>(first) / 4;
    const auto end = std::min(first + kBlock, elements_);
    const auto scale = static_cast<float>(1 / (1 - double{op_.ratio}));
    const float ratio = op_.ratio;
    std::uint32_t buffer[kBlock];
    auto* bits = buffer;
    simd([=] {
      for (std::int64_t q = 0; q < kBlock / 4; ++q) {
        const auto four = random_quad(seed, stream, quad + static_cast<std::uint64_t>(q));
        for (std::size_t k = 0; k < 4; ++k) bits[4 * q + static_cast<std::int64_t>(k)] = four[k];
      }
#pragma GCC ivdep
      for (auto i = first; i < end; ++i) {
        const bool kept = uniform_from_bits(bits[i - first]) >= ratio;
        keep[i] = static_cast<std::uint8_t>(kept);
        y[i] = exact::select(kept, x[i] * scale, 0);
      }
    });
  }

  Dropout op_;
  std::int64_t elements_;
};

}  // namespace

void add_dropout_kernels(KernelList& list) {
  list.push_back(kernel_entry<DropoutKernel>("Dropout", "elementwise"));
}

}  // namespace triptych::cpu
