// Convolutions with one input channel per group: a chain over the taps for each output, with planes
// of x laid out so that all outputs of a plane are one loop. The chains are those of the product in
// conv.cpp for such a group, where a matrix kernel could fill only one row.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/float_conv.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/windows/window_plane.h"

namespace triptych::cpu {
namespace {

class ConvDepthwise : public FloatConv {
 public:
  ConvDepthwise(const KernelQuery& query, Device& device)
      : FloatConv(query, device),
        scratch_(g_.window, device_threads(device)),
        weights_(
            g_.out_channels * g_.taps(),
            [this](const float* from, float* to) { round_weights(from, to); },
            constant_input(query, 1), device) {}

  static Verdict accepts(const KernelQuery& query) {
    if (auto verdict = accepts_image_gemm(query); !verdict.accepted) return verdict;
    const auto g = geometry_of(query);
    if (g.groups == 1 || g.group_in() != 1) return Verdict::no("has no groups of one channel");
    if (!WindowPlane::pays(g.window)) return Verdict::no("is padded to several times its size");
    return Verdict::yes();
  }

  std::size_t scratch_bytes() const override { return weights_.scratch_bytes() + scratch_.bytes(); }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* weights = weights_.ready(args.in<float>(1), args.scratch);
    auto* const scratch = args.scratch + weights_.scratch_bytes();
    const auto grain = grain_of(kSlowOperation * g_.out_plane() * g_.taps(), kGrainMultiplies);
    parallel_for(g_.batch * g_.groups, grain, [&](std::int64_t begin, std::int64_t end) {
      scratch_.layout().pad(0.0F, scratch_.plane(scratch));
      for (auto i = begin; i < end; ++i) {
        run_group(args, i / g_.groups, i % g_.groups, weights, scratch);
      }
    });
  }

 private:
  void round_weights(const float* from, float* to) const {
    for (std::int64_t o = 0; o < g_.out_channels; ++o, from += w_stride_, to += g_.taps()) {
      if (rounding_ == Rounding::None) {
        std::copy_n(from, g_.taps(), to);
      } else {
        std::transform(from, from + g_.taps(), to, round_to_bf16);
      }
    }
  }

  /// The outputs of one channel of one image.
  void run_group(const KernelArgs& args, std::int64_t image, std::int64_t group,
                 const float* weights, std::byte* scratch) const {
    const auto& layout = scratch_.layout();
    auto *plane = scratch_.plane(scratch), *sums = scratch_.outputs(scratch);
    const auto* x = args.in<float>(0) + image * x_stride_ + group * g_.in_plane();
    if (rounding_ == Rounding::None) {
      layout.lay_out(x, std::identity(), plane);
    } else {
      layout.lay_out(x, round_to_bf16, plane);
    }
    const FloatFinish finish(args, 0, relu_);
    for (auto o = group * g_.group_out(); o < (group + 1) * g_.group_out(); ++o) {
      auto* y = args.out<float>(0) + image * y_stride_ + o * g_.out_plane();
      if (const auto rows = layout.row_window()) {
        multiply_rows(plane, *rows, weights + o * g_.taps(), y);
        finish_sums(finish, o, y, g_.out_plane());
      } else {
        multiply_taps(plane, layout.taps(), weights + o * g_.taps(), layout.outputs(), sums);
        finish_sums(finish, o, sums, layout.outputs());  // with the values between the rows
        layout.copy_outputs(sums, y);
      }
    }
  }

  PlaneScratch<float> scratch_;
  PackedOperand weights_;
};

}  // namespace

void add_conv_depthwise_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvDepthwise>(Conv::kName, "depthwise"));
}

}  // namespace triptych::cpu
