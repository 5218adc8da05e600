// Products of int8 matrices on the tile unit (backends/cpu/tiles): convolutions of 1 x 1, which is
// how the int8 contract writes a product. Weights [O, C] times an image [C, positions], a product
// for each image and group.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/tiles/tile_gemm.h"
#include "core/base/checked_math.h"
#include "core/ops/quantized_conv.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kFewest = 8;

ConvGeometry geometry_of(const KernelQuery& query) {
  return query.as<QuantizedConv>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
}

template <class Op, class Arithmetic>
class ProductTiles : public Kernel {
  using Gemm = TileGemm<std::int8_t>;
  using Store = ChannelStore<typename Arithmetic::Finish>;

 public:
  ProductTiles(const KernelQuery& query, Device& device)
      : g_(geometry_of(query)),
        relu_(has_relu(query.as<Op>())),
        x_stride_(query.inputs[0].outer_stride),
        w_stride_(query.inputs[1].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        a_{g_.group_out(), g_.group_in(), w_stride_, 1},
        b_{g_.out_plane(), g_.group_in(), 1, g_.out_plane(), true},
        group_(entries_together(b_.words(), g_.batch * g_.groups)),
        gemm_(a_, b_, group_, device_threads(device)),
        weights_(
            g_.groups * a_.words(),
            [this](const std::int8_t* from, TileWord* to) {
              a_.pack_all(
                  g_.groups, [&](std::int64_t i) { return from + i * g_.group_out() * w_stride_; },
                  to);
            },
            constant_input(query, 1), device) {}

  std::size_t scratch_bytes() const override {
    return gemm_.scratch_bytes() + weights_.scratch_bytes() +
           static_cast<std::size_t>(checked_mul(checked_mul(group_, b_.words()), kTileWordBytes));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    auto* packed_w = args.scratch + gemm_.scratch_bytes();
    const auto* w = weights_.ready(args.in<std::int8_t>(1), packed_w);
    auto* b = reinterpret_cast<TileWord*>(packed_w + weights_.scratch_bytes());
    const auto entries = g_.batch * g_.groups;
    for (std::int64_t first = 0; first < entries; first += group_) {
      const auto count = std::min(group_, entries - first);
      b_.pack_all(
          count,
          [&](std::int64_t i) {
            const auto image = (first + i) / g_.groups, group = (first + i) % g_.groups;
            return args.in<std::int8_t>(0) + image * x_stride_ +
                   group * g_.group_in() * g_.in_plane();
          },
          b);
      gemm_.run(
          count,
          [&](std::int64_t i) -> Gemm::Product {
            return {w + (first + i) % g_.groups * a_.words(), b + i * b_.words()};
          },
          [&](std::int64_t i, const Gemm::Block& block) { store(args, first + i, block); },
          args.scratch);
    }
  }

 private:
  void store(const KernelArgs& args, std::int64_t entry, const Gemm::Block& block) const {
    const auto channel = entry % g_.groups * g_.group_out();
    const Store store = {.y = args.out<typename Arithmetic::Finish::Out>(0) +
                              entry / g_.groups * y_stride_ + channel * g_.out_plane(),
                         .plane = g_.out_plane(),
                         .finish = {args, channel, relu_}};
    store.store(block);
  }

  ConvGeometry g_;
  bool relu_;
  std::int64_t x_stride_, w_stride_, y_stride_;
  TileFactor<std::int8_t> a_, b_;
  std::int64_t group_;  ///< entries that are packed together
  Gemm gemm_;
  BasicPackedOperand<std::int8_t, TileWord> weights_;
};

Verdict accepts(const KernelQuery& query) {
  return geometry_of(query).window.is_pointwise() ? Verdict::yes()
                                                  : Verdict::no("is no convolution of 1 x 1");
}

Verdict worth(const KernelQuery& query) {
  if (!tile_unit_missing().empty()) return Verdict::no(tile_unit_missing());
  const auto g = geometry_of(query);
  if (g.groups == 1 && g.window.out[1] > 1)
    return Verdict::no("is an image, not a matrix of one position a row");
  return std::min(g.out_plane(), g.group_in()) >= kFewest
             ? Verdict{true, kOnTileUnit}
             : Verdict::no("fills tiles badly with so few positions or channels");
}

}  // namespace

void add_quantized_product_tiles_kernels(KernelList& list) {
  list.push_back({QuantizedConv::kName, "product-tiles", &accepts,
                  &prepare_integer<ProductTiles, QuantizedConv>});
  list.back().worth = &worth;
}

}  // namespace triptych::cpu
