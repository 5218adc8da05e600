// Convolutions of stride 1, and those with windows that tile the larger image, on the tile unit
// (backends/cpu/tiles), under bf16 and of int8: patches [positions, K] x weights [K, O]. A thread
// lays out a band of rows of x with the padding, channels last, two or four channels in a word. A
// tap is then an offset within the band, and the tile loads patches where they lie. Positions run
// on from row to row: those between two rows are computed and left out. Images that are stored
// channels last are such bands already.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/conv_stride_one.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/tiles/pack_rows.h"
#include "backends/cpu/tiles/stored_images.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/base/float16.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/quantized_conv.h"

namespace triptych::cpu {
namespace {

// Words of a thread's band, which stay in its second cache.
constexpr std::int64_t kBandWords = 192 * 1024;
// A band of fewer rows packs too much halo.
constexpr std::int64_t kFewestRows = 8;
constexpr std::int64_t kTasksPerThread = 2;
// Blocks of positions, and most bytes of weights, that the first cache keeps together.
constexpr std::int64_t kPanelBlocks = 4;
constexpr std::int64_t kPanelBytes = 16 * 1024;

const std::byte* bytes(const TileWord* words) { return reinterpret_cast<const std::byte*>(words); }

/// The layout of elements in words.
template <class Element>
struct Words;

template <>
struct Words<float> : TileElements<float> {
  using Stored = std::uint16_t;
  static constexpr int kBits = 16;
  static TileWord bits(float value) { return bf16_bits(value); }
  static void pack(const std::array<const float*, 2>& rows, std::int64_t stride, std::int64_t count,
                   TileWord* to) {
    pack_pairs(rows[0], rows[1], stride, count, to);
  }
};

template <>
struct Words<std::int8_t> : TileElements<std::int8_t> {
  using Stored = std::int8_t;
  static constexpr int kBits = 8;
  static TileWord bits(std::int8_t value) { return static_cast<std::uint8_t>(value); }
  static void pack(const std::array<const std::int8_t*, 4>& rows, std::int64_t stride,
                   std::int64_t count, TileWord* to) {
    pack_quads(rows, stride, count, to);
  }
};

template <class Op>
ConvGeometry geometry_of(const KernelQuery& query) {
  return query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
}

template <class Op>
inline constexpr bool kTransposed =
    std::is_same_v<Op, ConvTranspose> || std::is_same_v<Op, QuantizedConvTranspose>;

/// As it is multiplied.
template <class Op>
StrideOneConv conv_of(const KernelQuery& query) {
  const auto g = geometry_of<Op>(query);
  const auto w_stride = query.inputs[1].outer_stride;
  return g.window.makes_tiles() ? conv_of_tiles(g, kTransposed<Op>, w_stride)
                                : stride_one_conv(g, kTransposed<Op>, w_stride);
}

template <class Op, class Arithmetic>
class ConvTiles : public Kernel {
  using Element = typename Arithmetic::Element;
  using Finish = typename Arithmetic::Finish;
  using Sum = typename Finish::Sum;
  using Block = BasicGemmBlock<Sum>;
  using Words = cpu::Words<Element>;

 public:
  ConvTiles(const KernelQuery& query, Device& device)
      : geometry_(geometry_of<Op>(query)),
        relu_(has_relu(query.as<Op>())),
        tiled_(geometry_.window.makes_tiles()),
        conv_(conv_of<Op>(query)),
        columns_(conv_.out[1]),
        stored_x_(stored_images(query.inputs[0])),
        stored_y_(stored_images(query.outputs[0])),
        x_stride_(query.inputs[0].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        threads_(device_threads(device)),
        kind_(tile_unit_kind()),
        pitch_(stored_x_ ? stored_x_->row_positions() : conv_.pitch()),
        steps_(conv_, ceil_div(conv_.in_channels, Words::kInWord),
               !stored_x_ || stored_x_->pitch() == conv_.in_channels),
        line_(stored_x_ ? stored_x_->pitch() * stored_x_->element_bytes()
                        : steps_.position_words() * kTileWordBytes),
        out_blocks_(ceil_div(conv_.out_channels, kTileColumns)),
        weights_(
            out_blocks_ * kTileColumns * steps_.count() * steps_.depth(),
            [this](const Element* from, TileWord* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {
    cut_bands();
    for (std::int64_t step = 0; step < steps_.count(); ++step) {
      single_weight_steps_.push_back(step * kTileColumns * steps_.depth() * kTileWordBytes);
      double_weight_steps_.push_back(2 * single_weight_steps_.back());
    }
    const auto plane = stored_x_ ? steps_.position_words() : plane_;
    patch_steps_ = steps_.offsets(line_, pitch_, plane * kTileWordBytes);
  }

  std::size_t scratch_bytes() const override {
    return weights_.scratch_bytes() +
           static_cast<std::size_t>(checked_mul(threads_ * band_words(), sizeof(TileWord)));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* weights = weights_.ready(args.in<Element>(1), args.scratch);
    auto* bands = reinterpret_cast<TileWord*>(args.scratch + weights_.scratch_bytes());
    parallel_for(bands_ * groups_, 1, [&](std::int64_t begin, std::int64_t end) {
      TileWord* band = bands + thread_index() * band_words();
      const TileUnit unit(Words::kNumbers, steps_.depth(), kind_);
      for (auto task = begin; task < end; ++task) {
        const auto image = task / groups_ / bands_per_image_;
        const auto first = task / groups_ % bands_per_image_ * band_rows_;
        const Range rows = {first, std::min(first + band_rows_, conv_.out[0])};
        const auto group = task % groups_;
        // Neighbouring tasks of a thread share the band.
        if (!stored_x_ && (task == begin || group == 0))
          pack_band(args.in<Element>(0) + image * x_stride_, rows, band);
        const auto* patches = stored_x_ ? stored_patches(args, image, rows.begin) : bytes(band);
        multiply(args, unit, weights, patches, image, rows, group);
        if (stored_y_ && group == 0) clear_around(args, image, rows);
      }
    });
  }

 private:
  bool narrows() const { return tiled_ && !kTransposed<Op>; }
  bool widens() const { return tiled_ && kTransposed<Op>; }
  static std::optional<StoredImages> stored_images(const Operand& operand) {
    return operand.channels_last ? std::optional<StoredImages>(operand) : std::nullopt;
  }

  /// A thread's band, and one of its rows.
  std::int64_t band_words() const {
    if (stored_x_) return 0;
    return checked_add(steps_.planes() * plane_,
                       round_up(steps_.position_words() * pitch_, kAlignment / kTileWordBytes));
  }

  void cut_bands() {
    const auto row_words = steps_.planes() * steps_.position_words() * pitch_;
    const auto cached = kBandWords / row_words - conv_.halo();
    const auto wanted = ceil_div(conv_.out[0] * conv_.batch, kTasksPerThread * threads_);
    band_rows_ =
        std::clamp(std::min(cached, std::max(wanted, kFewestRows)), std::int64_t{1}, conv_.out[0]);
    bands_per_image_ = ceil_div(conv_.out[0], band_rows_);
    band_rows_ = ceil_div(conv_.out[0], bands_per_image_);
    bands_ = conv_.batch * bands_per_image_;
    groups_ = bands_ >= kTasksPerThread * threads_
                  ? 1
                  : std::min(ceil_div(out_blocks_, kMostTileBlocks),
                             ceil_div(kTasksPerThread * threads_, bands_));
    // The last positions may lie behind the rows.
    plane_ = checked_mul(steps_.position_words(), checked_mul(band_rows_ + conv_.halo(), pitch_) +
                                                      (conv_.kernel[1] - 1) * conv_.dilation[1] +
                                                      kTileBlock);
    plane_ = round_up(plane_, kAlignment / kTileWordBytes);
  }

  /// [two blocks of channels][step][block][word of k][channel].
  void pack_weights(const Element* from, TileWord* to) const {
    const auto pairs = ceil_div(out_blocks_, kMostTileBlocks);
    parallel_for(pairs, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto pair = begin; pair < end; ++pair) {
        const auto first = pair * kMostTileBlocks;
        pack_weight_blocks(from, first * kTileColumns,
                           std::min(kMostTileBlocks, out_blocks_ - first),
                           to + first * kTileColumns * steps_.count() * steps_.depth());
      }
    });
  }

  void pack_weight_blocks(const Element* from, std::int64_t first, std::int64_t blocks,
                          TileWord* to) const {
    const auto taps = conv_.taps(), block_words = steps_.depth() * kTileColumns;
    const auto step_words = blocks * block_words;
    std::fill_n(to, steps_.count() * step_words, TileWord{0});
    const auto channels = std::min(blocks * kTileColumns, conv_.out_channels - first);
    for (std::int64_t o = 0; o < channels; ++o) {
      for (std::int64_t c = 0; c < conv_.in_channels; ++c) {
        const Element* w = from + weight_of(first + o) * conv_.out_stride + c * conv_.in_stride;
        const auto k = c / Words::kInWord;
        const auto bit = c % Words::kInWord * Words::kBits;
        TileWord* column = to + o / kTileColumns * block_words + o % kTileColumns;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const auto [step, line] = steps_.place_of(tap, k);
          column[step * step_words + line * kTileColumns] |=
              Words::bits(w[conv_.flipped ? taps - 1 - tap : tap]) << bit;
        }
      }
    }
  }

  /// The channel of the weights that a column of the product has. Where y is stored channels last,
  /// the channels of a tap stand together.
  std::int64_t weight_of(std::int64_t column) const {
    if (!stored_y_ || !widens()) return column;
    return column % stored_y_->channels() * geometry_.taps() + column / stored_y_->channels();
  }

  const std::byte* stored_patches(const KernelArgs& args, std::int64_t image,
                                  std::int64_t row) const {
    return args.inputs[0] + stored_x_->element(image, row - conv_.pad[0], -conv_.pad[1]) *
                                stored_x_->element_bytes();
  }

  void clear_around(const KernelArgs& args, std::int64_t image, Range rows) const {
    const auto height = widens() ? geometry_.window.kernel[0] : 1;
    stored_y_->clear_around(args.outputs[0], image, {rows.begin * height, rows.end * height});
  }

  /// The first element of a channel, as multiplied. nullptr behind the last.
  const Element* channel_of(const Element* x, std::int64_t channel) const {
    if (channel >= conv_.in_channels) return nullptr;
    if (!narrows()) return x + channel * conv_.in[0] * conv_.in[1];
    const auto& w = geometry_.window;
    const auto tap = channel % w.taps();
    return x + channel / w.taps() * geometry_.in_plane() + tap / w.kernel[1] * w.in[1] +
           tap % w.kernel[1];
  }

  /// The rows of x that the output rows `rows` read, padded: [plane][position][word].
  void pack_band(const Element* x, Range rows, TileWord* band) const {
    const auto count = rows.size() + conv_.halo(), words = steps_.position_words();
    TileWord* row_words = band + steps_.planes() * plane_;
    for (std::int64_t plane = 0; plane < steps_.planes(); ++plane) {
      TileWord* to = band + plane * plane_;
      for (std::int64_t r = 0; r < count; ++r) {
        pack_row(x, plane * words, rows.begin + r - conv_.pad[0], row_words);
        transpose_matrix({reinterpret_cast<const float*>(row_words), pitch_, words, pitch_},
                         reinterpret_cast<float*>(to + r * pitch_ * words), words, Rounding::None);
      }
      const auto used = count * pitch_ * words;
      std::fill_n(to + used, plane_ - used, TileWord{0});
    }
  }

  /// Words first_word, ... of a row of x: [word][column].
  void pack_row(const Element* x, std::int64_t first_word, std::int64_t row, TileWord* to) const {
    const auto& w = geometry_.window;
    const auto column_step = narrows() ? w.stride[1] : 1;
    const auto row_step = narrows() ? w.stride[0] * w.in[1] : conv_.in[1];
    const PaddedRow layout = {conv_.in[1], conv_.pad[1], pitch_};
    for (std::int64_t k = 0; k < steps_.position_words(); ++k) {
      std::array<const Element*, Words::kInWord> channels;
      for (std::int64_t i = 0; i < Words::kInWord; ++i)
        channels[static_cast<std::size_t>(i)] =
            channel_of(x, (first_word + k) * Words::kInWord + i);
      const bool outside = channels[0] == nullptr || row < 0 || row >= conv_.in[0];
      layout.write(outside, to + k * pitch_,
                   [&](std::int64_t first, std::int64_t count, TileWord* at) {
                     auto from = channels;
                     for (auto& channel : from)
                       if (channel != nullptr) channel += row * row_step + first * column_step;
                     Words::pack(from, column_step, count, at);
                   });
    }
  }

  /// The output channels of `group` in these rows.
  void multiply(const KernelArgs& args, const TileUnit& unit, const TileWord* weights,
                const std::byte* patches, std::int64_t image, Range rows,
                std::int64_t group) const {
    const auto pairs = ceil_div(out_blocks_, kMostTileBlocks);
    const auto positions = rows.size() * pitch_;
    for (auto pair = group * pairs / groups_; pair < (group + 1) * pairs / groups_; ++pair) {
      const auto first = pair * kMostTileBlocks;
      const auto blocks = std::min(kMostTileBlocks, out_blocks_ - first);
      const Range channels = {first * kTileColumns,
                              std::min((first + blocks) * kTileColumns, conv_.out_channels)};
      alignas(64) Sum sums[kPanelBlocks * kTileBlock * kTileBlock];
      TileProduct product = {
          .a = {.line = line_, .block = kTileRows * line_},
          .b = {.data = bytes(weights + first * kTileColumns * steps_.count() * steps_.depth()),
                .line = kTileColumns * kTileWordBytes,
                .block = kTileColumns * steps_.depth() * kTileWordBytes},
          .sums_stride = kTileBlock,
          .column_blocks = blocks};
      for (std::int64_t p = 0; p < positions; p += kPanelBlocks * kTileBlock) {
        const Range panel = {p, std::min(p + kPanelBlocks * kTileBlock, positions)};
        multiply_panel(unit, patches, panel, product, sums);
        for (auto begin = p; begin < panel.end; begin += kTileBlock) {
          const Range block = {begin, std::min(begin + kTileBlock, positions)};
          finish(args, image, {block, channels, sums + (begin - p) * kTileBlock, kTileBlock}, rows);
        }
      }
    }
  }

  /// The sums of these positions: a few steps for all of them, so that the first cache keeps the
  /// weights of those, then the next.
  void multiply_panel(const TileUnit& unit, const std::byte* patches, Range panel,
                      TileProduct product, Sum* sums) const {
    const auto& weight_steps =
        product.column_blocks == 1 ? single_weight_steps_ : double_weight_steps_;
    const auto parts =
        ceil_div(steps_.count() * product.column_blocks * product.b.block, kPanelBytes);
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto first = static_cast<std::size_t>(part * steps_.count() / parts);
      const auto count = static_cast<std::size_t>((part + 1) * steps_.count() / parts) - first;
      product.a.steps = std::span(patch_steps_).subspan(first, count);
      product.b.steps = std::span(weight_steps).subspan(first, count);
      product.accumulate = part > 0;
      for (auto p = panel.begin; p < panel.end; p += kTileBlock) {
        product.a.data = patches + p * line_;
        product.sums = sums + (p - panel.begin) * kTileBlock;
        product.row_blocks = panel.end - p > kTileRows ? 2 : 1;
        unit.multiply(product);
      }
    }
  }

  /// A block of sums whose rows are positions of the band.
  void finish(const KernelArgs& args, std::int64_t image, const Block& sums, Range rows) const {
    if constexpr (kStores) {
      if (stored_y_) return store_channels_last(args, image, sums, rows);
    }
    alignas(64) Sum turned[kTileBlock * kTileBlock];
    const auto row_blocks = ceil_div(sums.m.size(), kTileRows);
    const auto column_blocks = ceil_div(sums.n.size(), kTileColumns);
    transpose_matrix({reinterpret_cast<const float*>(sums.values), kTileBlock,
                      row_blocks * kTileRows, column_blocks * kTileColumns},
                     reinterpret_cast<float*>(turned), kTileBlock, Rounding::None);
    store(args, image, {sums.n, sums.m, turned, kTileBlock}, rows);
  }

  /// A block of sums whose columns are positions of the band.
  void store(const KernelArgs& args, std::int64_t image, const Block& sums, Range rows) const {
    const ChannelStore<Finish> store = {
        .y = args.out<typename Finish::Out>(0) + image * y_stride_,
        .plane = conv_.out[0] * columns_ * (widens() ? geometry_.taps() : 1),
        .finish = {args, 0, relu_}};
    for (auto p = sums.n.begin; p < sums.n.end;) {
      const auto row = rows.begin + p / pitch_, column = p % pitch_;
      const auto end = std::min(sums.n.end, p + pitch_ - column);
      const auto first = row * columns_ + column;
      const auto count = std::min(end - p, columns_ - column);
      const Block piece = {
          sums.m, {first, first + count}, sums.values + p - sums.n.begin, sums.stride};
      if (widens()) {
        store.store_tiles(geometry_.window.kernel, columns_, piece);
      } else if (count > 0) {
        store.store(piece);
      }
      p = end;
    }
  }

  /// A block of sums whose rows are positions of the band, to images channels last.
  void store_channels_last(const KernelArgs& args, std::int64_t image, const Block& sums,
                           Range rows) const {
    const Finish finish = {args, 0, relu_};
    auto* y = args.out<typename Words::Stored>(0);
    const auto taps_x = widens() ? geometry_.window.kernel[1] : 1;
    const auto taps_y = widens() ? geometry_.window.kernel[0] : 1;
    const auto channels = stored_y_->channels(), step = taps_x * stored_y_->pitch();
    for (auto n = sums.n.begin; n < sums.n.end;) {
      const auto tap = n / channels, channel = n % channels;
      const auto count = std::min(sums.n.end - n, channels - channel);
      for (auto p = sums.m.begin; p < sums.m.end;) {
        const auto row = rows.begin + p / pitch_, column = p % pitch_;
        const auto end = std::min(sums.m.end, p + pitch_ - column);
        const auto positions = std::min(end - p, columns_ - column);
        const auto first =
            stored_y_->element(image, row * taps_y + tap / taps_x, column * taps_x + tap % taps_x);
        const auto* from = sums.values + (p - sums.m.begin) * sums.stride + n - sums.n.begin;
        store_positions(finish, from, {positions, count}, channel, y + first + channel, step,
                        kind_);
        p = end;
      }
      n += count;
    }
  }

  static constexpr bool kStores = !std::is_same_v<Finish, SumFinish>;

  ConvGeometry geometry_;
  bool relu_;
  bool tiled_;                                       ///< by conv_of_tiles
  StrideOneConv conv_;                               ///< as multiplied
  std::int64_t columns_;                             ///< positions of a row
  std::optional<StoredImages> stored_x_, stored_y_;  ///< where they are channels last
  std::int64_t x_stride_;
  std::int64_t y_stride_;
  std::int64_t threads_;
  TileUnit::Kind kind_;
  std::int64_t pitch_;  ///< positions of a padded row
  PatchSteps steps_;
  std::int64_t line_;  ///< bytes from a position to the next
  std::int64_t out_blocks_;
  std::int64_t band_rows_ = 1, bands_per_image_ = 1, bands_ = 1;
  std::int64_t groups_ = 1;                ///< parts of the output channels, tasks of their own
  std::int64_t plane_ = 0;                 ///< words of a step's channels in a band
  std::vector<std::int64_t> patch_steps_;  ///< bytes, as TileOperand::steps
  std::vector<std::int64_t> single_weight_steps_, double_weight_steps_;  ///< of one or two blocks
  BasicPackedOperand<Element, TileWord> weights_;
};

/// A band has few rows in proportion to its halo when rows are long, or taps far apart.
template <class Op>
bool bands_fit(const KernelQuery& query) {
  const auto conv = conv_of<Op>(query);
  const auto elements = query.inputs[0].spec.dtype == DType::F32 ? Words<float>::kInWord
                                                                 : Words<std::int8_t>::kInWord;
  const auto rows =
      kBandWords / (ceil_div(conv.in_channels, elements) * conv.pitch()) - conv.halo();
  return rows >= 1 && 8 * std::min(rows, conv.out[0]) >= conv.halo();
}

/// Convolutions that are one product, or one for each tap.
template <class Op>
Verdict accepts_tiles(const KernelQuery& query) {
  const bool floats = query.inputs[0].spec.dtype == DType::F32;
  if (floats && query.contract != Contract::Bf16) return Verdict::no("computes under bf16 only");
  auto verdict = accepts_on_tiles(geometry_of<Op>(query));
  if (!verdict.accepted) return verdict;
  return floats ? accepts_image_gemm(query) : Verdict::yes();
}

template <class Op>
Verdict worth_tiles(const KernelQuery& query) {
  auto verdict = worth_on_tiles(geometry_of<Op>(query));
  if (!verdict.accepted) return verdict;
  return bands_fit<Op>(query)
             ? verdict
             : Verdict::no("has rows too long, or taps too far apart, for a cache");
}

template <class Op>
ChannelsLastOperands channels_last(const KernelQuery& query) {
  const auto x = query.inputs[0].spec.dtype, y = query.outputs[0].spec.dtype;
  const bool narrows = !kTransposed<Op> && geometry_of<Op>(query).window.makes_tiles();
  ChannelsLastOperands takes;
  if (!narrows) {
    takes = channels_last_on_tiles(
        conv_of<Op>(query), x == DType::F32 ? Words<float>::kInWord : Words<std::int8_t>::kInWord);
  }
  takes.output = x == y;
  return takes;
}

template <class Op>
KernelEntry tiles_entry(std::unique_ptr<Kernel> (*prepare)(const KernelQuery&, Device&)) {
  KernelEntry entry = {Op::kName, "tiles", &accepts_tiles<Op>, prepare};
  entry.worth = &worth_tiles<Op>;
  entry.channels_last = &channels_last<Op>;
  return entry;
}

}  // namespace

void add_conv_tiles_kernels(KernelList& list) {
  list.push_back(tiles_entry<Conv>(&prepare_conv<ConvTiles<Conv, FloatArithmetic>>));
  list.push_back(
      tiles_entry<ConvTranspose>(&prepare_conv<ConvTiles<ConvTranspose, FloatArithmetic>>));
  list.push_back(tiles_entry<QuantizedConv>(&prepare_integer<ConvTiles, QuantizedConv>));
  list.push_back(
      tiles_entry<QuantizedConvTranspose>(&prepare_integer<ConvTiles, QuantizedConvTranspose>));
}

}  // namespace triptych::cpu
