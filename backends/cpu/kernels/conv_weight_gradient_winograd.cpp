// The gradient of the weights of a 3x3 convolution of stride 1 by Winograd's transforms
// (backends/cpu/winograd): for each point, gradients [O, tiles] x patches [tiles, C]. Tiles are
// processed in chunks with transforms that fit into the caches. The sums keep their partial values
// between chunks. Chains are short, for in the transformed domain long ones err too much.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/winograd_rules.h"
#include "backends/cpu/winograd/winograd.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"

namespace triptych::cpu {
namespace {

// Transformed values of one chunk, or as many as there are sums if those are more.
constexpr std::int64_t kChunkFloats = 600'000;
// Products of channel numbers up to which images below 16 and below 32 pixels are worth the larger
// tiles.
constexpr std::int64_t kFewSums = 128 * 128, kManySums = 512 * 512;
// Tiles that pass through the microkernel in one go.
constexpr std::int64_t kDepth = 128;
// Channels of dy that one task multiplies.
constexpr std::int64_t kTaskChannels = 128;

template <int kTile>
class ConvWeightGradientWinograd : public Kernel {
 public:
  ConvWeightGradientWinograd(const KernelQuery& query, Device& device)
      : g_(geometry_of(query)),
        x_stride_(query.inputs[0].outer_stride),
        dy_stride_(query.inputs[1].outer_stride),
        dw_stride_(query.outputs[0].outer_stride),
        threads_(device_threads(device)),
        lanes_(winograd_lanes()),
        row_tiles_(ceil_div(g_.window.out[1], std::int64_t{kTile})),
        image_rows_(ceil_div(g_.window.out[0], std::int64_t{kTile})),
        x_channels_(round_up(g_.in_channels, microkernels().columns)),
        dy_channels_(round_up(g_.out_channels, lanes_)) {
    const auto rows = g_.batch * image_rows_;
    const auto floats = std::max(kChunkFloats, sum_floats());
    const auto most = floats / (kPoints * (x_channels_ + dy_channels_)) / row_tiles_;
    chunk_rows_ = ceil_div(rows, ceil_div(rows, std::max<std::int64_t>(1, most)));
  }

  static Verdict accepts(const KernelQuery& query) {
    return accepts_winograd(query.contract, geometry_of(query));
  }

  /// From measurements (docs/results/cpu.md).
  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    const auto side = std::min(g.window.out[0], g.window.out[1]);
    const auto fewest = std::min(g.in_channels, g.out_channels);
    const auto sums = g.in_channels * g.out_channels;
    if (kTile == 2) {
      return side >= 8 && fewest >= 128
                 ? Verdict::yes()
                 : Verdict::no("saves too little for so few channels or tiles");
    }
    if (side < 8) return Verdict::no("has too few tiles to sum over");
    if (sums > (side < 16 ? kFewSums : kManySums) && side < 32)
      return Verdict::no("has more sums than so few tiles pay for");
    return fewest >= 16 ? Verdict::yes() : Verdict::no("has too few channels");
  }

  std::size_t scratch_bytes() const override {
    const auto floats = checked_add(checked_add(sum_floats(), chunk_floats()),
                                    checked_mul(threads_, line_floats()));
    return static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    auto* sums = reinterpret_cast<float*>(args.scratch);
    const Chunk memory = {.x = sums + sum_floats(),
                          .dy = sums + sum_floats() + kPoints * point_stride(x_channels_),
                          .lines = sums + sum_floats() + chunk_floats()};
    const auto rows = g_.batch * image_rows_;
    for (std::int64_t row = 0; row < rows; row += chunk_rows_) {
      auto chunk = memory;
      chunk.rows = {row, std::min(rows, row + chunk_rows_)};
      transform(args, chunk);
      multiply(chunk, sums);
    }
    store(sums, args.out<float>(0));
  }

 private:
  static constexpr int kPatch = kTile + 2;
  static constexpr std::int64_t kPoints = kPatch * kPatch;

  /// Some rows of tiles. Transformed, x stands as [point][panel][tile][column of the microkernel],
  /// dy as [point][block][tile][lane].
  struct Chunk {
    Range rows;
    float* x = nullptr;
    float* dy = nullptr;
    float* lines = nullptr;  ///< of each thread
  };

  static ConvGeometry geometry_of(const KernelQuery& query) {
    return query.as<ConvWeightGradient>().geometry(query.inputs[0].spec.shape,
                                                   query.inputs[1].spec.shape);
  }

  /// Sums: [point][channel of dy][channel of x].
  std::int64_t sum_stride() const {
    return winograd_point_stride(checked_mul(x_channels_, dy_channels_));
  }
  std::int64_t sum_floats() const { return checked_mul(kPoints, sum_stride()); }
  std::int64_t chunk_tiles() const { return chunk_rows_ * row_tiles_; }
  std::int64_t point_stride(std::int64_t channels) const {
    return winograd_point_stride(checked_mul(chunk_tiles(), channels));
  }
  std::int64_t chunk_floats() const {
    return checked_mul(kPoints, checked_add(point_stride(x_channels_), point_stride(dy_channels_)));
  }
  /// Pixels of a row of patches.
  std::int64_t pitch() const { return row_tiles_ * kTile + 2; }
  std::int64_t line_floats() const { return checked_mul(pitch(), kPatch * lanes_); }

  void transform(const KernelArgs& args, const Chunk& chunk) const {
    const auto x_blocks = x_channels_ / lanes_, blocks = x_blocks + dy_channels_ / lanes_;
    parallel_for(chunk.rows.size() * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      const auto thread = thread_index();
      float* lines = chunk.lines + thread * line_floats();
      for (auto i = begin; i < end; ++i) {
        const auto row = chunk.rows.begin + i / blocks, block = i % blocks;
        if (block < x_blocks) {
          transform_x(args.in<float>(0), chunk, row, block, lines);
        } else {
          transform_dy(args.in<float>(1), chunk, row, block - x_blocks, lines);
        }
      }
    });
  }

  void transform_x(const float* x, const Chunk& chunk, std::int64_t row, std::int64_t block,
                   float* lines) const {
    const auto& w = g_.window;
    const auto panel_blocks = microkernels().columns / lanes_;
    const float* planes =
        x + row / image_rows_ * x_stride_ + block * lanes_ * g_.window.in[0] * w.in[1];
    fill_lines({.planes = planes,
                .channels = g_.in_channels - block * lanes_,
                .size = {w.in[0], w.in[1]},
                .first = {row % image_rows_ * kTile - w.pad_begin[0], -w.pad_begin[1]},
                .rows = kPatch},
               lines);
    const auto tile = (row - chunk.rows.begin) * row_tiles_;
    const auto columns = std::int64_t{microkernels().columns};
    transform_patch_channels(
        kTile, {.lines = lines,
                .pitch = pitch(),
                .tiles = row_tiles_,
                .to = chunk.x + (block / panel_blocks * chunk_tiles() + tile) * columns +
                      block % panel_blocks * lanes_,
                .point_stride = point_stride(x_channels_),
                .tile_stride = columns});
  }

  void transform_dy(const float* dy, const Chunk& chunk, std::int64_t row, std::int64_t block,
                    float* lines) const {
    const auto& w = g_.window;
    const float* planes =
        dy + row / image_rows_ * dy_stride_ + block * lanes_ * w.out[0] * w.out[1];
    fill_lines({.planes = planes,
                .channels = g_.out_channels - block * lanes_,
                .size = {w.out[0], w.out[1]},
                .first = {row % image_rows_ * kTile, 0},
                .rows = kTile},
               lines);
    const auto tile = (row - chunk.rows.begin) * row_tiles_;
    transform_gradient_channels(kTile, {.lines = lines,
                                        .pitch = pitch(),
                                        .tiles = row_tiles_,
                                        .to = chunk.dy + (block * chunk_tiles() + tile) * lanes_,
                                        .point_stride = point_stride(dy_channels_),
                                        .tile_stride = lanes_});
  }

  /// Some rows of some planes.
  struct Lines {
    const float* planes = nullptr;
    std::int64_t channels = 0;  ///< that are left. Those beyond become 0
    std::int64_t size[2] = {1, 1};
    std::int64_t first[2] = {0, 0};  ///< position of the first row and column, may be negative
    std::int64_t rows = 0;
  };

  /// The rows with the channels innermost, 0 beyond the plane.
  void fill_lines(const Lines& from, float* to) const {
    const auto channels = std::min(lanes_, from.channels);
    for (std::int64_t i = 0; i < from.rows; ++i, to += pitch() * lanes_) {
      const auto y = from.first[0] + i;
      const auto left = -from.first[1];
      const auto used = std::min(from.size[1], pitch() - left);
      if (y < 0 || y >= from.size[0] || channels <= 0) {
        std::fill_n(to, pitch() * lanes_, 0.0F);
        continue;
      }
      std::fill_n(to, (channels < lanes_ ? pitch() : left) * lanes_, 0.0F);
      transpose_matrix(
          {from.planes + y * from.size[1], from.size[0] * from.size[1], channels, used},
          to + left * lanes_, lanes_, Rounding::None);
      std::fill_n(to + (left + used) * lanes_, (pitch() - left - used) * lanes_, 0.0F);
    }
  }

  void multiply(const Chunk& chunk, float* sums) const {
    const auto groups = ceil_div(dy_channels_, kTaskChannels);
    parallel_for(kPoints * groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto task = begin; task < end; ++task) {
        const auto first = task % groups * kTaskChannels;
        multiply_point(chunk, task / groups, {first, std::min(dy_channels_, first + kTaskChannels)},
                       sums);
      }
    });
  }

  void multiply_point(const Chunk& chunk, std::int64_t point, Range channels, float* sums) const {
    const std::int64_t columns = microkernels().columns;
    const auto height = std::max<std::int64_t>(1, lanes_ / 2);
    const auto depth = chunk.rows.size() * row_tiles_;
    for (std::int64_t k = 0; k < depth; k += kDepth) {
      for (std::int64_t c = 0; c < x_channels_; c += columns) {
        const float* b =
            chunk.x + point * point_stride(x_channels_) + c * chunk_tiles() + k * columns;
        for (auto o = channels.begin; o < channels.end; o += height) {
          const float* a = chunk.dy + point * point_stride(dy_channels_) +
                           o / lanes_ * lanes_ * chunk_tiles() + k * lanes_ + o % lanes_;
          microkernels().run_tile(height,
                                  MicroTile{.a = a,
                                            .b = b,
                                            .c = sums + point * sum_stride() + o * x_channels_ + c,
                                            .c_stride = x_channels_,
                                            .k_inner = std::min(kDepth, depth - k),
                                            .a_step = lanes_,
                                            .b_inner = columns,
                                            .accumulate = chunk.rows.begin > 0 || k > 0,
                                            .separate = true});
        }
      }
    }
  }

  void store(const float* sums, float* dw) const {
    parallel_for(g_.out_channels, 1, [&](std::int64_t begin, std::int64_t end) {
      alignas(kAlignment) float taps[9 * kAlignment / sizeof(float)];
      for (auto o = begin; o < end; ++o) {
        for (std::int64_t c = 0; c < g_.in_channels; c += lanes_) {
          transform_sums(kTile, sums + o * x_channels_ + c, sum_stride(), taps);
          transpose_matrix({taps, lanes_, 9, std::min(lanes_, g_.in_channels - c)},
                           dw + o * dw_stride_ + c * 9, 9, Rounding::None);
        }
      }
    });
  }

  ConvGeometry g_;
  std::int64_t x_stride_;
  std::int64_t dy_stride_;
  std::int64_t dw_stride_;
  std::int64_t threads_;
  std::int64_t lanes_;
  std::int64_t row_tiles_;    ///< tiles of one row
  std::int64_t image_rows_;   ///< rows of tiles of one image
  std::int64_t x_channels_;   ///< in whole panels
  std::int64_t dy_channels_;  ///< in whole vectors
  std::int64_t chunk_rows_ = 1;
};

}  // namespace

void add_conv_weight_gradient_winograd_kernels(KernelList& list) {
  constexpr auto op = ConvWeightGradient::kName;
  list.push_back(winograd_entry<ConvWeightGradientWinograd<4>>(op, "winograd-4x4"));
  list.push_back(winograd_entry<ConvWeightGradientWinograd<2>>(op, "winograd-2x2"));
}

}  // namespace triptych::cpu
