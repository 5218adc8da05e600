// Convolutions of stride 1, and transposed ones that tile their output, on the tile unit
// (backends/cpu/tiles), under bf16: weights [O, K] x patches [K, positions]. A thread lays out a
// band of rows of x as planes of channel pairs with the padding; a tap is then an offset within
// these planes, and the tile loads patches where they lie. Positions run on from row to row: those
// between two rows are computed and left out.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/conv_stride_one.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/tiles/tile_unit.h"
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

/// Rounds two rows to bfloat16, side by side; `odd` may be missing.
void pack_row(const float* even, const float* odd, std::int64_t count, TileWord* to) {
  const auto upper = [](float value) { return std::bit_cast<TileWord>(round_to_bf16(value)); };
  simd([=] {
    if (odd == nullptr) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = upper(even[i]) >> 16;
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = upper(even[i]) >> 16 | upper(odd[i]);
    }
  });
}

const std::byte* bytes(const TileWord* words) { return reinterpret_cast<const std::byte*>(words); }

class ConvTiles : public Kernel {
 public:
  ConvTiles(const KernelQuery& query, Device& device)
      : widening_(widening(query)),
        conv_(widening_ ? pointwise(query) : stride_one_conv(query)),
        out_plane_(0),
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
    if (widening_) std::ranges::copy(geometry_of_either(query).window.kernel, tile_);
    out_plane_ = conv_.out[0] * conv_.out[1] * tile_[0] * tile_[1];
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
    if ((w.stride[0] != 1 || w.stride[1] != 1) && !widening(query))
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
  /// A transposed convolution whose taps tile the output: a product with a row per channel and tap.
  static bool widening(const KernelQuery& query) {
    return op_cast<ConvTranspose>(query.op) != nullptr &&
           geometry_of_either(query).window.makes_tiles();
  }

  static StrideOneConv pointwise(const KernelQuery& query) {
    const auto g = geometry_of_either(query);
    const auto& w = g.window;
    return {.batch = g.batch,
            .in_channels = g.out_channels,
            .out_channels = g.in_channels * g.taps(),
            .in = {w.out[0], w.out[1]},
            .out = {w.out[0], w.out[1]},
            .out_stride = 1,
            .in_stride = query.inputs[1].outer_stride,
            .relu = has_relu(query.as<ConvTranspose>())};
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

  /// The rows of x that the output rows `rows` read, rounded and padded, as planes of pairs.
  void pack_band(const float* x, Range rows, TileWord* band) const {
    const auto in_plane = conv_.in[0] * conv_.in[1];
    for (std::int64_t pair = 0; pair < planes(); ++pair) {
      TileWord* plane = band + pair * plane_;
      if (2 * pair >= conv_.in_channels) {
        std::fill_n(plane, plane_, TileWord{0});
        continue;
      }
      const float* even = x + 2 * pair * in_plane;
      const float* odd = 2 * pair + 1 < conv_.in_channels ? even + in_plane : nullptr;
      const auto count = rows.size() + halo();
      for (std::int64_t r = 0; r < count; ++r) {
        const auto row = rows.begin + r - conv_.pad[0];
        pack_padded_row(even, odd, row, plane + r * pitch_);
      }
      std::fill_n(plane + count * pitch_, plane_ - count * pitch_, TileWord{0});
    }
  }

  void pack_padded_row(const float* even, const float* odd, std::int64_t row, TileWord* to) const {
    const bool inside = row >= 0 && row < conv_.in[0];
    const auto begin = std::clamp<std::int64_t>(conv_.pad[1], 0, pitch_);
    const auto end = inside ? std::clamp(conv_.in[1] + conv_.pad[1], begin, pitch_) : begin;
    std::fill_n(to, begin, TileWord{0});
    const auto from = row * conv_.in[1] + begin - conv_.pad[1];
    if (end > begin)
      pack_row(even + from, odd == nullptr ? nullptr : odd + from, end - begin, to + begin);
    std::fill_n(to + end, pitch_ - end, TileWord{0});
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
    const ChannelStore<FloatFinish> store = {.y = args.out<float>(0) + image * y_stride_,
                                             .plane = out_plane_,
                                             .finish = {args, 0, conv_.relu}};
    for (auto p = sums.n.begin; p < sums.n.end;) {
      const auto row = rows.begin + p / pitch_, column = p % pitch_;
      const auto end = std::min(sums.n.end, p + pitch_ - column);
      const auto first = row * columns_ + column;
      const auto count = std::min(end - p, columns_ - column);
      const GemmBlock piece = {
          sums.m, {first, first + count}, sums.values + p - sums.n.begin, sums.stride};
      if (widening_) {
        store.store_tiles(tile_, columns_, piece);
      } else if (count > 0) {
        store.store(piece);
      }
      p = end;
    }
  }

  bool widening_;
  StrideOneConv conv_;
  std::int64_t tile_[2] = {1,
                           1};  ///< outputs of a position of a transposed convolution that widens
  std::int64_t out_plane_;      ///< of y
  std::int64_t columns_;        ///< positions of a row
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
