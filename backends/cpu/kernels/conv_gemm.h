// Convolution as a product weights x patches: [O, K] x [K, positions], K over kernel row, kernel
// column, channel. The patches are packed block by block and never stored as a whole. In float32,
// in pairs of bfloat16 or in integers, as Arithmetic says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_store.h"

namespace triptych::cpu {

template <class Op, class Arithmetic>
class ConvGemm : public Kernel {
  using Element = typename Arithmetic::Element;
  using Word = typename Arithmetic::Word;
  using Store = ChannelStore<typename Arithmetic::Finish>;

 public:
  ConvGemm(const KernelQuery& query, Device& device)
      : g_(query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape)),
        relu_(has_relu(query.as<Op>())),
        x_stride_(query.inputs[0].outer_stride),
        w_stride_(query.inputs[1].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        arithmetic_(query.contract),
        grid_(patch_grid(g_)),
        taps_(all_taps(g_)),
        skips_padding_(std::is_same_v<Arithmetic, FloatArithmetic> &&
                       query.contract == Contract::F32 && pads_rows()),
        depth_(Arithmetic::depth(g_.group_in(), g_.taps())),
        gemm_({g_.batch * g_.groups, g_.group_out(), g_.out_plane(), depth_},
              device_threads(device)),
        weights_(
            g_.out_channels * depth_,
            [this](const Element* from, Word* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {}

  std::size_t scratch_bytes() const override {
    return weights_.scratch_bytes() + gemm_.scratch_bytes();
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const Operands operands(*this, weights_.ready(args.in<Element>(1), args.scratch), args);
    gemm_.run(operands, args.scratch + weights_.scratch_bytes());
  }

 private:
  class Operands : public PatchOperands<Arithmetic> {
   public:
    Operands(const ConvGemm& kernel, const Word* weights, const KernelArgs& args)
        : PatchOperands<Arithmetic>(kernel.layout(), kernel.grid_, args.in<Element>(0), weights),
          kernel_(kernel),
          g_(kernel.g_),
          args_(args) {}

    void store(std::int64_t batch, const typename Store::Block& block) const override {
      const auto channel = batch % g_.groups * g_.group_out();
      const Store store = {.y = args_.out<typename Arithmetic::Finish::Out>(0) +
                                batch / g_.groups * kernel_.y_stride_ + channel * g_.out_plane(),
                           .plane = g_.out_plane(),
                           .finish = {args_, channel, kernel_.relu_}};
      store.store(block);
    }

   private:
    const ConvGemm& kernel_;
    const ConvGeometry& g_;
    const KernelArgs& args_;
  };

  typename PatchOperands<Arithmetic>::Layout layout() const {
    return {.groups = g_.groups,
            .group_weights = g_.group_out() * depth_,
            .image = x_stride_,
            .group_image = g_.group_in() * g_.in_plane(),
            .skips_padding = skips_padding_,
            .arithmetic = arithmetic_};
  }

  bool pads_rows() const { return g_.window.pad_begin[0] > 0 || g_.window.pad_end[0] > 0; }

  void pack_weights(const Element* from, Word* to) const {
    const auto size = g_.group_out() * depth_;
    BasicRowSource<Element> source = {.row_stride = w_stride_,
                                      .channel_stride = g_.taps(),
                                      .channels = g_.group_in(),
                                      .tap_offsets = taps_};
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      source.data = from + group * g_.group_out() * w_stride_;
      arithmetic_.pack(source, g_.group_out(), to + group * size);
    }
  }

  ConvGeometry g_;
  bool relu_;
  std::int64_t x_stride_;
  std::int64_t w_stride_;
  std::int64_t y_stride_;
  Arithmetic arithmetic_;
  PatchGrid grid_;
  std::vector<std::int64_t> taps_;
  bool skips_padding_;
  std::int64_t depth_;  ///< words of K
  PackedGemm gemm_;
  BasicPackedOperand<Element, Word> weights_;
};

}  // namespace triptych::cpu
