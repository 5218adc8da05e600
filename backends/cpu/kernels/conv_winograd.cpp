// Convolutions of 3x3 and stride 1, and the gradients of their inputs, by Winograd's transforms
// (backends/cpu/winograd): for each point, filters [O, C] x patches [C, tiles]. With few channels a
// thread takes a block of tiles all the way, in its own cache; with many, where the transformed
// filters fill the caches, all threads go through one point after the other together.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_arithmetic.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/winograd_rules.h"
#include "backends/cpu/winograd/winograd.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace triptych::cpu {
namespace {

// Filters up to this size stay in the caches beside a thread's block of tiles.
constexpr std::int64_t kPrivateFilterFloats = 800'000;
// Transformed patches of a thread's own block, and of one that all threads share.
constexpr std::int64_t kPrivateFloats = 150'000;
constexpr std::int64_t kSharedFloats = 2'000'000;
// Products of channel numbers up to which small images are worth the larger tiles.
constexpr std::int64_t kSmallFilters = 512 * 512;
// Channels that are summed up in one chain: longer ones err too much.
constexpr std::int64_t kChain = 256;
// Outputs that the caches hold for the next kernel.
constexpr std::int64_t kCachedFloats = 4'000'000;
// Row tiles that one task multiplies with one point's patches.
constexpr std::int64_t kSharedTiles = 8;

/// A convolution of 3x3 and stride 1 as both operators see it.
struct Problem {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1;
  std::int64_t in[2] = {1, 1}, out[2] = {1, 1}, pad[2] = {0, 0};
  std::int64_t out_stride = 0, in_stride = 0;  ///< of the weights, along those channels
  bool flipped = false;                        ///< taps run backwards
  bool relu = false;
};

ConvGeometry geometry_of(const KernelQuery& query) {
  const auto &x = query.inputs[0].spec.shape, &w = query.inputs[1].spec.shape;
  const auto* conv = op_cast<Conv>(query.op);
  return conv != nullptr ? conv->geometry(x, w) : query.as<ConvTranspose>().geometry(x, w);
}

Problem problem_of(const KernelQuery& query) {
  const auto g = geometry_of(query);
  const auto& w = g.window;
  const auto w_stride = query.inputs[1].outer_stride;
  if (const auto* conv = op_cast<Conv>(query.op)) {
    return {.batch = g.batch,
            .in_channels = g.in_channels,
            .out_channels = g.out_channels,
            .in = {w.in[0], w.in[1]},
            .out = {w.out[0], w.out[1]},
            .pad = {w.pad_begin[0], w.pad_begin[1]},
            .out_stride = w_stride,
            .in_stride = g.taps(),
            .relu = conv->activation == "relu"};
  }
  return {.batch = g.batch,
          .in_channels = g.out_channels,
          .out_channels = g.in_channels,
          .in = {w.out[0], w.out[1]},
          .out = {w.in[0], w.in[1]},
          .pad = {w.kernel[0] - 1 - w.pad_begin[0], w.kernel[1] - 1 - w.pad_begin[1]},
          .out_stride = g.taps(),
          .in_stride = w_stride,
          .flipped = true};
}

template <int kTile>
class ConvWinograd : public Kernel {
 public:
  ConvWinograd(const KernelQuery& query, Device& device)
      : problem_(problem_of(query)),
        x_stride_(query.inputs[0].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        threads_(device_threads(device)),
        grid_(kTile, problem_.batch, problem_.out),
        tiles_(problem_.out_channels),
        shared_(filter_floats() > kPrivateFilterFloats),
        block_rows_(rows_of_a_block()),
        width_(round_up(block_rows_ * grid_.columns, microkernels().columns)),
        filters_(
            filter_floats(), [this](const float* from, float* to) { pack_filters(from, to); },
            constant_input(query, 1), device) {}

  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query);
    auto verdict = accepts_winograd(query.contract, g);
    if (verdict.accepted && std::max(g.window.pad_begin[0], g.window.pad_begin[1]) > 2) {
      verdict = Verdict::no("is padded by more than 2");
    }
    return verdict;
  }

  /// By what was measured (docs/results/cpu.md).
  static Verdict worth(const KernelQuery& query) {
    const auto p = problem_of(query);
    const auto side = std::min(p.out[0], p.out[1]);
    const auto fewest = std::min(p.in_channels, p.out_channels);
    const bool fits = p.in_channels * p.out_channels <= kSmallFilters;
    if (kTile == 2) {
      return side >= 8 && fewest >= 256 ? Verdict::yes()
                                        : Verdict::no("saves too little for so few channels");
    }
    if (side < 16) return Verdict::no("fills its tiles badly with so small an image");
    if (side < 32 && fewest < 128)
      return Verdict::no("has too few tiles to pay for the transforms");
    if (side < 32 && !fits) return Verdict::no("has larger filters than so few tiles pay for");
    if (p.in_channels < 8 && p.out_channels > 16) return Verdict::no("has too few input channels");
    return Verdict::yes();
  }

  std::size_t scratch_bytes() const override {
    const auto blocks = shared_ ? 1 : std::int64_t{threads_};
    const auto floats = checked_mul(blocks, checked_add(patch_floats(), product_floats()));
    return filters_.scratch_bytes() + static_cast<std::size_t>(floats) * sizeof(float);
  }
  std::size_t resident_bytes() const override { return filters_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const float* filters = filters_.ready(args.in<float>(1), args.scratch);
    auto* scratch = reinterpret_cast<float*>(args.scratch + filters_.scratch_bytes());
    const auto blocks = ceil_div(grid_.rows, block_rows_);
    if (shared_) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        run_together(args, filters, rows_of(block), scratch);
      }
    } else {
      parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto block = begin; block < end; ++block) {
          run_alone(args, filters, rows_of(block), scratch);
        }
      });
    }
  }

 private:
  std::int64_t filter_floats() const {
    return checked_mul(grid_.points(), checked_mul(problem_.in_channels, problem_.out_channels));
  }
  /// Transformed patches of a block: [point][panel][channel][column].
  std::int64_t patch_stride() const {
    return winograd_point_stride(checked_mul(problem_.in_channels, width_));
  }
  std::int64_t patch_floats() const { return checked_mul(grid_.points(), patch_stride()); }
  /// Products of a block, of all channels or those of one row tile: [point][channel][column].
  std::int64_t product_stride() const {
    const auto rows = shared_ ? problem_.out_channels : std::int64_t{microkernels().max_rows};
    return winograd_point_stride(checked_mul(rows, width_));
  }
  std::int64_t product_floats() const { return checked_mul(grid_.points(), product_stride()); }

  std::int64_t rows_of_a_block() const {
    // As many rows as fill a panel stay together.
    const auto unit = std::max<std::int64_t>(1, microkernels().columns / grid_.columns);
    const auto units = ceil_div(grid_.rows, unit);
    const auto unit_floats = grid_.points() * problem_.in_channels * unit * grid_.columns;
    const auto most = (shared_ ? kSharedFloats : kPrivateFloats) / unit_floats;
    const auto blocks = ceil_div(units, std::max<std::int64_t>(1, most));
    const auto wanted = shared_ || threads_ == 1 ? 1 : std::min(4 * threads_, units);
    return unit * ceil_div(units, std::max(blocks, wanted));
  }
  Range rows_of(std::int64_t block) const {
    return {block * block_rows_, std::min(grid_.rows, (block + 1) * block_rows_)};
  }

  /// Where the filters of a row tile stand for a point: [point][tile] when all threads go from
  /// point to point, [tile][point] when each takes one tile through all points.
  std::int64_t filter_offset(int point, std::int64_t tile) const {
    const auto c = problem_.in_channels;
    if (shared_) return (point * problem_.out_channels + tiles_.begin(tile)) * c;
    return (tiles_.begin(tile) * grid_.points() + point * tiles_.height(tile)) * c;
  }

  void pack_filters(const float* from, float* to) const {
    static constexpr std::int64_t all_taps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    constexpr std::int64_t chunk = 32;
    const auto chunks = ceil_div(problem_.in_channels, chunk);
    parallel_for(tiles_.count() * chunks, 4, [&](std::int64_t begin, std::int64_t end) {
      alignas(kAlignment) float taps[9 * chunk * kMaxTileRows];
      for (auto i = begin; i < end; ++i) {
        // In the order of memory: each row of weights goes on along the tap's first channels.
        const bool rows_inside = problem_.out_stride < problem_.in_stride;
        const auto tile = rows_inside ? i % tiles_.count() : i / chunks;
        const auto channel = (rows_inside ? i / tiles_.count() : i % chunks) * chunk;
        const auto height = tiles_.height(tile);
        const auto channels = std::min(chunk, problem_.in_channels - channel);
        const RowSource source = {
            .data = from + tiles_.begin(tile) * problem_.out_stride + channel * problem_.in_stride,
            .row_stride = problem_.out_stride,
            .channel_stride = problem_.in_stride,
            .channels = channels,
            .tap_offsets = all_taps};
        pack_rows(source, height, taps, Rounding::None);
        transform_filters(kTile, {.taps = taps,
                                  .count = channels * height,
                                  .flipped = problem_.flipped,
                                  .u = to + filter_offset(0, tile) + channel * height,
                                  .point_stride = filter_offset(1, tile) - filter_offset(0, tile)});
      }
    });
  }

  /// The whole block by this thread.
  void run_alone(const KernelArgs& args, const float* filters, Range rows, float* scratch) const {
    const auto thread = tbb::this_task_arena::current_thread_index();
    float* v = scratch + thread * (patch_floats() + product_floats());
    float* m = v + patch_floats();
    for (std::int64_t c = 0; c < problem_.in_channels; ++c) transform(args, c, rows, v);
    for (std::int64_t tile = 0; tile < tiles_.count(); ++tile) {
      const auto height = tiles_.height(tile);
      for (int point = 0; point < grid_.points(); ++point) {
        for (std::int64_t panel = 0; panel < panels(rows); ++panel) {
          multiply(filters, point, tile, panel, v, m + point * product_stride());
        }
      }
      for (std::int64_t r = 0; r < height; ++r) {
        store(args, tiles_.begin(tile) + r, rows, m + r * width_);
      }
    }
  }

  /// The block by all threads, step by step.
  void run_together(const KernelArgs& args, const float* filters, Range rows,
                    float* scratch) const {
    float* v = scratch;
    float* m = v + patch_floats();
    const auto grain = ceil_div(std::int64_t{512}, width_);
    parallel_for(problem_.in_channels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto c = begin; c < end; ++c) transform(args, c, rows, v);
    });
    const auto groups = ceil_div(tiles_.count(), kSharedTiles);
    parallel_for(grid_.points() * groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto task = begin; task < end; ++task) {
        const auto point = static_cast<int>(task / groups);
        const auto first = task % groups * kSharedTiles;
        const auto last = std::min(first + kSharedTiles, tiles_.count());
        for (std::int64_t panel = 0; panel < panels(rows); ++panel) {
          for (auto tile = first; tile < last; ++tile) {
            multiply(filters, point, tile, panel, v,
                     m + point * product_stride() + tiles_.begin(tile) * width_);
          }
        }
      }
    });
    parallel_for(problem_.out_channels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto o = begin; o < end; ++o) {
        store(args, o, rows, m + o * width_);
      }
    });
  }

  std::int64_t panels(Range rows) const {
    return ceil_div(rows.size() * grid_.columns, std::int64_t{microkernels().columns});
  }

  void transform(const KernelArgs& args, std::int64_t channel, Range rows, float* v) const {
    const std::int64_t columns = microkernels().columns;
    for (auto row = rows.begin; row < rows.end; ++row) {
      const auto image = row / grid_.image_rows, y = row % grid_.image_rows * kTile;
      const auto plane_size = problem_.in[0] * problem_.in[1];
      const float* plane = args.in<float>(0) + image * x_stride_ + channel * plane_size;
      const bool last = channel + 1 == problem_.in_channels;
      transform_patches(grid_, {.plane = plane,
                                .next_plane = last ? nullptr : plane + plane_size,
                                .in = {problem_.in[0], problem_.in[1]},
                                .first = {y - problem_.pad[0], -problem_.pad[1]},
                                .v = v + channel * columns,
                                .point_stride = patch_stride(),
                                .panel_stride = problem_.in_channels * columns,
                                .column = (row - rows.begin) * grid_.columns});
    }
  }

  /// One panel of a row tile's products at a point to m, rows width_ apart.
  void multiply(const float* filters, int point, std::int64_t tile, std::int64_t panel,
                const float* v, float* m) const {
    const std::int64_t columns = microkernels().columns;
    const auto height = tiles_.height(tile);
    const float* a = filters + filter_offset(point, tile);
    const float* b = v + point * patch_stride() + panel * columns * problem_.in_channels;
    for (std::int64_t k = 0; k < problem_.in_channels; k += kChain) {
      microkernels().run_tile(height,
                              MicroTile{.a = a + k * height,
                                        .b = b + k * columns,
                                        .c = m + panel * columns,
                                        .c_stride = width_,
                                        .k_inner = std::min(kChain, problem_.in_channels - k),
                                        .b_inner = columns,
                                        .accumulate = k > 0,
                                        .separate = true});
    }
  }

  void store(const KernelArgs& args, std::int64_t channel, Range rows, const float* m) const {
    const float* bias = optional_input<float>(args, 2, channel);
    for (auto row = rows.begin; row < rows.end; ++row) {
      const auto image = row / grid_.image_rows, y = row % grid_.image_rows * kTile;
      transform_outputs(grid_, {.m = m + (row - rows.begin) * grid_.columns,
                                .point_stride = product_stride(),
                                .plane = args.out<float>(0) + image * y_stride_ +
                                         channel * problem_.out[0] * problem_.out[1],
                                .out = {problem_.out[0], problem_.out[1]},
                                .first_row = y,
                                .bias = bias == nullptr ? 0 : *bias,
                                .relu = problem_.relu,
                                .large = problem_.batch * y_stride_ > kCachedFloats});
    }
  }

  Problem problem_;
  std::int64_t x_stride_;
  std::int64_t y_stride_;
  std::int64_t threads_;
  WinogradGrid grid_;
  RowTiles tiles_;  ///< of the output channels
  bool shared_;     ///< do all threads work on one block?
  std::int64_t block_rows_;
  std::int64_t width_;  ///< columns of a block
  PackedOperand filters_;
};

}  // namespace

void add_conv_winograd_kernels(KernelList& list) {
  for (const auto op : {Conv::kName, ConvTranspose::kName}) {
    list.push_back(kernel_entry<ConvWinograd<4>>(op, "winograd-4x4"));
    list.back().worth = &ConvWinograd<4>::worth;
    list.push_back(kernel_entry<ConvWinograd<2>>(op, "winograd-2x2"));
    list.back().worth = &ConvWinograd<2>::worth;
  }
}

}  // namespace triptych::cpu
