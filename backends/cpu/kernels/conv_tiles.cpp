// Convolutions of stride 1, and those whose windows tile the larger image, on the tile unit
// (backends/cpu/tiles), under bf16: weights [O, K] x patches [K, positions]. A thread lays out a
// band of rows of x as planes of channel pairs with the padding; a tap is then an offset within
// these planes, and the tile loads patches where they lie. Positions run on from row to row: those
// between two rows are computed and left out.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/conv_stride_one.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/tiles/pack_rows.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/base/float16.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace triptych::cpu {
namespace {

// Words of a thread's band, which stay in its second cache.
constexpr std::int64_t kBandWords = 192 * 1024;
constexpr std::int64_t kWordBytes = sizeof(TileWord);
constexpr std::int64_t kBlock = kMostTileBlocks * kTileRows;
static_assert(kTileRows == kTileColumns);
// Fewer rows cost too many rows of halo.
constexpr std::int64_t kFewestRows = 8;
constexpr std::int64_t kTasksPerThread = 2;

const std::byte* bytes(const TileWord* words) { return reinterpret_cast<const std::byte*>(words); }

class ConvTiles : public Kernel {
 public:
  ConvTiles(const KernelQuery& query, Device& device)
      : geometry_(geometry_of_either(query)),
        widens_(tiles_larger_image(query) && op_cast<ConvTranspose>(query.op) != nullptr),
        narrows_(tiles_larger_image(query) && !widens_),
        conv_(widens_ || narrows_ ? pointwise(query) : stride_one_conv(query)),
        columns_(conv_.out[1]),
        x_stride_(query.inputs[0].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        threads_(device_threads(device)),
        kind_(tile_unit_kind()),
        pitch_(columns_ + (conv_.kernel[1] - 1) * conv_.dilation[1]),
        steps_per_tap_(ceil_div(pairs(), kTileDepth)),
        depth_(ceil_div(pairs(), steps_per_tap_)),
        steps_(steps_per_tap_ * conv_.taps()),
        row_blocks_(ceil_div(conv_.out_channels, kTileRows)),
        weights_(
            row_blocks_ * kTileRows * steps_ * depth_,
            [this](const float* from, TileWord* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {
    cut_bands();
    for (std::int64_t step = 0; step < steps_; ++step) {
      single_weight_steps_.push_back(step * kTileRows * depth_ * kWordBytes);
      double_weight_steps_.push_back(2 * single_weight_steps_.back());
    }
    for (std::int64_t s = 0; s < steps_per_tap_; ++s)
      for (std::int64_t ky = 0; ky < conv_.kernel[0]; ++ky)
        for (std::int64_t kx = 0; kx < conv_.kernel[1]; ++kx)
          patch_steps_.push_back(
              kWordBytes *
              (s * depth_ * plane_ + ky * conv_.dilation[0] * pitch_ + kx * conv_.dilation[1]));
  }

  static Verdict accepts(const KernelQuery& query) {
    if (query.contract != Contract::Bf16) return Verdict::no("computes under bf16 only");
    const auto g = geometry_of_either(query);
    if (g.groups != 1) return Verdict::no("has several groups");
    const auto& w = g.window;
    if ((w.stride[0] != 1 || w.stride[1] != 1) && !tiles_larger_image(query))
      return Verdict::no("has another stride than 1");
    return accepts_image_gemm(query);
  }

  static Verdict worth(const KernelQuery& query) {
    if (!tile_unit_missing().empty()) return Verdict::no(tile_unit_missing());
    const auto g = geometry_of_either(query);
    const auto fewest = std::min(g.in_channels, g.out_channels);
    return fewest >= 8 ? Verdict::yes() : Verdict::no("fills tiles badly with so few channels");
  }

  std::size_t scratch_bytes() const override {
    return weights_.scratch_bytes() +
           static_cast<std::size_t>(checked_mul(threads_ * band_words(), sizeof(TileWord)));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* weights = weights_.ready(args.in<float>(1), args.scratch);
    auto* bands = reinterpret_cast<TileWord*>(args.scratch + weights_.scratch_bytes());
    parallel_for(bands_ * groups_, 1, [&](std::int64_t begin, std::int64_t end) {
      TileWord* band = bands + thread_index() * band_words();
      const TileUnit unit(depth_, kind_);
      for (auto task = begin; task < end; ++task) {
        const auto image = task / groups_ / bands_per_image_;
        const auto first = task / groups_ % bands_per_image_ * band_rows_;
        const Range rows = {first, std::min(first + band_rows_, conv_.out[0])};
        // Neighbouring tasks of a thread share the band.
        if (task == begin || task % groups_ == 0)
          pack_band(args.in<float>(0) + image * x_stride_, rows, band);
        const auto group = task % groups_;
        multiply(args, unit, weights, band, image, rows, group);
      }
    });
  }

 private:
  /// Each tap of a channel of the larger image is a channel of its own then, of the smaller size.
  static bool tiles_larger_image(const KernelQuery& query) {
    return geometry_of_either(query).window.makes_tiles();
  }

  /// A convolution by such windows as a product of channels.
  static StrideOneConv pointwise(const KernelQuery& query) {
    const auto g = geometry_of_either(query);
    const auto& w = g.window;
    StrideOneConv conv = {
        .batch = g.batch, .in = {w.out[0], w.out[1]}, .out = {w.out[0], w.out[1]}};
    if (const auto* narrowing = op_cast<Conv>(query.op)) {
      conv.in_channels = g.in_channels * g.taps();
      conv.out_channels = g.out_channels;
      conv.out_stride = query.inputs[1].outer_stride;
      conv.in_stride = 1;
      conv.relu = has_relu(*narrowing);
    } else {
      conv.in_channels = g.out_channels;
      conv.out_channels = g.in_channels * g.taps();
      conv.out_stride = 1;
      conv.in_stride = query.inputs[1].outer_stride;
      conv.relu = has_relu(query.as<ConvTranspose>());
    }
    return conv;
  }

  std::int64_t pairs() const { return ceil_div(conv_.in_channels, std::int64_t{2}); }
  std::int64_t halo() const { return (conv_.kernel[0] - 1) * conv_.dilation[0]; }
  std::int64_t planes() const { return steps_per_tap_ * depth_; }
  std::int64_t band_words() const { return planes() * plane_; }

  void cut_bands() {
    const auto row_words = planes() * pitch_;
    const auto cached = kBandWords / row_words - halo();
    const auto wanted = ceil_div(conv_.out[0] * conv_.batch, kTasksPerThread * threads_);
    band_rows_ =
        std::clamp(std::min(cached, std::max(wanted, kFewestRows)), std::int64_t{1}, conv_.out[0]);
    bands_per_image_ = ceil_div(conv_.out[0], band_rows_);
    band_rows_ = ceil_div(conv_.out[0], bands_per_image_);
    bands_ = conv_.batch * bands_per_image_;
    groups_ = bands_ >= kTasksPerThread * threads_
                  ? 1
                  : std::min(ceil_div(row_blocks_, kMostTileBlocks),
                             ceil_div(kTasksPerThread * threads_, bands_));
    // The last positions may lie behind the rows. Planes an odd number of cache lines apart share
    // few cache sets.
    const auto words = checked_mul(band_rows_ + halo(), pitch_) +
                       (conv_.kernel[1] - 1) * conv_.dilation[1] + kBlock;
    plane_ = round_up(words, 16) | 16;
  }

  /// [two row blocks][step][row block][row][word].
  void pack_weights(const float* from, TileWord* to) const {
    const auto blocks = ceil_div(row_blocks_, kMostTileBlocks);
    parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto block = begin; block < end; ++block) {
        const auto first = block * kMostTileBlocks;
        const auto height = std::min(kMostTileBlocks, row_blocks_ - first);
        pack_weight_blocks(from, first * kTileRows, height,
                           to + first * kTileRows * steps_ * depth_);
      }
    });
  }

  void pack_weight_blocks(const float* from, std::int64_t first_row, std::int64_t height,
                          TileWord* to) const {
    const auto taps = conv_.taps(), step_words = height * kTileRows * depth_;
    std::fill_n(to, steps_ * step_words, TileWord{0});
    const auto rows = std::min(height * kTileRows, conv_.out_channels - first_row);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < conv_.in_channels; ++c) {
        const float* w = from + (first_row + r) * conv_.out_stride + c * conv_.in_stride;
        const auto pair = c / 2;
        TileWord* word = to + pair / depth_ * taps * step_words + r * depth_ + pair % depth_;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const float value = w[conv_.flipped ? taps - 1 - tap : tap];
          word[tap * step_words] |= TileWord{bf16_bits(value)} << (c % 2 * 16);
        }
      }
    }
  }

  /// The first element of a channel, as multiplied.
  const float* channel_of(const float* x, std::int64_t channel) const {
    if (!narrows_) return x + channel * conv_.in[0] * conv_.in[1];
    const auto& w = geometry_.window;
    const auto tap = channel % w.taps();
    return x + channel / w.taps() * geometry_.in_plane() + tap / w.kernel[1] * w.in[1] +
           tap % w.kernel[1];
  }

  /// The rows of x that the output rows `rows` read, rounded and padded, as planes of pairs.
  void pack_band(const float* x, Range rows, TileWord* band) const {
    const auto count = rows.size() + halo();
    const auto column_step = narrows_ ? geometry_.window.stride[1] : 1;
    const auto row_step =
        narrows_ ? geometry_.window.stride[0] * geometry_.window.in[1] : conv_.in[1];
    const PaddedRow layout = {conv_.in[1], conv_.pad[1], pitch_};
    for (std::int64_t pair = 0; pair < planes(); ++pair) {
      TileWord* plane = band + pair * plane_;
      const bool used = 2 * pair < conv_.in_channels;
      const float* even = channel_of(x, used ? 2 * pair : 0);
      const bool whole = 2 * pair + 1 < conv_.in_channels;
      const float* odd = channel_of(x, whole ? 2 * pair + 1 : 0);
      for (std::int64_t r = 0; r < count; ++r) {
        const auto row = rows.begin + r - conv_.pad[0];
        layout.write(!used || row < 0 || row >= conv_.in[0], plane + r * pitch_,
                     [&](std::int64_t first, std::int64_t length, TileWord* to) {
                       const auto at = row * row_step + first * column_step;
                       pack_pairs(even + at, whole ? odd + at : nullptr, column_step, length, to);
                     });
      }
      std::fill_n(plane + count * pitch_, plane_ - count * pitch_, TileWord{0});
    }
  }

  /// The output channels of `group` in these rows.
  void multiply(const KernelArgs& args, const TileUnit& unit, const TileWord* weights,
                const TileWord* band, std::int64_t image, Range rows, std::int64_t group) const {
    const auto blocks = ceil_div(row_blocks_, kMostTileBlocks);
    const auto positions = rows.size() * pitch_;
    for (auto block = group * blocks / groups_; block < (group + 1) * blocks / groups_; ++block) {
      const auto first = block * kMostTileBlocks;
      alignas(64) float sums[kBlock * kBlock];
      const auto height = std::min(kMostTileBlocks, row_blocks_ - first);
      const auto& weight_steps = height == 1 ? single_weight_steps_ : double_weight_steps_;
      TileProduct product = {.a = {.data = bytes(weights + first * kTileRows * steps_ * depth_),
                                   .steps = weight_steps,
                                   .line = depth_ * kWordBytes,
                                   .block = kTileRows * depth_ * kWordBytes},
                             .b = {.steps = patch_steps_,
                                   .line = plane_ * kWordBytes,
                                   .block = kTileColumns * kWordBytes},
                             .sums = sums,
                             .sums_stride = kBlock,
                             .row_blocks = height};
      const Range channels = {first * kTileRows, std::min((first + product.row_blocks) * kTileRows,
                                                          conv_.out_channels)};
      for (std::int64_t p = 0; p < positions; p += kBlock) {
        product.b.data = bytes(band + p);
        product.column_blocks = positions - p > kTileColumns ? 2 : 1;
        unit.multiply(product);
        store(args, image, {channels, {p, std::min(p + kBlock, positions)}, sums, kBlock}, rows);
      }
    }
  }

  /// A block of sums whose columns are positions of the band.
  void store(const KernelArgs& args, std::int64_t image, const GemmBlock& sums, Range rows) const {
    const ChannelStore<FloatFinish> store = {
        .y = args.out<float>(0) + image * y_stride_,
        .plane = conv_.out[0] * columns_ * (widens_ ? geometry_.taps() : 1),
        .finish = {args, 0, conv_.relu}};
    for (auto p = sums.n.begin; p < sums.n.end;) {
      const auto row = rows.begin + p / pitch_, column = p % pitch_;
      const auto end = std::min(sums.n.end, p + pitch_ - column);
      const auto first = row * columns_ + column;
      const auto count = std::min(end - p, columns_ - column);
      const GemmBlock piece = {
          sums.m, {first, first + count}, sums.values + p - sums.n.begin, sums.stride};
      if (widens_) {
        store.store_tiles(geometry_.window.kernel, columns_, piece);
      } else if (count > 0) {
        store.store(piece);
      }
      p = end;
    }
  }

  ConvGeometry geometry_;
  bool widens_;           ///< each tap of a channel of y is a channel of its own
  bool narrows_;          ///< so it is with x
  StrideOneConv conv_;    ///< as multiplied
  std::int64_t columns_;  ///< positions of a row
  std::int64_t x_stride_;
  std::int64_t y_stride_;
  std::int64_t threads_;
  TileUnit::Kind kind_;
  std::int64_t pitch_;          ///< words of a padded row
  std::int64_t steps_per_tap_;  ///< that together take all channels
  std::int64_t depth_;          ///< pairs of channels in a step
  std::int64_t steps_;
  std::int64_t row_blocks_;
  std::int64_t band_rows_ = 1, bands_per_image_ = 1, bands_ = 1;
  std::int64_t groups_ = 1;                ///< parts of the output channels, tasks of their own
  std::int64_t plane_ = 0;                 ///< words of a plane of pairs in a band
  std::vector<std::int64_t> patch_steps_;  ///< bytes, as TileOperand::steps
  std::vector<std::int64_t> single_weight_steps_, double_weight_steps_;  ///< of one or two blocks
  BasicPackedOperand<float, TileWord> weights_;
};

}  // namespace

void add_conv_tiles_kernels(KernelList& list) {
  for (const auto op : {Conv::kName, ConvTranspose::kName}) {
    list.push_back(kernel_entry<ConvTiles>(op, "tiles"));
    list.back().worth = &ConvTiles::worth;
  }
}

}  // namespace triptych::cpu
