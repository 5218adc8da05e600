// The gradient of a convolution's weights as a product dy x patches: [O, P] x [P, taps * channels],
// P running over image, row, column. x is first brought to channels-last order with its padding,
// where the patches of one position lie in contiguous runs: the microkernel reads them in place.
// That is done for one slice of P after the other, small enough for the caches. Dw keeps its
// partial sums between slices, so every element is one chain.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <type_traits>

#include "backends/cpu/gemm/dot_unit.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_traffic.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/kernels/conv_store.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"

namespace triptych::cpu {
namespace {

// Floats of dy and x in one slice, and of dw in one task's block.
constexpr std::int64_t kSliceFloats = 1 << 20;
constexpr std::int64_t kBlockFloats = 1 << 16;
// Positions that pass through the microkernel in one go.
constexpr std::int64_t kDepth = 256;

/// Output rows of one image inside a slice.
struct Band {
  std::int64_t image = 0;
  Range rows;
  std::int64_t position = 0;  ///< of its first output within the slice
  std::int64_t x = 0;         ///< where its rows of x start, floats
};

using Slice = std::vector<Band>;

/// The division of dw: a unit is some kernel rows for some channels, with its columns in panels of
/// the microkernel's width. With few channels, the taps of a kernel row lie side by side (x's
/// channels-last order without gaps), with many, each tap has a panel of its own.
class WeightColumns {
 public:
  WeightColumns(const ConvGeometry& g, std::int64_t wanted_units)
      : w_(g.window), channels_(g.group_in()), width_(microkernels().columns) {
    joined_ = channels_ < width_ && w_.dilation[1] == 1;
    // An odd number of cache lines between neighbours, or they would all share few cache sets.
    pitch_ = joined_ ? channels_ : round_up(channels_, 16) | 16;
    row_panels_ = joined_ ? ceil_div(w_.kernel[1] * channels_, width_) : w_.kernel[1];
    channel_blocks_ = joined_ ? 1 : ceil_div(channels_, width_);
    unit_rows_ = joined_ || channel_blocks_ < wanted_units ? 1 : w_.kernel[0];
  }

  std::int64_t units() const { return channel_blocks_ * w_.kernel[0] / unit_rows_; }
  std::int64_t unit_panels() const { return unit_rows_ * row_panels_; }
  /// Units that read one channel of x.
  std::int64_t readings() const { return w_.kernel[0] / unit_rows_; }
  /// Floats between neighbouring positions of channels-last x.
  std::int64_t pitch() const { return pitch_; }

  /// Offset in channels-last x, rows `row_floats` apart, of a panel of a unit.
  std::int64_t panel_offset(std::int64_t unit, std::int64_t panel, std::int64_t row_floats) const {
    const auto row = first_row(unit) + panel / row_panels_;
    const auto within = panel % row_panels_;
    const auto column =
        joined_ ? within * width_ : within * w_.dilation[1] * pitch_ + first_channel(unit);
    return row * w_.dilation[0] * row_floats + column;
  }

  /// Writes the sums of one output channel, unit_panels() panels side by side, to its weights dw.
  void store(std::int64_t unit, const float* sums, float* dw) const {
    const auto first = first_channel(unit);
    const auto channels = joined_ ? channels_ : std::min(width_, channels_ - first);
    const auto stride = joined_ ? channels_ : width_;
    const auto taps = w_.taps();
    dw += first * taps + first_row(unit) * w_.kernel[1];
    transpose_matrix({sums, stride, unit_rows_ * w_.kernel[1], channels}, dw, taps, Rounding::None);
  }

 private:
  std::int64_t first_row(std::int64_t unit) const {
    return unit % (w_.kernel[0] / unit_rows_) * unit_rows_;
  }
  std::int64_t first_channel(std::int64_t unit) const {
    return unit / (w_.kernel[0] / unit_rows_) * width_;
  }

  Window w_;
  std::int64_t channels_;
  std::int64_t width_;
  bool joined_;
  std::int64_t pitch_;
  std::int64_t row_panels_;  ///< of one kernel row
  std::int64_t channel_blocks_;
  std::int64_t unit_rows_;  ///< kernel rows of one unit
};

ConvGeometry geometry_of(const KernelQuery& query) {
  return query.as<ConvWeightGradient>().geometry(query.inputs[0].spec.shape,
                                                 query.inputs[1].spec.shape);
}

/// In floats, or kDots: in words of two neighbouring positions of a row of dy, and of the values of
/// x that these meet.
template <bool kDots>
class ConvWeightGradientGemm : public Kernel {
  using Word = std::conditional_t<kDots, DotWord, float>;
  static constexpr std::int64_t kPositions = kDots ? 2 : 1;  ///< of a word

 public:
  ConvWeightGradientGemm(const KernelQuery& query, const Device& device)
      : g_(geometry_of(query)),
        x_stride_(query.inputs[0].outer_stride),
        dy_stride_(query.inputs[1].outer_stride),
        dw_stride_(query.outputs[0].outer_stride),
        rounding_(rounding_of(query.contract)),
        threads_(device_threads(device)),
        tiles_(g_.group_out()),
        columns_(g_, ceil_div(4 * threads_, g_.groups)) {
    const auto& w = g_.window;
    padded_width_ = (w.out[1] - 1) * w.stride[1] + w.extent(1);
    size_blocks();
    cut_slices();
  }

  static Verdict accepts(const KernelQuery& query) {
    if (!kDots) return accepts_gemm(query);
    if (geometry_of(query).window.out[1] % 2 != 0)
      return Verdict::no("has rows with an odd number of outputs");
    return accepts_dots(query);
  }
  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    return worth_on_dots(g.group_out(), g.batch * g.out_plane());
  }
  static std::vector<LevelTraffic> traffic(const KernelQuery& query, const Device& device) {
    return packed_traffic(ConvWeightGradientGemm(query, device).product(), Caches::of(device));
  }

  std::size_t scratch_bytes() const override {
    const auto blocks = slices_.size() == 1 ? std::int64_t{threads_} : tasks();
    const auto floats =
        checked_add(checked_add(dy_floats_, x_floats_), checked_mul(blocks, block_floats()));
    return static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    auto* dy = reinterpret_cast<float*>(args.scratch);
    auto* x = dy + dy_floats_;
    auto* blocks = x + x_floats_;
    for (const auto& slice : slices_) {
      pack_dy(slice, args.in<float>(1), dy);
      pack_x(slice, args.in<float>(0), x);
      parallel_for(tasks(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto task = begin; task < end; ++task) {
          const auto slot = slices_.size() == 1 ? thread_index() : task;
          float* block = blocks + slot * block_floats();
          multiply(slice, task, dy, x, block);
          if (&slice == &slices_.back()) store(task, block, args.out<float>(0));
        }
      });
    }
  }

 private:
  /// Some row tiles of one group, times one unit of columns.
  struct Task {
    std::int64_t group;
    std::int64_t unit;
    Range tiles;
  };

  std::int64_t tasks() const { return g_.groups * columns_.units() * row_blocks_; }
  Task task_at(std::int64_t index) const {
    const auto block = index % row_blocks_;
    return {index / row_blocks_ / columns_.units(),
            index / row_blocks_ % columns_.units(),
            {block * tiles_.count() / row_blocks_, (block + 1) * tiles_.count() / row_blocks_}};
  }
  std::int64_t block_stride() const { return columns_.unit_panels() * microkernels().columns; }
  std::int64_t block_floats() const {
    const auto rows = ceil_div(tiles_.count(), row_blocks_) * microkernels().max_rows;
    return checked_mul(rows, block_stride());
  }

  void size_blocks() {
    const auto rows = std::max(kBlockFloats / block_stride(), std::int64_t{1});
    const auto tiles = std::max<std::int64_t>(rows / microkernels().max_rows, 1);
    row_blocks_ = ceil_div(tiles_.count(), tiles);
    const auto wanted = threads_ == 1 ? 1 : 4 * threads_;
    if (tasks() < wanted) {
      row_blocks_ = std::min(tiles_.count(), ceil_div(wanted, g_.groups * columns_.units()));
    }
  }

  /// As the traffic's model sees it: dy is A, packed at each run. x is B, brought to channels-last
  /// order once and read in place, each of its rows by as many units as have channels in it.
  PackedProduct product() const {
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    const auto& w = g_.window;
    const auto packed = g_.batch * (w.in[0] + w.pad_begin[0] + w.pad_end[0]) * row_floats();
    const auto positions = g_.batch * g_.out_plane();
    const auto panels = columns_.units() * columns_.unit_panels();
    return {.batch = number(g_.groups),
            .distinct_a = number(g_.groups),
            .m = number(g_.group_out()),
            .n = number(g_.group_in() * g_.taps()),
            .k = number(positions),
            .columns = number(microkernels().columns),
            .width = number(panels * microkernels().columns),
            .row_tiles = number(tiles_.count()),
            .panels = number(panels),
            .row_blocks = number(row_blocks_),
            .column_blocks = number(columns_.units()),
            .depth = number(std::min(kDepth, positions)),
            .b = number(packed * columns_.readings()),
            .packed = number(packed),
            .packings = 1,
            .source = number(g_.batch * g_.group_in() * g_.in_plane()),
            .weights = number(g_.out_channels * positions)};
  }

  std::int64_t band_rows(const Range& rows) const {
    return (rows.size() - 1) * g_.window.stride[0] + g_.window.extent(0);
  }
  /// Floats of one row of channels-last x, one group after the other.
  std::int64_t row_floats() const { return padded_width_ * columns_.pitch(); }

  void cut_slices() {
    const auto& w = g_.window;
    const auto x_row = checked_mul(checked_mul(padded_width_, columns_.pitch()), g_.groups);
    const auto dy_row = checked_mul(w.out[1], g_.out_channels);
    const auto row_cost = checked_add(dy_row, checked_mul(w.stride[0], x_row));
    const auto slice_rows = std::max(kSliceFloats / row_cost, std::int64_t{1});
    const auto all_rows = g_.batch * w.out[0];
    for (std::int64_t row = 0; row < all_rows;) {
      const auto slice_end = std::min(row + slice_rows, all_rows);
      Slice slice;
      Band next;
      while (row < slice_end) {
        next.image = row / w.out[0];
        const auto first = row % w.out[0];
        next.rows = {first, std::min(w.out[0], first + slice_end - row)};
        slice.push_back(next);
        row += next.rows.size();
        next.position += next.rows.size() * w.out[1];
        next.x = checked_add(next.x, checked_mul(band_rows(next.rows), x_row));
      }
      dy_floats_ = std::max(dy_floats_, round_up(checked_mul(next.position, g_.out_channels), 16));
      // The last panel may read beyond the last position.
      x_floats_ = std::max(x_floats_, round_up(next.x + microkernels().columns, 16));
      slices_.push_back(std::move(slice));
    }
  }

  static std::int64_t positions(const Slice& slice, std::int64_t width) {
    return slice.back().position + slice.back().rows.size() * width;
  }

  /// dy as packed rows: tile after tile, [position][rows of the tile]. The words of a band begin
  /// where its floats do.
  void pack_dy(const Slice& slice, const float* dy, float* to) const {
    const auto width = g_.window.out[1];
    const auto depth = positions(slice, width);
    parallel_for(g_.groups * tiles_.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const auto tile = i % tiles_.count();
        const auto channel = i / tiles_.count() * g_.group_out() + tiles_.begin(tile);
        const auto height = tiles_.height(tile);
        for (const auto& band : slice) {
          const float* from =
              dy + band.image * dy_stride_ + channel * g_.out_plane() + band.rows.begin * width;
          float* packed = to + channel * depth + band.position * height;
          const auto positions = band.rows.size() * width;
          transpose_matrix({from, g_.out_plane(), height, positions}, packed, height, rounding_);
          if (kDots) join_rows(packed, positions, height, 0.0F, packed);
        }
      }
    });
  }

  /// x as [band][group][row][column][channel], padding included.
  void pack_x(const Slice& slice, const float* x, float* to) const {
    for (const auto& band : slice) {
      const auto rows = band_rows(band.rows);
      parallel_for(g_.groups * rows, 4, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) {
          const auto row =
              band.rows.begin * g_.window.stride[0] - g_.window.pad_begin[0] + i % rows;
          const float* channels =
              x + band.image * x_stride_ + i / rows * g_.group_in() * g_.in_plane();
          pack_x_row(channels, row, to + band.x + i * row_floats());
        }
      });
    }
  }

  void pack_x_row(const float* x, std::int64_t row, float* to) const {
    const auto& w = g_.window;
    const auto pitch = columns_.pitch();
    const bool inside = row >= 0 && row < w.in[0];
    const auto left = std::min(w.pad_begin[1], padded_width_);
    const auto used = inside ? std::clamp<std::int64_t>(padded_width_ - left, 0, w.in[1]) : 0;
    std::fill(to, to + left * pitch, 0.0F);
    if (used > 0) {
      transpose_matrix({x + row * w.in[1], g_.in_plane(), g_.group_in(), used}, to + left * pitch,
                       pitch, rounding_);
    }
    std::fill(to + (left + used) * pitch, to + padded_width_ * pitch, 0.0F);
    if (kDots) join_positions(to, w.stride[1] * pitch, padded_width_ * pitch);
  }

  /// A word of each value and the one `step` values behind it, up to the last that has one.
  static void join_positions(float* values, std::int64_t step, std::int64_t count) {
    simd([=] {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count - step; ++i)
        values[i] = std::bit_cast<float>(dot_word(values[i], values[i + step]));
    });
  }

  void multiply(const Slice& slice, std::int64_t index, const float* dy, const float* x,
                float* block) const {
    const auto task = task_at(index);
    const auto& kernels = microkernels();
    const auto& w = g_.window;
    const auto depth = positions(slice, w.out[1]);
    const auto step = std::max<std::int64_t>(1, kDepth / w.out[1]);
    const auto* words = reinterpret_cast<const Word*>(x);
    const auto* a = reinterpret_cast<const Word*>(dy) + task.group * g_.group_out() * depth;
    for (const auto& band : slice) {
      const auto rows = band_rows(band.rows);
      const Word* b = words + band.x + task.group * rows * row_floats();
      for (std::int64_t row = 0; row < band.rows.size(); row += step) {
        const auto position = band.position + row * w.out[1] / kPositions;
        for (std::int64_t panel = 0; panel < columns_.unit_panels(); ++panel) {
          for (auto tile = task.tiles.begin; tile < task.tiles.end; ++tile) {
            const auto height = tiles_.height(tile);
            const auto first = tiles_.begin(task.tiles.begin);
            kernels.run_tile(
                height,
                BasicMicroTile<Word>{.a = a + tiles_.begin(tile) * depth + position * height,
                                     .b = b + row * w.stride[0] * row_floats() +
                                          columns_.panel_offset(task.unit, panel, row_floats()),
                                     .c = block + (tiles_.begin(tile) - first) * block_stride() +
                                          panel * kernels.columns,
                                     .c_stride = block_stride(),
                                     .k_outer = std::min(step, band.rows.size() - row),
                                     .k_inner = w.out[1] / kPositions,
                                     .b_outer = w.stride[0] * row_floats(),
                                     .b_inner = kPositions * w.stride[1] * columns_.pitch(),
                                     .accumulate = &slice != &slices_.front() || position > 0});
          }
        }
      }
    }
  }

  void store(std::int64_t index, const float* block, float* dw) const {
    const auto task = task_at(index);
    const auto first = tiles_.begin(task.tiles.begin);
    for (auto m = first; m < tiles_.begin(task.tiles.end); ++m) {
      columns_.store(task.unit, block + (m - first) * block_stride(),
                     dw + (task.group * g_.group_out() + m) * dw_stride_);
    }
  }

  ConvGeometry g_;
  std::int64_t x_stride_;
  std::int64_t dy_stride_;
  std::int64_t dw_stride_;
  Rounding rounding_;
  std::int64_t threads_;
  RowTiles tiles_;  ///< of the output channels of one group
  WeightColumns columns_;
  std::int64_t padded_width_ = 0;
  std::int64_t row_blocks_ = 1;
  std::vector<Slice> slices_;
  std::int64_t dy_floats_ = 0;
  std::int64_t x_floats_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_plain_weight_gradient(const KernelQuery& query, Device& device) {
  return std::make_unique<ConvWeightGradientGemm<false>>(query, device);
}

void add_conv_weight_gradient_kernels(KernelList& list) {
  using Floats = ConvWeightGradientGemm<false>;
  using Dots = ConvWeightGradientGemm<true>;
  list.push_back(kernel_entry<Dots>(ConvWeightGradient::kName, "dots"));
  list.back().worth = &Dots::worth;
  list.push_back(kernel_entry<Floats>(ConvWeightGradient::kName, "gemm"));
  list.back().traffic = &Floats::traffic;
}

}  // namespace triptych::cpu
