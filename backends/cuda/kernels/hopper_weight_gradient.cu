// Gradients of the weights of convolutions by the products of hopper_gemm.cuh: m counts output
// channels, n taps and input channels, k positions of dy. A step is a box of positions: its
// channels of dy, and for each tap the same box of x shifted by the tap. Rows of the tiles are
// positions, so k lies outside. Blocks that divide k leave their sums in scratch memory.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/elementwise.cuh"
#include "backends/cuda/kernels/hopper_gemm.cuh"
#include "backends/cuda/kernels/position_view.h"
#include "backends/cuda/kernels/rounded_conv.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Channels of a row of a tile.
constexpr int kRowChannels = 64;

/// kRows: of a tile. Where there are only 64 output channels, tiles are wider.
template <int kRows>
struct HopperWeightGradientProblem {
  using Tiles = HopperTilesOf<kRows>;
  static constexpr bool kTurned = false, kDepthOutside = true;

  GemmSizes sizes;
  TensorMap dy, x;  ///< [images, height, width, channels]
  Global<const Tap> taps;
  PixelBox box;                          ///< of a step
  int across = 0, down = 0;              ///< boxes of an image
  int pixel_step = 1, channel_step = 0;  ///< as in PositionView
  int row_tiles = 0, column_tiles = 0;
  int pieces = 1, all_pieces = 1;  ///< of 64 channels: of a tap, and of all
  Splits splits;
  bool stores_shares = false;  ///< in scratch memory. Otherwise there is one tap and one share
  Global<float> dw;
  std::int64_t dw_row = 0;

  /// Its first row and column, and its share of k.
  struct Tile {
    int m, n, split;
  };
  __device__ Tile tile(std::int64_t number) const {
    const std::int64_t tiles = std::int64_t{row_tiles} * column_tiles;
    const TileNumber at = tile_number(number % tiles, row_tiles, column_tiles);
    return {static_cast<int>(at.m) * Tiles::kRows, static_cast<int>(at.n) * Tiles::kColumns,
            static_cast<int>(number / tiles)};
  }
  __device__ int steps() const { return splits.steps; }
  /// Rows and columns that are not there are copies of the last ones. Steps behind the last image
  /// are zeros.
  __device__ void load(Tiles& tiles, int stage, const Tile& tile, int step,
                       PhaseBarrier& full) const {
    const int number = tile.split * splits.steps + step;
    const int left = number % across << box.width, top = number / across % down << box.height;
    const int image = number / across / down << box.images;
#pragma unroll
    for (int i = 0; i < Tiles::kRows / kRowChannels; ++i) {
      const int channel = tile.m + i * kRowChannels;
      const int last = static_cast<int>(sizes.m) - kRowChannels;
      load_box(tiles.a, stage * Tiles::kRows + i * Tiles::kDepth, dy,
               {channel < last ? channel : last, left, top, image}, full);
    }
#pragma unroll
    for (int i = 0; i < Tiles::kColumns / kRowChannels; ++i) {
      const int piece = tile.n / kRowChannels + i;
      const int here = piece < all_pieces ? piece : all_pieces - 1;
      const Tap tap = taps[here / pieces];
      load_box(tiles.b, stage * Tiles::kColumns + i * Tiles::kDepth, x,
               {here % pieces * kRowChannels + tap.dx * channel_step, left + tap.dx * pixel_step,
                top + tap.dy, image},
               full);
    }
  }
  __device__ void store_pair(const Tile& tile, int m, int n, float first, float second) const {
    const std::int64_t row = tile.m + m, column = tile.n + n;
    if (row >= sizes.m || column >= sizes.n) return;
    if (stores_shares) {
      splits.partial.template store<2>((tile.split * sizes.m + row) * sizes.n + column,
                                       {{first, second}});
      return;
    }
    dw[row * dw_row + column] = canonical(first);
    dw[row * dw_row + column + 1] = canonical(second);
  }
};

/// Sums of shares of k: [share, row, tap, channel].
struct WeightShares {
  Global<const float> sums;
  int count = 1;
  std::int64_t share = 0;  ///< elements
  WideDivisor row, taps;   ///< elements of a row of dw
  std::int64_t channels = 1;
  Global<float> dw;
  std::int64_t dw_row = 0;
};

/// The sums of all shares, in their order. A thread owns an element of dw. Neighbours write
/// neighbours, and read the sums of all taps of a few channels.
__global__ void add_weight_shares_kernel(WeightShares of) {
  for (auto i = global_thread(); i < of.share; i += all_threads()) {
    const std::int64_t row = of.row.divide(i), in_row = i - row * of.row.value();
    const std::int64_t channel = of.taps.divide(in_row), tap = in_row - channel * of.taps.value();
    const std::int64_t at = row * of.row.value() + tap * of.channels + channel;
    float sum = of.sums[at];
    for (int k = 1; k < of.count; ++k) sum += of.sums[k * of.share + at];
    of.dw[row * of.dw_row + in_row] = canonical(sum);
  }
}

class HopperWeightGradient : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query.as<ConvWeightGradient>(), query);
    if (auto verdict = accepts_tensor_core(sizes_of(g), query.contract); !verdict.accepted) {
      return verdict;
    }
    if (!has_views(g.window)) return Verdict::no("needs stride 1, or patches that are tiles");
    if (g.groups != 1) return Verdict::no("needs one group");
    if (g.group_in() == 0 || g.group_in() % kRowChannels != 0 || g.group_out() == 0 ||
        g.group_out() % kRowChannels != 0) {
      return Verdict::no("needs multiples of 64 channels in and out");
    }
    if (!step_box(g)) return Verdict::no("needs images that boxes of 64 positions cover exactly");
    return Verdict::yes();
  }

  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    return {.inputs = {reads_channels_last(query.inputs[0], 1, kRowChannels),
                       reads_channels_last(query.inputs[1], 1, kRowChannels)}};
  }

  HopperWeightGradient(const KernelQuery& query, Device& device)
      : g_(geometry_of(query.as<ConvWeightGradient>(), query)),
        x_(query.inputs[0], 1, g_.group_in(), g_.in_plane()),
        dy_(query.inputs[1], 1, g_.group_out(), g_.out_plane()),
        dw_(query.outputs[0]),
        taps_(device, window_taps(g_.window, 0), window_taps(g_.window, 1), g_.window.kernel[1]),
        splits_(splits_of(g_)) {}

  std::size_t resident_bytes() const override { return taps_.bytes(); }
  std::size_t scratch_bytes() const override {
    return x_.bytes() + dy_.bytes() + static_cast<std::size_t>(partial_sums()) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    tile_rows(g_) == kRowChannels ? run_tiles<kRowChannels>(args)
                                  : run_tiles<HopperTiles::kRows>(args);
  }

 private:
  template <int kRows>
  void run_tiles(const KernelArgs& args) const {
    const auto problem = problem_of<kRows>(args);
    launch_hopper_gemm(args.stream, "conv_weight_gradient_hopper", problem,
                       std::int64_t{problem.row_tiles} * problem.column_tiles * splits_.count);
    if (stores_shares()) add_shares(args);
  }

  void add_shares(const KernelArgs& args) const {
    const auto sizes = sizes_of(g_);
    const auto* sums = reinterpret_cast<const float*>(args.scratch + x_.bytes() + dy_.bytes());
    const WeightShares shares = {.sums = {sums, partial_sums()},
                                 .count = splits_.count,
                                 .share = sizes.m * sizes.n,
                                 .row = WideDivisor(sizes.n),
                                 .taps = WideDivisor(g_.taps()),
                                 .channels = g_.group_in(),
                                 .dw = {args.out<float>(0), span_of(dw_)},
                                 .dw_row = dw_.outer_stride};
    launch(args.stream, "add_weight_shares", one_dimension(shares.share), add_weight_shares_kernel,
           shares);
  }

  static GemmSizes sizes_of(const ConvGeometry& g) {
    return {1, g.group_out(), g.group_in() * g.taps(), g.batch * g.out_plane()};
  }

  /// Positions of dy that are not there would meet pixels of x that are.
  static std::optional<PixelBox> step_box(const ConvGeometry& g) {
    const auto view = PositionView::of(g.window, g.batch, 0);
    const auto box = view.box(HopperTiles::kDepth, 0);
    if (!box || view.boxes(*box) * HopperTiles::kDepth != g.batch * g.out_plane()) return {};
    return box;
  }
  /// As many output channels.
  static std::int64_t tile_rows(const ConvGeometry& g) {
    return g.group_out() == kRowChannels ? kRowChannels : HopperTiles::kRows;
  }
  static std::int64_t row_tiles(const ConvGeometry& g) {
    return ceil_div(g.group_out(), tile_rows(g));
  }
  static std::int64_t column_tiles(const ConvGeometry& g) {
    const auto columns = HopperTiles::kRows * HopperTiles::kColumns / tile_rows(g);
    return ceil_div(sizes_of(g).n, columns);
  }

  static Splits splits_of(const ConvGeometry& g) {
    constexpr std::int64_t kStoring = 12;  // single floats
    const auto steps = g.batch * g.out_plane() / HopperTiles::kDepth;
    return divide_steps(row_tiles(g) * column_tiles(g), steps, kStoring);
  }
  /// dw has the taps of a channel together, a tile the channels of a tap. Stored one by one, they
  /// take longer than through scratch memory.
  bool stores_shares() const { return splits_.count > 1 || g_.taps() > 1; }
  std::int64_t partial_sums() const {
    const auto sizes = sizes_of(g_);
    return stores_shares() ? splits_.count * sizes.m * sizes.n : 0;
  }

  /// Rounds the operands that are not stored so.
  template <int kRows>
  HopperWeightGradientProblem<kRows> problem_of(const KernelArgs& args) const {
    const auto view = PositionView::of(g_.window, g_.batch, x_.pitch());
    const auto sizes = sizes_of(g_);
    const auto box = step_box(g_).value();
    const auto x = x_.round(args.stream, args.inputs[0], args.scratch);
    const auto dy = dy_.round(args.stream, args.inputs[1], args.scratch + x_.bytes());
    auto splits = splits_;
    auto* partial = args.scratch + x_.bytes() + dy_.bytes();
    if (stores_shares()) splits.partial = {reinterpret_cast<float*>(partial), partial_sums()};
    return {
        .sizes = sizes,
        .dy = view.map_of_positions(static_cast<const BFloat16*>(dy.address()), dy_.pitch(), box),
        .x = view.map_of_x(static_cast<const BFloat16*>(x.address()), box),
        .taps = taps_.global(),
        .box = box,
        .across = static_cast<int>(box.across(view.width)),
        .down = static_cast<int>(box.down(view.height)),
        .pixel_step = view.pixel_step,
        .channel_step = view.channel_step,
        .row_tiles = static_cast<int>(row_tiles(g_)),
        .column_tiles = static_cast<int>(column_tiles(g_)),
        .pieces = static_cast<int>(g_.group_in() / kRowChannels),
        .all_pieces = static_cast<int>(sizes.n / kRowChannels),
        .splits = splits,
        .stores_shares = stores_shares(),
        .dw = {args.out<float>(0), span_of(dw_)},
        .dw_row = dw_.outer_stride};
  }

  ConvGeometry g_;
  RoundedImages x_, dy_;
  Operand dw_;
  TapTable taps_;
  Splits splits_;
};

}  // namespace

void add_hopper_weight_gradient_kernels(KernelList& list) {
  add_for_wgmma(list,
                channels_last_entry<HopperWeightGradient>(ConvWeightGradient::kName, "hopper"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
