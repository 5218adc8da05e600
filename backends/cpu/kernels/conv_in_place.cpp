// Convolution as a product weights x patches without packed patches. The planes of x are laid out
// once (windows/window_plane.h), and a row of patches is then a run of positions in them. Few
// output channels would use packed patches only once or twice. The chains are those of the product
// in conv.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/float_conv.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/windows/window_plane.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// Output channels of a group above which packed patches pay.
constexpr std::int64_t kMostRows = 64;
// Laid-out planes of all images that the caches hold.
constexpr std::int64_t kMostFloats = 2'000'000;
// Sums of a block: they stay in the second-level cache.
constexpr std::int64_t kBlockFloats = 32768;
constexpr std::int64_t kBlocksPerThread = 4;

// Columns of outputs from which on sums are finished as they are copied. Shorter rows leave the
// last vectors of each mostly empty.
constexpr std::int64_t kLongRow = 48;

/// Copies rows of sums of one channel, finished.
void finish_rows(const FloatFinish& finish, std::int64_t channel, const float* sums,
                 const RowCopy& copy, float* y) {
  finish.with(channel, [=](const auto& finished) {
    simd([=] {
      for (std::int64_t r = 0; r < copy.rows; ++r) {
        const float* from = sums + r * copy.from_stride;
        float* to = y + r * copy.to_stride;
#pragma GCC ivdep
        for (std::int64_t c = 0; c < copy.columns; ++c) to[c] = finished(from[c]);
      }
    });
  });
}

/// Floats of a laid-out plane, which begins at a cache line.
std::int64_t plane_floats(const WindowPlane& layout) { return round_up(layout.elements(), 16); }

class ConvInPlace : public FloatConv {
 public:
  ConvInPlace(const KernelQuery& query, Device& device)
      : FloatConv(query, device),
        layout_(g_.window),
        plane_(plane_floats(layout_)),
        taps_(all_taps(g_)),
        depth_(g_.group_in() * g_.taps()),
        tiles_(g_.group_out()),
        block_rows_(rows_of_a_block()),
        weights_(
            g_.out_channels * depth_,
            [this](const float* from, float* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {
    for (const auto tap : layout_.taps()) {
      for (std::int64_t c = 0; c < g_.group_in(); ++c) offsets_.push_back(tap + c * plane_);
    }
  }

  static Verdict accepts(const KernelQuery& query) {
    if (auto verdict = accepts_image_gemm(query); !verdict.accepted) return verdict;
    if (WindowPlane::pays(geometry_of(query).window)) return Verdict::yes();
    return Verdict::no("is padded to several times its size");
  }

  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    if (g.taps() == 1) return Verdict::no("has one tap");
    if (g.group_out() > kMostRows) return Verdict::no("has many output channels");
    const WindowPlane layout(g.window);
    const auto columns = microkernels().columns;
    const auto computed = (g.window.out[0] - 1) * layout.pitch() + g.window.out[1];
    if (4 * round_up(computed, columns) > 5 * round_up(g.out_plane(), columns)) {
      return Verdict::no("has rows with much padding");
    }
    const auto floats = g.batch * g.in_channels * plane_floats(layout);
    return floats <= kMostFloats ? Verdict::yes() : Verdict::no("has too many planes");
  }

  std::size_t scratch_bytes() const override {
    const auto own = checked_mul(threads_, thread_floats());
    const auto floats = checked_add(checked_mul(planes(), plane_), own);
    return weights_.scratch_bytes() + static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* weights = weights_.ready(args.in<float>(1), args.scratch);
    auto* x = reinterpret_cast<float*>(args.scratch + weights_.scratch_bytes());
    parallel_for(planes(), grain_of(plane_), [&](std::int64_t begin, std::int64_t end) {
      for (auto p = begin; p < end; ++p) lay_out(args.in<float>(0), p, x + p * plane_);
    });
    auto* scratch = x + planes() * plane_;
    const auto blocks = block_count();
    parallel_for(g_.batch * g_.groups * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      auto* sums = scratch + thread_index() * thread_floats();
      for (auto i = begin; i < end; ++i) {
        const auto first = i % blocks * block_rows_;
        const Range rows = {first, std::min(first + block_rows_, g_.window.out[0])};
        multiply(i / blocks, rows, weights, x, sums);
        store(args, i / blocks, rows, sums);
      }
    });
  }

 private:
  std::int64_t planes() const { return g_.batch * g_.in_channels; }
  std::int64_t block_count() const { return ceil_div(g_.window.out[0], block_rows_); }
  /// Positions of so many rows of outputs, in whole panels.
  std::int64_t width(std::int64_t rows) const {
    const auto positions = (rows - 1) * layout_.pitch() + g_.window.out[1];
    return round_up(positions, microkernels().columns);
  }
  std::int64_t thread_floats() const { return checked_mul(g_.group_out(), width(block_rows_)); }

  std::int64_t rows_of_a_block() const {
    auto rows = g_.window.out[0];
    const auto blocks = [&] { return g_.batch * g_.groups * ceil_div(g_.window.out[0], rows); };
    const auto sums = [&] { return g_.group_out() * width(rows); };
    while (rows > 1 && sums() > kBlockFloats) rows = ceil_div(rows, 2);
    while (threads_ > 1 && rows > 1 && blocks() < kBlocksPerThread * threads_ &&
           sums() * depth_ > 2 * kGrainMultiplies) {
      rows = ceil_div(rows, 2);
    }
    return rows;
  }

  void pack_weights(const float* from, float* to) const {
    RowSource source = {.row_stride = w_stride_,
                        .channel_stride = g_.taps(),
                        .channels = g_.group_in(),
                        .tap_offsets = taps_};
    const auto size = g_.group_out() * depth_;
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      source.data = from + group * g_.group_out() * w_stride_;
      pack_rows(source, g_.group_out(), to + group * size, rounding_);
    }
  }

  /// Plane `index` of all images.
  void lay_out(const float* x, std::int64_t index, float* to) const {
    const auto* plane =
        x + index / g_.in_channels * x_stride_ + index % g_.in_channels * g_.in_plane();
    layout_.pad(0.0F, to);
    if (rounding_ == Rounding::None) {
      layout_.lay_out(plane, std::identity(), to);
    } else {
      layout_.lay_out(plane, round_to_bf16, to);
    }
  }

  /// The sums of some rows of outputs of a group: a row of width() for each output channel.
  void multiply(std::int64_t entry, Range rows, const float* weights, const float* x,
                float* sums) const {
    const auto& kernels = microkernels();
    const auto* a = weights + entry % g_.groups * g_.group_out() * depth_;
    const auto* b = x + entry * g_.group_in() * plane_ + rows.begin * layout_.pitch();
    const auto stride = width(rows.size());
    MicroTile now = {.c_stride = stride, .k_inner = depth_};
    for (std::int64_t column = 0; column < stride; column += kernels.columns) {
      now.b = b + column;
      Range tile_rows;
      for (std::int64_t tile = 0; tile < tiles_.count(); ++tile) {
        tile_rows = {tile_rows.end, tiles_.begin(tile + 1)};
        now.a = a + tile_rows.begin * depth_;
        now.c = sums + tile_rows.begin * stride + column;
        kernels.run_scattered[static_cast<std::size_t>(tile_rows.size())](now, offsets_.data());
      }
    }
  }

  void store(const KernelArgs& args, std::int64_t entry, Range rows, float* sums) const {
    const auto channel = entry % g_.groups * g_.group_out(), stride = width(rows.size());
    auto* y = args.out<float>(0) + entry / g_.groups * y_stride_ + channel * g_.out_plane() +
              rows.begin * g_.window.out[1];
    const RowCopy copy = {rows.size(), g_.window.out[1], layout_.pitch(), g_.window.out[1]};
    const FloatFinish finish(args, channel, relu_);
    for (std::int64_t o = 0; o < g_.group_out(); ++o, sums += stride, y += g_.out_plane()) {
      if (copy.columns >= kLongRow) {
        finish_rows(finish, o, sums, copy, y);
      } else {
        finish_sums(finish, o, sums, stride);
        copy_rows(sums, copy, y);
      }
    }
  }

  WindowPlane layout_;
  std::int64_t plane_;  ///< floats of a laid-out plane
  std::vector<std::int64_t> taps_;
  std::int64_t depth_;  ///< K
  RowTiles tiles_;      ///< of a group's output channels
  std::int64_t block_rows_;
  std::vector<std::int64_t> offsets_;  ///< of the patches' rows
  PackedOperand weights_;
};

}  // namespace

void add_conv_in_place_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvInPlace>(Conv::kName, "gemm-in-place"));
  list.back().worth = &ConvInPlace::worth;
}

}  // namespace triptych::cpu
