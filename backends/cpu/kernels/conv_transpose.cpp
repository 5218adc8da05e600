// Transposed convolution without a scatter: the outputs at positions with the same remainder modulo
// the stride (a phase) are a convolution of stride 1 over x with the taps that can meet them. Where
// kernel and stride agree, each tap is a phase of its own, all meet the same x, and one product
// computes them together.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_transpose.h"

#include <algorithm>

#include "backends/cpu/gemm/dot_unit.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_traffic.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/checked_math.h"
#include "core/ops/quantized_conv.h"

namespace triptych::cpu {
namespace {

/// Taps of one axis that meet outputs q = remainder + stride * j, as (tap, x position minus j).
std::vector<std::array<std::int64_t, 2>> phase_taps(const Window& w, int axis,
                                                    std::int64_t remainder) {
  std::vector<std::array<std::int64_t, 2>> taps;
  for (std::int64_t tap = 0; tap < w.kernel[axis]; ++tap) {
    const auto distance = remainder + w.pad_begin[axis] - tap * w.dilation[axis];
    if (distance % w.stride[axis] == 0) taps.push_back({tap, distance / w.stride[axis]});
  }
  return taps;
}

/// One product: for each image and group [rows, K] x [K, positions].
struct Phase {
  PatchGrid grid;
  PositionGrid positions;
  std::vector<std::int64_t> taps;  ///< flat indices into the kernel
  std::int64_t rows = 0;
  std::int64_t weights = 0;  ///< where its packed weights start
};

template <class Op, class Arithmetic>
class ConvTransposeGemm : public Kernel {
  using Element = typename Arithmetic::Element;
  using Word = typename Arithmetic::Word;
  using Store = ChannelStore<typename Arithmetic::Finish>;

 public:
  ConvTransposeGemm(const KernelQuery& query, Device& device)
      : g_(query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape)),
        relu_(has_relu(query.as<Op>())),
        tiles_(g_.window.makes_tiles()),
        x_stride_(query.inputs[0].outer_stride),
        w_stride_(query.inputs[1].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        arithmetic_(query.contract),
        phases_(make_phases()),
        weights_(
            packed_words(), [this](const Element* from, Word* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {
    for (const auto& phase : phases_) {
      gemms_.emplace_back(
          GemmShape{g_.batch * g_.groups, phase.rows, phase.grid.positions(), depth(phase)},
          device_threads(device));
    }
  }

  std::size_t scratch_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& gemm : gemms_) bytes = std::max(bytes, gemm.scratch_bytes());
    return weights_.scratch_bytes() + bytes;
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const Word* weights = weights_.ready(args.in<Element>(1), args.scratch);
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const Operands operands(*this, phases_[i], weights, args);
      gemms_[i].run(operands, args.scratch + weights_.scratch_bytes());
    }
  }

 private:
  // The geometry is that of the convolution with this operator as input gradient: its y is our x.
  class Operands : public PatchOperands<Arithmetic> {
   public:
    Operands(const ConvTransposeGemm& kernel, const Phase& phase, const Word* weights,
             const KernelArgs& args)
        : PatchOperands<Arithmetic>(kernel.layout(phase), phase.grid, args.in<Element>(0),
                                    weights + phase.weights),
          kernel_(kernel),
          g_(kernel.g_),
          phase_(phase),
          args_(args) {}

    void store(std::int64_t batch, const typename Store::Block& block) const override {
      const auto channel = batch % g_.groups * g_.group_in();
      const Store store = {.y = args_.out<typename Arithmetic::Finish::Out>(0) +
                                batch / g_.groups * kernel_.y_stride_ + channel * g_.in_plane(),
                           .plane = g_.in_plane(),
                           .finish = {args_, channel, kernel_.relu_}};
      if (kernel_.tiles_) {
        store.store_tiles(g_.window.kernel, g_.window.out[1], block);
      } else if (kernel_.phases_.size() == 1) {
        store.store(block);
      } else {
        store.store_on_grid(phase_.positions, block);
      }
    }

   private:
    const ConvTransposeGemm& kernel_;
    const ConvGeometry& g_;
    const Phase& phase_;
    const KernelArgs& args_;
  };

  /// Words of K.
  static std::int64_t depth(const Phase& phase) {
    return Arithmetic::depth(phase.grid.channels, std::ssize(phase.taps));
  }

  std::int64_t packed_words() const {
    const auto& last = phases_.back();
    return last.weights + g_.groups * last.rows * depth(last);
  }

  typename PatchOperands<Arithmetic>::Layout layout(const Phase& phase) const {
    return {.groups = g_.groups,
            .group_weights = phase.rows * depth(phase),
            .image = x_stride_,
            .group_image = g_.group_out() * g_.out_plane(),
            .arithmetic = arithmetic_};
  }

  Phase tile_phase() const {
    Phase phase;
    phase.grid.channels = g_.group_out();
    phase.grid.in[1] = phase.grid.out[1] = g_.out_plane();
    phase.grid.taps.push_back({0, 0});
    phase.taps.push_back(0);
    phase.rows = g_.group_in() * g_.taps();
    return phase;
  }

  std::vector<Phase> make_phases() const {
    const auto& w = g_.window;
    std::vector<Phase> phases;
    if (tiles_) {
      phases.push_back(tile_phase());
      return phases;
    }
    std::int64_t weights = 0;
    for (std::int64_t row = 0; row < std::min(w.stride[0], w.in[0]); ++row) {
      for (std::int64_t column = 0; column < std::min(w.stride[1], w.in[1]); ++column) {
        phases.push_back(make_phase(row, column));
        phases.back().weights = weights;
        weights += g_.groups * phases.back().rows * depth(phases.back());
      }
    }
    return phases;
  }

  Phase make_phase(std::int64_t row, std::int64_t column) const {
    const auto& w = g_.window;
    Phase phase = {.grid = {.channels = g_.group_out(),
                            .in = {w.out[0], w.out[1]},
                            .out = {ceil_div(w.in[0] - row, w.stride[0]),
                                    ceil_div(w.in[1] - column, w.stride[1])}},
                   .rows = g_.group_in()};
    for (const auto& [ky, y] : phase_taps(w, 0, row)) {
      for (const auto& [kx, x] : phase_taps(w, 1, column)) {
        phase.grid.taps.push_back({y, x});
        phase.taps.push_back(ky * w.kernel[1] + kx);
      }
    }
    phase.positions = {.columns = phase.grid.out[1],
                       .first = row * w.in[1] + column,
                       .row_step = w.stride[0] * w.in[1],
                       .column_step = w.stride[1]};
    phase.grid.flatten_pointwise();
    return phase;
  }

  void pack_weights(const Element* from, Word* to) const {
    for (const auto& phase : phases_) {
      const auto size = phase.rows * depth(phase);
      BasicRowSource<Element> source = {.row_stride = tiles_ ? 1 : g_.taps(),
                                        .channel_stride = w_stride_,
                                        .channels = g_.group_out(),
                                        .tap_offsets = phase.taps};
      for (std::int64_t group = 0; group < g_.groups; ++group) {
        source.data = from + group * g_.group_out() * w_stride_;
        arithmetic_.pack(source, phase.rows, to + phase.weights + group * size);
      }
    }
  }

  ConvGeometry g_;
  bool relu_;
  bool tiles_;
  std::int64_t x_stride_;
  std::int64_t w_stride_;
  std::int64_t y_stride_;
  Arithmetic arithmetic_;
  std::vector<Phase> phases_;
  std::vector<PackedGemm> gemms_;
  BasicPackedOperand<Element, Word> weights_;
};

/// Traffic of ConvTransposeGemm in float32. Phases count as equal where they are not quite.
std::vector<LevelTraffic> conv_transpose_traffic(const KernelQuery& query, const Device& device) {
  const auto g =
      query.as<ConvTranspose>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
  const auto& w = g.window;
  const bool tiles = w.makes_tiles();
  const auto phases = tiles ? 1 : std::min(w.stride[0], w.in[0]) * std::min(w.stride[1], w.in[1]);
  const GemmShape shape = {g.batch * g.groups, g.group_in() * (tiles ? g.taps() : 1),
                           tiles ? g.out_plane() : ceil_div(g.in_plane(), phases),
                           g.group_out() * (tiles ? 1 : ceil_div(g.taps(), phases))};
  auto levels = packed_traffic(packed_product(shape, device_threads(device),
                                              {.source = g.group_out() * g.out_plane(),
                                               .distinct_a = g.groups,
                                               .packs_a = constant_input(query, 1) == nullptr}),
                               Caches::of(device));
  for (auto& level : levels) {
    level.bytes *= static_cast<double>(phases);
    level.read_bytes *= static_cast<double>(phases);
  }
  return levels;
}

Verdict worth_dots(const KernelQuery& query) {
  const auto g =
      query.as<ConvTranspose>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
  return worth_on_dots(g.group_in(), g.group_out());
}

}  // namespace

void add_conv_transpose_kernels(KernelList& list) {
  list.push_back({ConvTranspose::kName, "dots", &accepts_image_dots,
                  &prepare_conv<ConvTransposeGemm<ConvTranspose, DotArithmetic>>});
  list.back().worth = &worth_dots;
  list.push_back({ConvTranspose::kName, "gemm", &accepts_image_gemm,
                  &prepare_conv<ConvTransposeGemm<ConvTranspose, FloatArithmetic>>});
  list.back().traffic = &conv_transpose_traffic;
  list.push_back({QuantizedConvTranspose::kName, "gemm", &accepts_any,
                  &prepare_integer<ConvTransposeGemm, QuantizedConvTranspose>});
}

}  // namespace triptych::cpu
