// Convolution as a product weights x patches: [O, K] x [K, positions], K over kernel row, kernel
// column, channel. The patches are packed block by block and never stored as a whole.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include <numeric>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {
namespace {

PatchGrid patch_grid(const ConvGeometry& g) {
  const auto& w = g.window;
  PatchGrid grid = {.channels = g.group_in(),
                    .in = {w.in[0], w.in[1]},
                    .out = {w.out[0], w.out[1]},
                    .stride = {w.stride[0], w.stride[1]}};
  for (std::int64_t y = 0; y < w.kernel[0]; ++y) {
    for (std::int64_t x = 0; x < w.kernel[1]; ++x) {
      grid.taps.push_back({y * w.dilation[0] - w.pad_begin[0], x * w.dilation[1] - w.pad_begin[1]});
    }
  }
  grid.flatten_pointwise();
  return grid;
}

std::vector<std::int64_t> all_taps(const ConvGeometry& g) {
  std::vector<std::int64_t> taps(static_cast<std::size_t>(g.taps()));
  std::iota(taps.begin(), taps.end(), 0);
  return taps;
}

class ConvGemm : public Kernel {
 public:
  ConvGemm(const KernelQuery& query, Device& device)
      : g_(query.as<Conv>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape)),
        relu_(query.as<Conv>().activation == "relu"),
        x_stride_(query.inputs[0].outer_stride),
        w_stride_(query.inputs[1].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        rounding_(rounding_of(query.contract)),
        grid_(patch_grid(g_)),
        taps_(all_taps(g_)),
        gemm_({g_.batch * g_.groups, g_.group_out(), g_.out_plane(), grid_.k()},
              device_threads(device)),
        weights_(
            g_.out_channels * grid_.k(),
            [this](const float* from, float* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_image_gemm(query); }

  std::size_t scratch_bytes() const override {
    return weights_.scratch_bytes() + gemm_.scratch_bytes();
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const float* bias = args.inputs.size() > 2 ? args.in<float>(2) : nullptr;
    const Operands operands(*this, args.in<float>(0),
                            weights_.ready(args.in<float>(1), args.scratch), bias,
                            args.out<float>(0));
    gemm_.run(operands, args.scratch + weights_.scratch_bytes());
  }

 private:
  class Operands : public PatchOperands {
   public:
    Operands(const ConvGemm& kernel, const float* x, const float* weights, const float* bias,
             float* y)
        : PatchOperands(kernel.layout(), kernel.grid_, x, weights),
          kernel_(kernel),
          g_(kernel.g_),
          bias_(bias),
          y_(y) {}

    void store(std::int64_t batch, const GemmBlock& block) const override {
      const auto channel = batch % g_.groups * g_.group_out();
      const ChannelStore store = {
          .y = y_ + batch / g_.groups * kernel_.y_stride_ + channel * g_.out_plane(),
          .plane = g_.out_plane(),
          .bias = bias_ == nullptr ? nullptr : bias_ + channel,
          .relu = kernel_.relu_};
      store.store(block);
    }

   private:
    const ConvGemm& kernel_;
    const ConvGeometry& g_;
    const float* bias_;
    float* y_;
  };

  PatchOperands::Layout layout() const {
    return {.groups = g_.groups,
            .group_weights = g_.group_out() * grid_.k(),
            .image = x_stride_,
            .group_image = g_.group_in() * g_.in_plane(),
            .rounding = rounding_};
  }

  void pack_weights(const float* from, float* to) const {
    const auto size = g_.group_out() * grid_.k();
    RowSource source = {.row_stride = w_stride_,
                        .channel_stride = g_.taps(),
                        .channels = g_.group_in(),
                        .tap_offsets = taps_};
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      source.data = from + group * g_.group_out() * w_stride_;
      pack_rows(source, g_.group_out(), to + group * size, rounding_);
    }
  }

  ConvGeometry g_;
  bool relu_;
  std::int64_t x_stride_;
  std::int64_t w_stride_;
  std::int64_t y_stride_;
  Rounding rounding_;
  PatchGrid grid_;
  std::vector<std::int64_t> taps_;
  BlockedGemm gemm_;
  PackedOperand weights_;
};

}  // namespace

void add_conv_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvGemm>(Conv::kName, "gemm"));
}

}  // namespace triptych::cpu
