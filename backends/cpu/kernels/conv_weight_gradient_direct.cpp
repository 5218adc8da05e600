// The gradient of a convolution's weights for few channels: planes of dy in their own layout times
// planes of x, which get only their padding, a few lines at a time. Bringing both into the order of
// a matrix product would take as long as the products themselves. The positions are cut into parts,
// and the sums of the parts are added in order: the result does not depend on the number of
// threads.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "backends/cpu/direct/weight_tile.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"

namespace triptych::cpu {
namespace {

// Positions of a band: its lines of a tile of dy stay in the first-level cache.
constexpr std::int64_t kBandPositions = 1024;
constexpr std::int64_t kMostParts = 16;
// Floats of the sums of one thread that still are in its caches.
constexpr std::int64_t kSumFloats = 1 << 17;

/// Lines of some whole images, or some lines of one.
struct Band {
  Range images, lines;
};

class ConvWeightGradientDirect : public Kernel {
 public:
  ConvWeightGradientDirect(const KernelQuery& query, const Device& device)
      : g_(geometry_of(query)),
        x_stride_(query.inputs[0].outer_stride),
        dy_stride_(query.inputs[1].outer_stride),
        dw_stride_(query.outputs[0].outer_stride),
        tiles_(g_.out_channels, weight_tiles().max_rows),
        columns_(g_.in_channels * g_.taps()) {
    const auto& w = g_.window;
    const auto vectors = round_up(w.out[1], weight_tiles().lanes);
    line_floats_ = round_up(w.out[1] + w.extent(1) - 1, 16);
    // As many channels as make whole tiles of columns.
    chunk_ = kWeightTileColumns / std::gcd(std::int64_t{kWeightTileColumns}, g_.taps());
    cut_bands(std::max<std::int64_t>(1, kBandPositions / vectors));
    find_offsets();
    parts_ = std::min(kMostParts, static_cast<std::int64_t>(bands_.size()));
    splits_ = std::min(tiles_.count(), ceil_div(4 * device_threads(device), parts_));
    threads_ = device_threads(device);
  }

  static Verdict accepts(const KernelQuery& query) {
    if (query.contract != Contract::F32) return Verdict::no("computes in float32 only");
    const auto g = geometry_of(query);
    if (g.groups != 1) return Verdict::no("has several groups");
    return g.window.stride[1] == 1 ? Verdict::yes()
                                   : Verdict::no("has strides, which scatter the lines");
  }

  /// From measurements (docs/results/cpu.md).
  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    if (g.window.out[1] < weight_tiles().lanes) return Verdict::no("has lines that fill no vector");
    const auto sums = g.out_channels * g.in_channels * g.taps() * weight_tiles().lanes;
    return sums <= kSumFloats ? Verdict::yes() : Verdict::no("has too many weights");
  }

  std::size_t scratch_bytes() const override {
    const auto floats =
        checked_add(checked_mul(threads_, thread_floats()), checked_mul(parts_, part_floats()));
    return static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    auto* sums = reinterpret_cast<float*>(args.scratch);
    auto* own = sums + parts_ * part_floats();
    parallel_for(parts_ * splits_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto task = begin; task < end; ++task) {
        const Range tiles = {task % splits_ * tiles_.count() / splits_,
                             (task % splits_ + 1) * tiles_.count() / splits_};
        const auto thread = thread_index();
        run_part(task / splits_, tiles, args, own + thread * thread_floats(), sums);
      }
    });
    add_parts(sums, args.out<float>(0));
  }

 private:
  static ConvGeometry geometry_of(const KernelQuery& query) {
    return query.as<ConvWeightGradient>().geometry(query.inputs[0].spec.shape,
                                                   query.inputs[1].spec.shape);
  }

  void cut_bands(std::int64_t lines) {
    const auto height = g_.window.out[0];
    if (const auto images = lines / height; images > 0) {
      for (std::int64_t n = 0; n < g_.batch; n += images) {
        bands_.push_back({{n, std::min(g_.batch, n + images)}, {0, height}});
      }
      return;
    }
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      for (std::int64_t y = 0; y < height; y += lines) {
        bands_.push_back({{n, n + 1}, {y, std::min(height, y + lines)}});
      }
    }
  }

  /// Where the columns of a chunk start in its padded lines.
  void find_offsets() {
    const auto& w = g_.window;
    for (const auto& band : bands_) {
      const auto lines = checked_mul(band.images.size(), x_lines(band.lines.size()));
      const auto floats = checked_mul(lines, line_floats_);
      channel_floats_ = std::max(channel_floats_, floats);
    }
    for (std::int64_t column = 0; column < chunk_ * g_.taps(); ++column) {
      const auto tap = column % g_.taps();
      offsets_.push_back(column / g_.taps() * channel_floats_ +
                         tap / w.kernel[1] * w.dilation[0] * line_floats_ +
                         tap % w.kernel[1] * w.dilation[1]);
    }
  }

  /// Lines of x under so many lines of dy.
  std::int64_t x_lines(std::int64_t lines) const {
    return (lines - 1) * g_.window.stride[0] + g_.window.extent(0);
  }
  /// Sums of all output channels, a float each, in whole vectors.
  std::int64_t part_floats() const {
    return checked_mul(g_.out_channels, round_up(columns_, weight_tiles().lanes));
  }
  /// Vectors of sums, and x of one chunk of channels.
  std::int64_t thread_floats() const {
    const auto sums = checked_mul(part_floats(), weight_tiles().lanes);
    return round_up(checked_add(sums, checked_mul(chunk_, channel_floats_)), 16);
  }

  void run_part(std::int64_t part, Range tiles, const KernelArgs& args, float* own,
                float* sums) const {
    const Range rows = {tiles_.begin(tiles.begin), tiles_.begin(tiles.end)};
    const auto row = round_up(columns_, weight_tiles().lanes);
    auto* x = own + part_floats() * weight_tiles().lanes;
    std::fill_n(own, rows.size() * row * weight_tiles().lanes, 0.0F);
    std::fill_n(x, chunk_ * channel_floats_, 0.0F);
    const auto count = static_cast<std::int64_t>(bands_.size());
    for (auto b = part * count / parts_; b < (part + 1) * count / parts_; ++b) {
      const auto& band = bands_[static_cast<std::size_t>(b)];
      for (std::int64_t c = 0; c < g_.in_channels; c += chunk_) {
        const Range channels = {c, std::min(g_.in_channels, c + chunk_)};
        for (auto i = channels.begin; i < channels.end; ++i) {
          pad(band, args.in<float>(0) + i * g_.in_plane(), x + (i - c) * channel_floats_);
        }
        multiply(band, channels, tiles, args.in<float>(1), x, own);
      }
    }
    weight_tiles().fold_lanes(own, rows.size() * row,
                              sums + part * part_floats() + rows.begin * row);
  }

  /// The lines of one channel under a band with zeros around. The columns outside the image are 0
  /// already.
  void pad(const Band& band, const float* x, float* to) const {
    const auto& w = g_.window;
    const auto lines = x_lines(band.lines.size());
    const auto used = std::min(w.in[1], line_floats_ - w.pad_begin[1]);
    for (auto image = band.images.begin; image < band.images.end; ++image) {
      for (std::int64_t line = 0; line < lines; ++line, to += line_floats_) {
        const auto row = band.lines.begin * w.stride[0] - w.pad_begin[0] + line;
        if (row < 0 || row >= w.in[0]) {
          std::fill_n(to, line_floats_, 0.0F);
        } else {
          std::copy_n(x + image * x_stride_ + row * w.in[1], used, to + w.pad_begin[1]);
        }
      }
    }
  }

  void multiply(const Band& band, Range channels, Range tiles, const float* dy, const float* x,
                float* sums) const {
    const auto& w = g_.window;
    const auto lanes = std::int64_t{weight_tiles().lanes};
    const auto row = round_up(columns_, lanes) * lanes;
    const auto columns = channels.size() * g_.taps();
    WeightTile tile = {.dy_row = g_.out_plane(),
                       .dy_image = dy_stride_,
                       .dy_line = w.out[1],
                       .x_image = x_lines(band.lines.size()) * line_floats_,
                       .x_line = w.stride[0] * line_floats_,
                       .images = band.images.size(),
                       .lines = band.lines.size(),
                       .width = w.out[1],
                       .sum_row = row};
    const float* first = dy + band.images.begin * dy_stride_ + band.lines.begin * w.out[1];
    const auto& runs = weight_tiles().run;
    for (auto t = tiles.begin; t < tiles.end; ++t) {
      const auto begin = tiles_.begin(t);
      tile.dy = first + begin * g_.out_plane();
      const auto& run = runs[static_cast<std::size_t>(tiles_.height(t))];
      for (std::int64_t column = 0; column < columns; column += kWeightTileColumns) {
        const auto count =
            static_cast<std::size_t>(std::min<std::int64_t>(kWeightTileColumns, columns - column));
        const auto* offsets = offsets_.data() + column;
        for (std::size_t j = 0; j < count; ++j) tile.x[j] = x + offsets[j];
        tile.sums = sums + (begin - tiles_.begin(tiles.begin)) * row +
                    (channels.begin * g_.taps() + column) * lanes;
        run[count](tile);
      }
    }
  }

  void add_parts(const float* sums, float* dw) const {
    const auto row = round_up(columns_, weight_tiles().lanes);
    parallel_for(g_.out_channels, 8, [&](std::int64_t begin, std::int64_t end) {
      for (auto o = begin; o < end; ++o) {
        float* to = dw + o * dw_stride_;
        std::copy_n(sums + o * row, columns_, to);
        for (std::int64_t part = 1; part < parts_; ++part) {
          const float* from = sums + part * part_floats() + o * row;
          for (std::int64_t j = 0; j < columns_; ++j) to[j] += from[j];
        }
      }
    });
  }

  ConvGeometry g_;
  std::int64_t x_stride_, dy_stride_, dw_stride_;
  RowTiles tiles_;                ///< of the output channels
  std::int64_t columns_;          ///< of dw
  std::int64_t line_floats_ = 0;  ///< of a padded line
  std::int64_t chunk_ = 1;        ///< channels of x that are padded together
  std::vector<Band> bands_;
  std::vector<std::int64_t> offsets_;
  std::int64_t channel_floats_ = 0;  ///< of the padded lines of a channel under the largest band
  std::int64_t parts_ = 1;           ///< of the bands
  std::int64_t splits_ = 1;          ///< of the tiles
  std::int64_t threads_ = 1;
};

}  // namespace

void add_conv_weight_gradient_direct_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvWeightGradientDirect>(ConvWeightGradient::kName, "direct"));
  list.back().worth = &ConvWeightGradientDirect::worth;
}

}  // namespace triptych::cpu
