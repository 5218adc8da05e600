// Convolutions by the products of hopper_gemm.cuh: m counts output channels, n positions of the
// output, k taps and channels. No patch is ever stored: the positions of a tile are a box of pixels
// (of several images where one is too small). The operand of a tap is the same box of the image
// shifted by the tap, and the copy engine fills it with zeros outside the image. Where a transposed
// convolution writes patches that are tiles, m counts the taps and channels of a patch, n positions
// of the input and k channels. Blocks that divide k leave their sums in scratch memory, in planes.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/channel_tiles.cuh"
#include "backends/cuda/kernels/hopper_gemm.cuh"
#include "backends/cuda/kernels/position_view.h"
#include "backends/cuda/kernels/rounded_conv.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Out: float in planes, or BFloat16 with the channels of a position together. kRows: channels of a
/// tile.
template <class Out, int kRows>
struct HopperConvProblem {
  using Tiles = HopperTilesOf<kRows>;
  static constexpr bool kTurned = std::is_same_v<Out, BFloat16>, kDepthOutside = false;

  TensorMap weights;  ///< [rows, taps, channels]
  TensorMap pixels;   ///< [images, height, width, channels]
  Global<const Tap> taps;
  int tap_count = 0, channel_steps = 0;
  int pixel_step = 1, channel_step = 0;               ///< as in PositionView
  int box_width = 0, box_height = 0, box_images = 0;  ///< powers of two
  std::int64_t rows = 0, width = 0, height = 0, images = 0;
  Divisor rows_of_image;  ///< as in PositionView
  std::int64_t row_tiles = 0, across = 0, down = 0, deep = 0;
  int split_steps = 0;  ///< of a block's share of k
  Global<Out> y;
  std::int64_t y_split = 0;  ///< elements from the sums of a share to those of the next
  std::int64_t y_image = 0;  ///< elements from an image to the next
  std::int64_t y_step = 0;   ///< from a plane, or a position, to the next
  bool whole_pairs = false;  ///< even and odd columns lie together, at multiples of two floats
  /// The patch of y at a position: taps of a row, of so many channels, and the size of y's rows.
  Divisor channels, patch_width;
  int patch_height = 1;
  std::int64_t y_width = 0;
  FloatFinish finish;

  /// Its first channel and position, and its share of k.
  struct Tile {
    int m, x, y, image, split;
  };
  __device__ std::int64_t tiles() const { return row_tiles * across * down * deep; }
  __device__ Tile tile(std::int64_t number) const {
    const TileNumber at = tile_number(number % tiles(), row_tiles, across * down * deep);
    const std::int64_t x = at.n % across, row = at.n / across % down, image = at.n / across / down;
    return {static_cast<int>(at.m) * Tiles::kRows, static_cast<int>(x) << box_width,
            static_cast<int>(row) << box_height, static_cast<int>(image) << box_images,
            static_cast<int>(number / tiles())};
  }
  __device__ int steps() const { return split_steps; }
  /// Steps behind the last tap read a tap and an image that are not there, which are zeros.
  __device__ void load(Tiles& tiles, int stage, const Tile& tile, int step,
                       PhaseBarrier& full) const {
    step += tile.split * split_steps;
    const int number = step / channel_steps;
    const int channel = step % channel_steps * Tiles::kDepth;
    const bool is_step = number < tap_count;
    const Tap tap = taps[is_step ? number : 0];
    const int image = is_step ? tile.image : static_cast<int>(images);
    load_box(tiles.a, stage * Tiles::kRows, weights, {channel, number, tile.m, 0}, full);
    load_box(
        tiles.b, stage * Tiles::kColumns, pixels,
        {channel + tap.dx * channel_step, tile.x + tap.dx * pixel_step, tile.y + tap.dy, image},
        full);
  }
  /// A position: the image of y, and the row and column in it.
  struct Pixel {
    int x, y, image;
    bool inside;
  };
  __device__ Pixel pixel(const Tile& tile, int n) const {
    Pixel at = {tile.x + (n & ((1 << box_width) - 1)),
                tile.y + (n >> box_width & ((1 << box_height) - 1)),
                tile.image + (n >> (box_width + box_height)), false};
    at.inside = at.x < width && at.y < height && at.image < images;
    const auto image = static_cast<int>(rows_of_image.divide(static_cast<std::uint32_t>(at.image)));
    at.y += at.image - image * static_cast<int>(rows_of_image.value());
    at.image = image;
    return at;
  }
  /// Row m of the product: a channel, and a place in the patch of y.
  struct PatchRow {
    std::uint32_t channel, x, y;
  };
  __device__ PatchRow patch_row(int m) const {
    const auto row = static_cast<std::uint32_t>(m);
    const std::uint32_t tap = channels.divide(row), in_y = patch_width.divide(tap);
    return {row - tap * channels.value(), tap - in_y * patch_width.value(), in_y};
  }
  /// The position in y's plane.
  __device__ std::int64_t position(const Pixel& at, const PatchRow& in) const {
    const std::int64_t row = at.y * patch_height + static_cast<int>(in.y);
    return row * y_width + at.x * static_cast<int>(patch_width.value()) + static_cast<int>(in.x);
  }
  __device__ int rows_of(const Tile& tile) const { return static_cast<int>(rows) - tile.m; }
  __device__ float finished(const Tile& tile, int m, float sum) const {
    return finish(patch_row(tile.m + m).channel, canonical(sum));
  }
  __device__ void store_piece(const Tile& tile, int m, int n, const Piece& piece) const {
    const Pixel at = pixel(tile, n);
    if (!at.inside) return;
    const PatchRow row = patch_row(tile.m + m);
    y.template store<8>(at.image * y_image + position(at, row) * y_step + row.channel, piece);
  }
  __device__ void store_pair(const Tile& tile, int m, int n, float first, float second) const {
    const Pixel to = pixel(tile, n);
    if (tile.m + m >= rows || !to.inside) return;
    const PatchRow row = patch_row(tile.m + m);
    const std::int64_t at =
        tile.split * y_split + to.image * y_image + row.channel * y_step + position(to, row);
    first = finish(row.channel, canonical(first));
    second = finish(row.channel, canonical(second));
    if (whole_pairs) {
      y.template store<2>(at, {{first, second}});
      return;
    }
    y[at] = first;
    if (to.x + 1 < width) y[at + patch_width.value()] = second;
  }
};

/// Sums of shares of k: [share, image, channel, position].
struct ConvShares {
  Global<const float> sums;
  int count = 1;
  std::int64_t share = 0;  ///< elements
  std::int64_t channels = 1, positions = 1;
  WideDivisor image, plane;  ///< elements of each
  FloatFinish finish;

  /// The finished elements of a channel from `at` of a share on.
  template <int kEach>
  __device__ Vector<float, kEach> sum(std::int64_t at) const {
    Vector<float, kEach> total = sums.template load<kEach>(at);
    for (int i = 1; i < count; ++i) {
      const auto next = sums.template load<kEach>(i * share + at);
#pragma unroll
      for (int e = 0; e < kEach; ++e) total[e] += next[e];
    }
    return total;
  }
  template <int kEach>
  __device__ Vector<float, kEach> finished(std::int64_t channel, Vector<float, kEach> total) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) total[e] = finish(channel, canonical(total[e]));
    return total;
  }
};

/// y in planes: a thread per element.
__global__ void add_conv_shares_kernel(ConvShares shares, Global<float> y, std::int64_t y_image) {
  for (auto i = global_thread(); i < shares.share; i += all_threads()) {
    const std::int64_t image = shares.image.divide(i), at = i - image * shares.image.value();
    y[image * y_image + at] = shares.finished(shares.plane.divide(at), shares.sum<1>(i))[0];
  }
}

/// y channels last: a thread owns eight channels of kEach positions.
template <int kEach>
__global__ void add_conv_shares_last_kernel(ConvShares shares, ChannelTiles<kEach> tiles,
                                            Global<BFloat16> y) {
  tiles.write(
      y,
      [&](auto image, auto channel, auto position) {
        return shares.sum<kEach>((image * shares.channels + channel) * shares.positions + position);
      },
      [&](auto channel, const Vector<float, kEach>& total) {
        return shares.finished(channel, total);
      });
}

/// Conv, or ConvTranspose. At stride 1 that is a convolution, too.
template <class Op, bool kTransposed>
class HopperConv : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query.as<Op>(), query);
    const auto sides = sides_of(g, query.inputs[1], kTransposed);
    const GemmSizes sizes = sizes_of(g, sides);
    if (auto verdict = accepts_tensor_core(sizes, query.contract); !verdict.accepted) {
      return verdict;
    }
    if (!has_views(g.window)) return Verdict::no("needs stride 1, or patches that are tiles");
    if (g.groups != 1) return Verdict::no("needs one group");
    if (sides.in_channels < HopperTiles::kDepth || sizes.m < HopperTiles::kRows / 2) {
      return Verdict::no("needs at least 64 channels in and out");
    }
    if (!kTransposed && g.window.makes_tiles() && sides.in_channels % HopperTiles::kDepth != 0) {
      return Verdict::no("needs multiples of 64 channels in patches");
    }
    if (!view_of(g, sides, 0).box(HopperTiles::kColumns, kPair)) {
      return Verdict::no("needs images that a box of 256 positions fits into");
    }
    return Verdict::yes();
  }

  /// In whole steps of channels: behind them lie the channels of others, where it is in a concat.
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    return {.inputs = {reads_channels_last(query.inputs[0], 1, HopperTiles::kDepth)},
            .output = may_be_rounded(query, query.outputs[0])};
  }

  HopperConv(const KernelQuery& query, Device& device)
      : g_(geometry_of(query.as<Op>(), query)),
        sides_(sides_of(g_, query.inputs[1], kTransposed)),
        x_(query.inputs[0], 1, sides_.in_channels, sides_.in_plane()),
        w_span_(span_of(query.inputs[1])),
        y_(query.outputs[0]),
        stored_y_(stored_channels(query.outputs[0])),
        relu_(has_relu(query.as<Op>())),
        view_(view_of(g_, sides_, x_.pitch())),
        phase_(phase_of(device, g_.window)),
        splits_(splits_of()) {}

  std::size_t resident_bytes() const override { return phase_.taps.bytes(); }
  std::size_t scratch_bytes() const override {
    return x_.bytes() + weight_bytes() + static_cast<std::size_t>(partial_sums()) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    if (splits_.count > 1) return run_shares(args);
    const FloatFinish finish(args, sides_.out_channels, relu_);
    if (!stored_y_) {
      const Global<float> y(args.out<float>(0), span_of(y_));
      return run_tiles<HopperTiles::kRows, float>(args,
                                                  {y, y_.outer_stride, sides_.out_plane(), finish});
    }
    const auto pitch = stored_y_->format.pitch;
    const Layout<BFloat16> y = {stored_y_->over(args.outputs[0]), sides_.out_plane() * pitch, pitch,
                                finish};
    has_few_rows() ? run_tiles<kFewRows>(args, y) : run_tiles<HopperTiles::kRows>(args, y);
  }

 private:
  /// Where results are stored: elements from an image, and a plane or position, to the next.
  template <class Out>
  struct Layout {
    Global<Out> y;
    std::int64_t image, step;
    FloatFinish finish;
  };

  template <int kRows, class Out>
  void run_tiles(const KernelArgs& args, const Layout<Out>& y) const {
    const auto pixels = x_.round(args.stream, args.inputs[0], args.scratch);
    auto sides = sides_;
    if (writes_patches(g_.window)) {
      sides.groups = g_.taps();  // the rows of a tap after those of another
      sides.w_group = 1;
    }
    round_taps(args, phase_, sides, w_span_, args.scratch + x_.bytes());
    const auto problem = problem_of<kRows>(args, static_cast<const BFloat16*>(pixels.address()), y);
    launch_hopper_gemm(
        args.stream, kTransposed ? "conv_transpose_hopper" : "conv_hopper", problem,
        problem.row_tiles * problem.across * problem.down * problem.deep * splits_.count);
  }

  /// Blocks divide k.
  void run_shares(const KernelArgs& args) const {
    auto* partial = reinterpret_cast<float*>(args.scratch + x_.bytes() + weight_bytes());
    const Global<float> sums(partial, partial_sums());
    const auto plane = sides_.out_plane(), share = partial_sums() / splits_.count;
    FloatFinish none(args, sides_.out_channels, false);
    none.has_bias = false;
    run_tiles<HopperTiles::kRows, float>(args, {sums, sides_.out_channels * plane, plane, none});
    const ConvShares shares = {.sums = {partial, partial_sums()},
                               .count = splits_.count,
                               .share = share,
                               .channels = sides_.out_channels,
                               .positions = plane,
                               .image = WideDivisor(sides_.out_channels * plane),
                               .plane = WideDivisor(plane),
                               .finish = FloatFinish(args, sides_.out_channels, relu_)};
    if (!stored_y_) {
      launch(args.stream, "add_conv_shares", one_dimension(share), add_conv_shares_kernel, shares,
             Global<float>(args.out<float>(0), span_of(y_)), y_.outer_stride);
      return;
    }
    const auto add = [&]<int kEach>(std::integral_constant<int, kEach>) {
      const auto tiles = stored_y_->tiles<kEach>();
      launch(args.stream, "add_conv_shares_last", tiles.shape(), add_conv_shares_last_kernel<kEach>,
             shares, tiles, stored_y_->over(args.outputs[0]));
    };
    plane % 4 == 0 ? add(std::integral_constant<int, 4>()) : add(std::integral_constant<int, 1>());
  }

  /// Tiles of 64 channels have twice as many positions, which some images are too small for.
  static constexpr int kFewRows = 64;
  bool has_few_rows() const {
    return sizes_of(g_, sides_).m == kFewRows && view_.box(2 * HopperTiles::kColumns, kPair);
  }
  static constexpr int kPair = 1;  ///< pairs of neighbours are stored together

  /// A transposed convolution whose patches of y are tiles: each is a product with one position.
  static bool writes_patches(const Window& w) { return kTransposed && w.makes_tiles(); }
  static PositionView view_of(const ConvGeometry& g, const ConvSides& sides, std::int64_t pitch) {
    if (!kTransposed) return PositionView::of(g.window, g.batch, pitch);
    const bool patches = writes_patches(g.window);
    return PositionView::of_images(sides.in, patches ? sides.in : sides.out, g.batch, pitch);
  }
  static ConvPhase phase_of(Device& device, const Window& w) {
    if (!writes_patches(w)) return std::move(conv_phases(device, w, kTransposed).front());
    return {TapTable(device, {{0, 0}}, {{0, 0}}, 1), w.out[0], w.out[1]};
  }
  static GemmSizes sizes_of(const ConvGeometry& g, const ConvSides& sides) {
    const auto channels = padded(sides.in_channels);
    if (writes_patches(g.window)) {
      return {1, sides.out_channels * g.taps(), g.batch * sides.in_plane(), channels};
    }
    return {1, sides.out_channels, g.batch * sides.out_plane(), channels * g.taps()};
  }

  std::size_t weight_bytes() const {
    const auto sizes = sizes_of(g_, sides_);
    return whole_lines(sizes.m * sizes.k);
  }

  /// A tile that is not divided is stored in about three steps.
  Splits splits_of() const {
    constexpr std::int64_t kStoring = 3;
    const auto box = view_.box(HopperTiles::kColumns, kPair).value();
    const auto tiles = ceil_div(sizes_of(g_, sides_).m, HopperTiles::kRows) * view_.boxes(box);
    return divide_steps(tiles, phase_.taps.size() * channel_steps(), kStoring);
  }
  std::int64_t channel_steps() const {
    return ceil_div(padded(sides_.in_channels), HopperTiles::kDepth);
  }
  std::int64_t partial_sums() const {
    if (splits_.count == 1) return 0;
    return splits_.count * g_.batch * sides_.out_channels * sides_.out_plane();
  }

  template <int kRows, class Out>
  HopperConvProblem<Out, kRows> problem_of(const KernelArgs& args, const BFloat16* pixels,
                                           const Layout<Out>& y) const {
    const auto channels = padded(sides_.in_channels), rows = sizes_of(g_, sides_).m;
    const auto taps = phase_.taps.size();
    const auto box = view_.box(HopperTilesOf<kRows>::kColumns, kPair).value();
    const bool patches = writes_patches(g_.window);
    const auto* weights = reinterpret_cast<const BFloat16*>(args.scratch + x_.bytes());
    return {.weights = make_tensor_map(weights, {channels, taps, rows, 1},
                                       {HopperTiles::kDepth, 1, kRows, 1}),
            .pixels = view_.map_of_x(pixels, box),
            .taps = phase_.taps.global(),
            .tap_count = static_cast<int>(taps),
            .channel_steps = static_cast<int>(channel_steps()),
            .pixel_step = view_.pixel_step,
            .channel_step = view_.channel_step,
            .box_width = box.width,
            .box_height = box.height,
            .box_images = box.images,
            .rows = rows,
            .width = view_.width,
            .height = view_.height,
            .images = view_.images,
            .rows_of_image = Divisor(view_.rows_of_image),
            .row_tiles = ceil_div(rows, kRows),
            .across = box.across(view_.width),
            .down = box.down(view_.height),
            .deep = box.deep(view_.images),
            .split_steps = splits_.steps,
            .y = y.y,
            .y_split = partial_sums() / splits_.count,
            .y_image = y.image,
            .y_step = y.step,
            .whole_pairs = !patches && sides_.out[1] % 2 == 0 && y.image % 2 == 0,
            .channels = Divisor(sides_.out_channels),
            .patch_width = Divisor(patches ? g_.window.stride[1] : 1),
            .patch_height = patches ? static_cast<int>(g_.window.stride[0]) : 1,
            .y_width = sides_.out[1],
            .finish = y.finish};
  }

  ConvGeometry g_;
  ConvSides sides_;
  RoundedImages x_;
  std::int64_t w_span_;
  Operand y_;
  std::optional<StoredChannels> stored_y_;
  bool relu_;
  PositionView view_;
  ConvPhase phase_;
  Splits splits_;
};

}  // namespace

void add_hopper_conv_kernels(KernelList& list) {
  add_for_wgmma(list, channels_last_entry<HopperConv<Conv, false>>(Conv::kName, "hopper"));
  add_for_wgmma(
      list, channels_last_entry<HopperConv<ConvTranspose, true>>(ConvTranspose::kName, "hopper"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
