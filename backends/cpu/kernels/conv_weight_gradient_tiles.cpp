// The gradient of a convolution's weights on the tile unit (backends/cpu/tiles), under bf16: for
// each tap x [C, positions] x dy [positions, O]. Positions run on from row to row of planes with
// the padding of x. dy is 0 between its rows, so a tap is an offset in x. All threads lay out bands
// of rows that fit into the second cache, then all multiply them: each thread owns some taps and
// channels and continues their sums from band to band.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/conv_stride_one.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/tiles/pack_rows.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kBandBytes = 1'200'000;
constexpr std::int64_t kHalfBytes = 2;
constexpr std::int64_t kStep = 2 * kTileDepth;  ///< positions of a tile product
constexpr std::int64_t kUnitFloats = kTileBlock * kTileBlock;

/// Output rows of an image that are multiplied together with others.
struct Band {
  std::int64_t image = 0;
  Range rows;
  std::int64_t x = 0;          ///< position of its first in the planes of x
  std::int64_t dy = 0;         ///< that in dy, a multiple of kStep
  std::int64_t positions = 0;  ///< in dy, a multiple of kStep
};

struct Chunk {
  std::vector<Band> bands;
  std::vector<std::int64_t> x_steps, dy_steps;  ///< as TileOperand::steps
};

class ConvWeightGradientTiles : public Kernel {
 public:
  ConvWeightGradientTiles(const KernelQuery& query, Device& device)
      : g_(geometry(query)),
        x_stride_(query.inputs[0].outer_stride),
        dy_stride_(query.inputs[1].outer_stride),
        dw_stride_(query.outputs[0].outer_stride),
        threads_(device_threads(device)),
        kind_(tile_unit_kind()),
        narrows_(g_.window.makes_tiles()),
        channels_(g_.in_channels * (narrows_ ? g_.taps() : 1)),
        kernel_{narrows_ ? 1 : g_.window.kernel[0], narrows_ ? 1 : g_.window.kernel[1]},
        pitch_(g_.window.out[1] + (kernel_[1] - 1) * g_.window.dilation[1]),
        out_(round_up(g_.out_channels, kTileColumns)),
        plain_(prepare_plain_weight_gradient(query, device)) {
    cut_chunks();
  }

  static Verdict accepts(const KernelQuery& query) {
    if (query.contract != Contract::Bf16) return Verdict::no("computes under bf16 only");
    auto verdict = accepts_on_tiles(geometry(query));
    if (!verdict.accepted) return verdict;
    return accepts_gemm(query);
  }

  static Verdict worth(const KernelQuery& query) { return worth_on_tiles(geometry(query)); }

  std::size_t scratch_bytes() const override {
    const auto own = checked_add(checked_add(x_bytes(), dy_bytes()),
                                 checked_add(sum_bytes(), checked_mul(threads_, row_bytes())));
    return std::max(static_cast<std::size_t>(own), plain_->scratch_bytes());
  }

  void run(const KernelArgs& args) override {
    auto* x = args.scratch;
    auto* dy = x + x_bytes();
    auto* sums = reinterpret_cast<float*>(dy + dy_bytes());
    auto* rows = reinterpret_cast<std::byte*>(sums) + sum_bytes();
    bool finite = true;
    for (const auto& chunk : chunks_) {
      finite = finite && pack_x(chunk, args.in<float>(0), reinterpret_cast<std::uint16_t*>(x));
      if (!finite) break;
      pack_dy(chunk, args.in<float>(1), reinterpret_cast<TileWord*>(dy), rows);
      multiply(chunk, x, dy, sums);
    }
    // Infinity in x times the 0 between two rows of dy is no zero.
    finite ? store(sums, args.out<float>(0)) : plain_->run(args);
  }

 private:
  static ConvGeometry geometry(const KernelQuery& query) {
    return query.as<ConvWeightGradient>().geometry(query.inputs[0].spec.shape,
                                                   query.inputs[1].spec.shape);
  }

  std::int64_t taps() const { return kernel_[0] * kernel_[1]; }
  std::int64_t halo() const { return (kernel_[0] - 1) * g_.window.dilation[0]; }
  std::int64_t channel_blocks() const { return ceil_div(channels_, kTileBlock); }
  std::int64_t out_blocks() const { return ceil_div(g_.out_channels, kTileBlock); }
  /// Sums of one tap, and of up to two tiles of channels on each side.
  std::int64_t units() const { return channel_blocks() * out_blocks() * taps(); }

  std::int64_t x_bytes() const {
    return round_up(checked_mul(round_up(channels_, kTileRows) * kHalfBytes, x_plane_), 64);
  }
  std::int64_t dy_bytes() const { return checked_mul(dy_positions_ * kHalfBytes, out_); }
  std::int64_t sum_bytes() const {
    return checked_mul(units(), kUnitFloats * static_cast<std::int64_t>(sizeof(float)));
  }
  /// Sixteen planes of a band of dy, of each thread.
  std::int64_t row_bytes() const { return checked_mul(kTileRows * kHalfBytes, dy_positions_); }

  void cut_chunks() {
    const auto& w = g_.window;
    const auto cost = kHalfBytes * (round_up(channels_, kTileRows) + out_) * pitch_;  // of a row
    const auto cached = std::max(kBandBytes / cost - halo(), std::int64_t{1});
    const auto pieces = ceil_div(w.out[0], cached);
    const auto most_rows = ceil_div(w.out[0], pieces);
    const auto images = std::max(kBandBytes / (cost * (w.out[0] + halo())), std::int64_t{1});
    for (std::int64_t image = 0; image < g_.batch; ++image) {
      for (std::int64_t row = 0; row < w.out[0]; row += most_rows) {
        if (row > 0 || image % images == 0) chunks_.emplace_back();
        append({.image = image, .rows = {row, std::min(row + most_rows, w.out[0])}},
               chunks_.back());
      }
    }
    x_plane_ = round_up(x_plane_, 32) | 32;
    for (auto& chunk : chunks_)
      for (auto& step : chunk.dy_steps) step *= out_ * kHalfBytes;
  }

  void append(Band band, Chunk& chunk) {
    if (!chunk.bands.empty()) {
      const auto& last = chunk.bands.back();
      band.x = last.x + (last.rows.size() + halo()) * pitch_;
      band.dy = last.dy + last.positions;
    }
    band.positions = round_up(band.rows.size() * pitch_, kStep);
    for (std::int64_t step = 0; step < band.positions; step += kStep) {
      chunk.x_steps.push_back((band.x + step) * kHalfBytes);
      chunk.dy_steps.push_back(band.dy + step);
    }
    // The last step of the last band reads beyond its rows.
    const auto end = band.x + band.positions + halo() * pitch_ + pitch_;
    x_plane_ = std::max(x_plane_, end);
    dy_positions_ = std::max(dy_positions_, band.dy + band.positions);
    chunk.bands.push_back(band);
  }

  /// Planes of x, padded. True when all of it is finite.
  bool pack_x(const Chunk& chunk, const float* x, std::uint16_t* to) const {
    std::atomic<bool> finite = true;
    parallel_for(channels_, 1, [&](std::int64_t begin, std::int64_t end) {
      bool all = true;
      for (auto channel = begin; channel < end; ++channel) {
        auto* plane = to + channel * x_plane_;
        for (const auto& band : chunk.bands)
          all &= pack_x_band(x + band.image * x_stride_, channel, band.rows, plane + band.x);
        const auto& last = chunk.bands.back();
        const auto used = last.x + (last.rows.size() + halo()) * pitch_;
        std::fill(plane + used, plane + x_plane_, std::uint16_t{0});
      }
      if (!all) finite = false;
    });
    return finite;
  }

  bool pack_x_band(const float* x, std::int64_t channel, Range rows, std::uint16_t* to) const {
    const auto& w = g_.window;
    const auto step = narrows_ ? g_.taps() : 1;
    const float* plane = x + channel / step * g_.in_plane();
    if (narrows_) plane += channel % step / w.kernel[1] * w.in[1] + channel % step % w.kernel[1];
    const PaddedRow layout = {narrows_ ? w.out[1] : w.in[1], w.pad_begin[1], pitch_};
    bool finite = true;
    for (std::int64_t r = 0; r < rows.size() + halo(); ++r) {
      const auto row = (rows.begin + r) * w.stride[0] - w.pad_begin[0];
      layout.write(row < 0 || row >= w.in[0], to + r * pitch_,
                   [&](std::int64_t first, std::int64_t count, std::uint16_t* at) {
                     finite &= pack_halves(plane + row * w.in[1] + first * w.stride[1], w.stride[1],
                                           count, at);
                   });
    }
    return finite;
  }

  /// dy as words of two positions: [pair of positions][output channel].
  void pack_dy(const Chunk& chunk, const float* dy, TileWord* to, std::byte* rows) const {
    const auto blocks = out_ / kTileColumns;
    parallel_for(std::ssize(chunk.bands) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      auto* own = reinterpret_cast<std::uint16_t*>(rows + thread_index() * row_bytes());
      for (auto task = begin; task < end; ++task) {
        const auto& band = chunk.bands[static_cast<std::size_t>(task / blocks)];
        const auto first = task % blocks * kTileColumns;
        pack_dy_rows(dy + band.image * dy_stride_ + first * g_.out_plane(), band,
                     std::min(kTileColumns, g_.out_channels - first), own);
        transpose_matrix({reinterpret_cast<const float*>(own), band.positions / 2, kTileColumns,
                          band.positions / 2},
                         reinterpret_cast<float*>(to + band.dy / 2 * out_ + first), out_,
                         Rounding::None);
      }
    });
  }

  void pack_dy_rows(const float* dy, const Band& band, std::int64_t channels,
                    std::uint16_t* to) const {
    const auto width = g_.window.out[1];
    std::fill_n(to, kTileColumns * band.positions, std::uint16_t{0});
    for (std::int64_t o = 0; o < channels; ++o) {
      for (std::int64_t r = 0; r < band.rows.size(); ++r) {
        pack_halves(dy + o * g_.out_plane() + (band.rows.begin + r) * width, 1, width,
                    to + o * band.positions + r * pitch_);
      }
    }
  }

  void multiply(const Chunk& chunk, const std::byte* x, const std::byte* dy, float* sums) const {
    const auto line = x_plane_ * kHalfBytes;
    parallel_for(units(), 1, [&](std::int64_t begin, std::int64_t end) {
      const TileUnit unit(TileNumbers::Bf16, kTileDepth, kind_);
      for (auto i = begin; i < end; ++i) {
        const auto tap = i % taps(), channel = i / taps() / out_blocks() * kTileBlock;
        const auto out = i / taps() % out_blocks() * kTileBlock;
        const auto offset = tap / kernel_[1] * g_.window.dilation[0] * pitch_ +
                            tap % kernel_[1] * g_.window.dilation[1];
        unit.multiply(
            {.a = {x + channel * line + offset * kHalfBytes, chunk.x_steps, line, kTileRows * line},
             .b = {dy + out * kTileWordBytes, chunk.dy_steps, out_ * kTileWordBytes,
                   kTileColumns * kTileWordBytes},
             .sums = sums + i * kUnitFloats,
             .sums_stride = kTileBlock,
             .row_blocks = channels_ - channel > kTileRows ? 2 : 1,
             .column_blocks = g_.out_channels - out > kTileColumns ? 2 : 1,
             .accumulate = &chunk != &chunks_.front()});
      }
    });
  }

  void store(const float* sums, float* dw) const {
    parallel_for(g_.out_channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto o = begin; o < end; ++o) {
        for (std::int64_t c = 0; c < channels_; ++c) {
          const auto unit = (c / kTileBlock * out_blocks() + o / kTileBlock) * taps();
          const float* from =
              sums + unit * kUnitFloats + c % kTileBlock * kTileBlock + o % kTileBlock;
          float* to = dw + o * dw_stride_ + c * taps();
          for (std::int64_t tap = 0; tap < taps(); ++tap) to[tap] = from[tap * kUnitFloats];
        }
      }
    });
  }

  ConvGeometry g_;
  std::int64_t x_stride_;
  std::int64_t dy_stride_;
  std::int64_t dw_stride_;
  std::int64_t threads_;
  TileUnit::Kind kind_;
  bool narrows_;           ///< each tap of a channel of x is a channel of its own
  std::int64_t channels_;  ///< of x, as multiplied
  std::int64_t kernel_[2];
  std::int64_t pitch_;  ///< positions of a padded row
  std::int64_t out_;    ///< output channels in dy's words
  std::unique_ptr<Kernel> plain_;
  std::vector<Chunk> chunks_;
  std::int64_t x_plane_ = 0;       ///< halves between planes of x
  std::int64_t dy_positions_ = 0;  ///< of the largest chunk
};

}  // namespace

void add_conv_weight_gradient_tiles_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvWeightGradientTiles>(ConvWeightGradient::kName, "tiles"));
  list.back().worth = &ConvWeightGradientTiles::worth;
}

}  // namespace triptych::cpu
