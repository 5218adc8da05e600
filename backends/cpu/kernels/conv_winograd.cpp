// Convolutions of 3x3 and stride 1, and the gradients of their inputs, by Winograd's transforms
// (backends/cpu/winograd): for each point, filters [O, C] x patches [C, tiles]. With few filters,
// these stand transformed and a thread takes a block of tiles all the way, in its own cache. With
// many, or few tiles, all threads share a block of tiles, and each takes some output channels all
// the way: their filters are transformed in its cache each time, unless they are constant.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "backends/cpu/caches.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/prefetch.h"
#include "backends/cpu/kernels/conv_arithmetic.h"
#include "backends/cpu/kernels/conv_stride_one.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/winograd_rules.h"
#include "backends/cpu/winograd/filters.h"
#include "backends/cpu/winograd/winograd.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace triptych::cpu {
namespace {

// Filters up to this size stay in the caches together with a thread's block of tiles.
constexpr std::int64_t kPrivateFilterFloats = 800'000;
// Constant filters up to this size are transformed once: the memory gives their points sooner than
// a processor computes them from the taps, but they take up two or four times as much of it.
constexpr std::int64_t kReadyFilterFloats = 4'500'000;
// Transformed patches of a thread's own block, and of one that all threads share.
constexpr std::int64_t kPrivateFloats = 150'000;
constexpr std::int64_t kSharedFloats = 2'000'000;
// Channels that are summed up in one chain at most: longer ones err too much.
constexpr std::int64_t kChain = 256;
// Channels of many filters that are transformed at once.
constexpr std::int64_t kFilterChannels = 128;
// Outputs that the caches hold for the next kernel.
constexpr std::int64_t kCachedFloats = 4'000'000;
// Tasks for each thread that threads of unequal speed share well.
constexpr std::int64_t kTasksPerThread = 4;

// Floats that ready filters are fetched ahead: two pages. The processor's own prefetches stop at
// each page, and then the memory gives less than half of its bandwidth.
constexpr std::int64_t kFiltersAhead = 2048;

/// Makes a tile of so many rows fetch as many filters as it reads, kFiltersAhead behind them.
void fetch_filters(MicroTile& tile, std::int64_t height) {
  constexpr std::int64_t fetched = 32;  // floats of two lines, which a step of k_outer fetches
  const std::int64_t steps = tile.k_inner % 2 == 0 && 2 * height <= fetched ? 2 : 1;
  const TilePrefetch<float> ahead = {.fetches = tile.k_inner / steps,
                                     .next = tile.a + kFiltersAhead,
                                     .fetch_step = steps * height};
  ahead.add_to(tile, 0);
}

/// Geometry of a Conv or a ConvTranspose.
ConvGeometry geometry_of(const KernelQuery& query) {
  const auto &x = query.inputs[0].spec.shape, &w = query.inputs[1].spec.shape;
  const auto* conv = op_cast<Conv>(query.op);
  return conv != nullptr ? conv->geometry(x, w) : query.as<ConvTranspose>().geometry(x, w);
}

StrideOneConv problem_of(const KernelQuery& query) {
  return stride_one_conv(geometry_of(query), op_cast<Conv>(query.op) == nullptr,
                         query.inputs[1].outer_stride);
}

template <int kTile>
class ConvWinograd : public Kernel {
 public:
  ConvWinograd(const KernelQuery& query, Device& device)
      : problem_(problem_of(query)),
        relu_(op_cast<Conv>(query.op) != nullptr && has_relu(query.as<Conv>())),
        x_stride_(query.inputs[0].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        threads_(device_threads(device)),
        grid_(kTile, problem_.batch, problem_.out),
        many_filters_(filter_floats() > kPrivateFilterFloats),
        ready_(!many_filters_ ||
               (constant_input(query, 1) != nullptr && filter_floats() <= kReadyFilterFloats)),
        shared_(many_filters_ || units() < threads_),
        block_rows_(rows_of_a_block()),
        narrow_(block_rows_ * grid_.columns <= microkernels().narrow_columns),
        panel_(narrow_ ? microkernels().narrow_columns : microkernels().columns),
        width_(round_up(block_rows_ * grid_.columns, panel_)),
        tiles_(output_tiles()) {
    if (!ready_) return;
    filters_.emplace(
        filter_floats(), [this](const float* from, float* to) { pack_filters(from, to); },
        constant_input(query, 1), device);
  }

  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query);
    auto verdict = accepts_winograd(query.contract, g);
    if (verdict.accepted && std::max(g.window.pad_begin[0], g.window.pad_begin[1]) > 2) {
      verdict = Verdict::no("is padded by more than 2");
    }
    return verdict;
  }

  /// From measurements (docs/results/cpu.md).
  static Verdict worth(const KernelQuery& query) {
    const auto p = problem_of(query);
    const auto side = std::min(p.out[0], p.out[1]);
    const auto fewest = std::min(p.in_channels, p.out_channels);
    const bool ready = constant_input(query, 1) != nullptr;  // filters are transformed beforehand
    if (kTile == 2) {
      const auto enough = ready ? 48 : 256;
      return side >= (ready ? 7 : 8) && fewest >= enough
                 ? Verdict::yes()
                 : Verdict::no("saves too little for so few channels");
    }
    const bool full = side >= 24 || (side >= 13 && side <= 16);  // tiles, and vectors of them
    if (ready && full && fewest >= 16) return Verdict::yes();
    if (side < 16) return Verdict::no("fills its tiles badly with so small an image");
    if (side < 32 && fewest < 128)
      return Verdict::no("has too few tiles to pay for the transforms");
    if (p.in_channels < 8 && p.out_channels > 16) return Verdict::no("has too few input channels");
    return Verdict::yes();
  }

  std::size_t scratch_bytes() const override {
    const auto floats = checked_add(checked_mul(threads_, thread_floats()),  //
                                    shared_ ? patch_floats() : 0);
    return (filters_ ? filters_->scratch_bytes() : 0) +
           static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }
  std::size_t resident_bytes() const override { return filters_ ? filters_->resident_bytes() : 0; }

  void run(const KernelArgs& args) override {
    const auto blocks = ceil_div(grid_.rows, block_rows_);
    const float* filters = filters_ ? filters_->ready(args.in<float>(1), args.scratch) : nullptr;
    auto* scratch =
        reinterpret_cast<float*>(args.scratch + (filters_ ? filters_->scratch_bytes() : 0));
    if (shared_) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        run_together(args, filters, rows_of(block), scratch);
      }
      return;
    }
    parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto block = begin; block < end; ++block) {
        run_alone(args, filters, rows_of(block), scratch);
      }
    });
  }

 private:
  /// Some channels of a row tile at a point, with all panels.
  struct Product {
    const float* a = nullptr;  ///< filters, [channel][row]
    const float* b = nullptr;  ///< patches of the first panel, [channel][column]
    float* m = nullptr;        ///< rows width_ apart
    std::int64_t height = 0;
    std::int64_t panels = 0;
    Range channels;
    bool streams_a = false;  ///< the filters behind `a` are needed next
  };

  std::int64_t filter_floats() const {
    return checked_mul(grid_.points(), checked_mul(problem_.in_channels, problem_.out_channels));
  }
  /// Transformed patches of a block: [point][panel][channel][column].
  std::int64_t patch_stride() const {
    return winograd_point_stride(checked_mul(problem_.in_channels, width_));
  }
  std::int64_t patch_floats() const { return checked_mul(grid_.points(), patch_stride()); }
  /// Products of a row tile and a block: [point][channel][column].
  std::int64_t product_stride() const {
    return winograd_point_stride(checked_mul(tiles_.height(0) + 1, width_));
  }
  std::int64_t product_floats() const { return checked_mul(grid_.points(), product_stride()); }
  /// Filters of a row tile that are transformed at once: [point][channel][row].
  std::int64_t filter_block_stride() const {
    return winograd_point_stride((tiles_.height(0) + 1) * kFilterChannels);
  }
  std::int64_t filter_block_floats() const { return grid_.points() * filter_block_stride(); }

  /// Channels that are summed up in one chain, the same whether filters are ready or not.
  std::int64_t chain() const { return many_filters_ ? kFilterChannels : kChain; }
  /// Floats of scratch that each thread has for itself.
  std::int64_t thread_floats() const {
    if (!shared_) return checked_add(patch_floats(), product_floats());
    return checked_add(ready_ ? 0 : filter_block_floats(), product_floats());
  }

  /// As many rows as fill a panel stay together.
  std::int64_t unit() const {
    return std::max<std::int64_t>(1, microkernels().columns / grid_.columns);
  }
  std::int64_t units() const { return ceil_div(grid_.rows, unit()); }
  std::int64_t rows_of_a_block() const {
    const auto unit = this->unit(), units = this->units();
    const auto unit_floats = grid_.points() * problem_.in_channels * unit * grid_.columns;
    const auto most = (shared_ ? kSharedFloats : kPrivateFloats) / unit_floats;
    const auto blocks = ceil_div(units, std::max<std::int64_t>(1, most));
    const auto wanted = shared_ || threads_ == 1 ? 1 : std::min(kTasksPerThread * threads_, units);
    return std::min(grid_.rows, unit * evenly_shared(ceil_div(units, std::max(blocks, wanted))));
  }
  /// Units of a block, at most `most`: so many that the thread with most of them has few. Smaller
  /// blocks read all filters more often, from the second-level cache.
  std::int64_t evenly_shared(std::int64_t most) const {
    const auto filter_bytes = static_cast<double>(filter_floats()) * sizeof(float);
    if (shared_ || threads_ == 1 || filter_bytes > second_level_bytes() / 2) return most;
    const auto of_one_thread = [this](std::int64_t size) {
      return ceil_div(ceil_div(units(), size), threads_) * size;
    };
    auto best = most;
    for (auto size = most - 1; size > 0; --size) {
      if (of_one_thread(size) < of_one_thread(best)) best = size;
    }
    return best;
  }
  /// As few as possible, but as many for each thread where all share a block.
  RowTiles output_tiles() const {
    const RowTiles fewest(problem_.out_channels, (narrow_ ? 2 : 1) * microkernels().max_rows);
    if (!shared_ || fewest.count() >= kTasksPerThread * threads_) return fewest;
    const auto even = round_up(fewest.count(), threads_);
    return RowTiles(problem_.out_channels, ceil_div(problem_.out_channels, even));
  }
  Range rows_of(std::int64_t block) const {
    return {block * block_rows_, std::min(grid_.rows, (block + 1) * block_rows_)};
  }
  Range channels_of(std::int64_t tile) const {
    return {tiles_.begin(tile), tiles_.begin(tile + 1)};
  }

  WinogradWeights weights_at(const float* data) const {
    return {data, problem_.out_stride, problem_.in_stride, problem_.flipped};
  }

  /// All filters: [tile][point][channel][row].
  void pack_filters(const float* from, float* to) const {
    const Range all = {0, problem_.in_channels};
    parallel_for(tiles_.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto tile = begin; tile < end; ++tile) {
        transform_filter_tile(kTile, weights_at(from), channels_of(tile), all,
                              to + tiles_.begin(tile) * grid_.points() * all.size(),
                              tiles_.height(tile) * all.size());
      }
    });
  }

  /// The whole block by this thread.
  void run_alone(const KernelArgs& args, const float* filters, Range rows, float* scratch) const {
    const auto thread = thread_index();
    float* v = scratch + thread * (patch_floats() + product_floats());
    float* m = v + patch_floats();
    for (std::int64_t c = 0; c < problem_.in_channels; ++c) transform(args, c, rows, v);
    for (std::int64_t tile = 0; tile < tiles_.count(); ++tile) {
      run_ready_tile(args, filters, tile, rows, v, m);
    }
  }

  /// A row tile's output channels, from transformed filters and the patches at v.
  void run_ready_tile(const KernelArgs& args, const float* filters, std::int64_t tile, Range rows,
                      const float* v, float* m) const {
    const auto height = tiles_.height(tile);
    const float* u = filters + tiles_.begin(tile) * grid_.points() * problem_.in_channels;
    for (int point = 0; point < grid_.points(); ++point) {
      for (std::int64_t c = 0; c < problem_.in_channels; c += chain()) {
        multiply({.a = u + (point * problem_.in_channels + c) * height,
                  .b = patches(v, point, c),
                  .m = m + point * product_stride(),
                  .height = height,
                  .panels = panels(rows),
                  .channels = {c, std::min(c + chain(), problem_.in_channels)},
                  .streams_a = true});
      }
    }
    store_tile(args, tile, rows, m);
  }

  /// The block by all threads.
  void run_together(const KernelArgs& args, const float* filters, Range rows,
                    float* scratch) const {
    float* v = scratch;
    const auto grain = ceil_div(std::int64_t{512}, width_);
    parallel_for(problem_.in_channels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto c = begin; c < end; ++c) transform(args, c, rows, v);
    });
    parallel_for(tiles_.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      float* own = scratch + patch_floats() + thread_index() * thread_floats();
      for (auto tile = begin; tile < end; ++tile) {
        ready_ ? run_ready_tile(args, filters, tile, rows, v, own)
               : run_tile(args, tile, rows, v, own);
      }
    });
  }

  /// A row tile's output channels, from the patches at v.
  void run_tile(const KernelArgs& args, std::int64_t tile, Range rows, const float* v,
                float* u) const {
    const auto weights = weights_at(args.in<float>(1));
    float* m = u + filter_block_floats();
    for (std::int64_t c = 0; c < problem_.in_channels; c += kFilterChannels) {
      const Range channels = {c, std::min(c + kFilterChannels, problem_.in_channels)};
      transform_filter_tile(kTile, weights, channels_of(tile), channels, u, filter_block_stride());
      for (int point = 0; point < grid_.points(); ++point) {
        prefetch_filters(weights, tile, channels, point);
        multiply({.a = u + point * filter_block_stride(),
                  .b = patches(v, point, c),
                  .m = m + point * product_stride(),
                  .height = tiles_.height(tile),
                  .panels = panels(rows),
                  .channels = channels});
      }
    }
    store_tile(args, tile, rows, m);
  }

  /// Fetches a point's share of the filters that come behind these.
  void prefetch_filters(const WinogradWeights& weights, std::int64_t tile, Range channels,
                        int point) const {
    const bool last = channels.end == problem_.in_channels;
    if (last && tile + 1 == tiles_.count()) return;
    const auto begin = last ? 0 : channels.end;
    const Range next = {begin, std::min(begin + kFilterChannels, problem_.in_channels)};
    prefetch_filter_tile(weights, channels_of(last ? tile + 1 : tile), next, point, grid_.points());
  }

  std::int64_t panels(Range rows) const { return ceil_div(rows.size() * grid_.columns, panel_); }
  /// From `channel` of the first panel on.
  const float* patches(const float* v, int point, std::int64_t channel) const {
    return v + point * patch_stride() + channel * panel_;
  }

  void transform(const KernelArgs& args, std::int64_t channel, Range rows, float* v) const {
    for (auto row = rows.begin; row < rows.end; ++row) {
      const auto image = row / grid_.image_rows, y = row % grid_.image_rows * kTile;
      const auto plane_size = problem_.in[0] * problem_.in[1];
      const float* plane = args.in<float>(0) + image * x_stride_ + channel * plane_size;
      const bool last = channel + 1 == problem_.in_channels;
      transform_patches(grid_, {.plane = plane,
                                .next_plane = last ? nullptr : plane + plane_size,
                                .in = {problem_.in[0], problem_.in[1]},
                                .first = {y - problem_.pad[0], -problem_.pad[1]},
                                .v = v + channel * panel_,
                                .point_stride = patch_stride(),
                                .panel = panel_,
                                .panel_stride = problem_.in_channels * panel_,
                                .column = (row - rows.begin) * grid_.columns});
    }
  }

  /// Each range of channels is a chain of its own.
  void multiply(const Product& p) const {
    MicroTile tile = {.a = p.a,
                      .b = p.b,
                      .c = p.m,
                      .c_stride = width_,
                      .k_inner = p.channels.size(),
                      .b_inner = panel_,
                      .accumulate = p.channels.begin > 0,
                      .separate = true};
    const auto& kernels = microkernels();
    const auto height = static_cast<std::size_t>(p.height);
    const auto run_panel = narrow_ ? kernels.run_narrow[height] : kernels.run[height];
    auto first = tile;
    if (p.streams_a) fetch_filters(first, p.height);
    run_panel(first);
    for (std::int64_t panel = 1; panel < p.panels; ++panel) {
      tile.b += problem_.in_channels * panel_;
      tile.c += panel_;
      run_panel(tile);
    }
  }

  void store_tile(const KernelArgs& args, std::int64_t tile, Range rows, const float* m) const {
    for (std::int64_t r = 0; r < tiles_.height(tile); ++r) {
      store(args, tiles_.begin(tile) + r, rows, m + r * width_);
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
                                .relu = relu_,
                                .large = problem_.batch * y_stride_ > kCachedFloats});
    }
  }

  StrideOneConv problem_;
  bool relu_;
  std::int64_t x_stride_;
  std::int64_t y_stride_;
  std::int64_t threads_;
  WinogradGrid grid_;
  bool many_filters_;
  bool ready_;   ///< filters are transformed before all else
  bool shared_;  ///< all threads work on one block
  std::int64_t block_rows_;
  bool narrow_;                           ///< one vector holds a row of the block's columns
  std::int64_t panel_;                    ///< width of the tiles of products
  std::int64_t width_;                    ///< columns of a block
  RowTiles tiles_;                        ///< of the output channels
  std::optional<PackedOperand> filters_;  ///< where they stand transformed
};

}  // namespace

void add_conv_winograd_kernels(KernelList& list) {
  for (const auto op : {Conv::kName, ConvTranspose::kName}) {
    list.push_back(winograd_entry<ConvWinograd<4>>(op, "winograd-4x4"));
    list.push_back(winograd_entry<ConvWinograd<2>>(op, "winograd-2x2"));
  }
}

}  // namespace triptych::cpu
