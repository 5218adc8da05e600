// Micro-benchmarks of the CPU's hot loops, one thread each, by Google Benchmark: the parts of the
// work that `triptych bench` times as a whole. The first figure to look at is the rate, FLOP/s or
// bytes/s. Bytes are those that the loop reads and writes, wherever they lie.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/direct/weight_tile.h"
#include "backends/cpu/gemm/packed_gemm.h"
#include "backends/cpu/winograd/winograd.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/pool.h"
#include "core/runtime/device.h"
#include "core/tensor/tensor.h"

namespace triptych::cpu {
namespace {

using benchmark::Counter;
using benchmark::State;

/// Floats between 0 and 1, aligned as the arena aligns.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : bytes_(allocate_aligned(static_cast<std::size_t>(count) * sizeof(float))) {
    for (std::int64_t i = 0; i < count; ++i) data()[i] = static_cast<float>(i % 97) / 97;
  }
  float* data() { return reinterpret_cast<float*>(bytes_.get()); }
  const float* data() const { return reinterpret_cast<const float*>(bytes_.get()); }
  std::byte* bytes() { return bytes_.get(); }

 private:
  AlignedBytes bytes_;
};

void report_flops(State& state, double flops) {
  state.counters["FLOP/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
}

void report_bytes(State& state, double bytes) {
  state.counters["bytes/s"] =
      Counter(bytes, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void report_floats(State& state, std::int64_t floats) {
  report_bytes(state, static_cast<double>(floats) * sizeof(float));
}

/// The highest register tile, over k steps with operands in sequence.
void micro_tile(State& state) {
  const auto& kernels = microkernels();
  const auto k = state.range(0);
  const Floats a(k * kernels.max_rows), b(k * kernels.columns);
  Floats c(std::int64_t{kernels.max_rows} * kernels.columns);
  const MicroTile tile = {.a = a.data(),
                          .b = b.data(),
                          .c = c.data(),
                          .c_stride = kernels.columns,
                          .k_inner = k,
                          .b_inner = kernels.columns};
  for (auto _ : state) {
    kernels.run_tile(kernels.max_rows, tile);
    benchmark::ClobberMemory();
  }
  report_flops(state, 2.0 * static_cast<double>(k) * kernels.max_rows * kernels.columns);
}

/// The tiles of a block of a product in their order: every row tile of A meets all panels of B.
/// C is one tile, or it lies in place, its rows 2048 apart.
void tiles_of_a_block(State& state) {
  constexpr std::int64_t depth = 256, row_tiles = 146, row = 2048;
  const auto& kernels = microkernels();
  const auto panels = state.range(0);
  const bool in_place = state.range(1) != 0;
  const Floats a(depth * kernels.max_rows * row_tiles), b(depth * kernels.columns * panels);
  Floats c(row * kernels.max_rows * row_tiles);
  for (auto _ : state) {
    for (std::int64_t t = 0; t < row_tiles; ++t) {
      for (std::int64_t p = 0; p < panels; ++p) {
        const auto place = t * kernels.max_rows * row + p * kernels.columns;
        kernels.run_tile(kernels.max_rows, MicroTile{.a = a.data() + t * kernels.max_rows * depth,
                                                     .b = b.data() + p * kernels.columns * depth,
                                                     .c = c.data() + (in_place ? place : 0),
                                                     .c_stride = in_place ? row : kernels.columns,
                                                     .k_inner = depth,
                                                     .b_inner = kernels.columns,
                                                     .accumulate = true});
      }
    }
    benchmark::ClobberMemory();
  }
  report_flops(state, 2.0 * static_cast<double>(depth * row_tiles * panels) * kernels.max_rows *
                          kernels.columns);
}

/// The highest tile of a gradient of weights, over 8 lines of a width, as a 3x3 window sees them.
void weight_tile(State& state) {
  constexpr std::int64_t lines = 8, plane = 4096;
  const auto& tiles = weight_tiles();
  const auto width = state.range(0);
  const Floats dy(plane * tiles.max_rows), x(lines * (width + 16));
  Floats sums(std::int64_t{tiles.max_rows} * kWeightTileColumns * tiles.lanes);
  const WeightTile tile = {.dy = dy.data(),
                           .x = {x.data(), x.data() + 1, x.data() + 2},
                           .dy_row = plane,
                           .dy_line = width,
                           .x_line = width + 16,
                           .lines = lines,
                           .width = width,
                           .sums = sums.data(),
                           .sum_row = std::int64_t{kWeightTileColumns} * tiles.lanes};
  const auto run = tiles.run[static_cast<std::size_t>(tiles.max_rows)][kWeightTileColumns];
  for (auto _ : state) {
    run(tile);
    benchmark::ClobberMemory();
  }
  report_flops(state,
               2.0 * static_cast<double>(lines * width) * tiles.max_rows * kWeightTileColumns);
}

/// Plain matrices as the operands of a PackedGemm. b is packed on the way.
class PlainOperands : public GemmOperands {
 public:
  explicit PlainOperands(const GemmShape& shape)
      : shape_(shape), a_(shape.m * shape.k), b_(shape.k * shape.n), c_(shape.m * shape.n) {}

  const float* rows(std::int64_t) const override { return a_.data(); }
  void pack(std::int64_t, Range k, Range n, float* panels) const override {
    pack_columns(b_.data(), shape_.n, false, k, n, panels, Rounding::None);
  }
  void store(std::int64_t, const GemmBlock& block) const override {
    copy_matrix({block.values, block.stride, block.m.size(), block.n.size()},
                c_.data() + block.m.begin * shape_.n + block.n.begin, shape_.n, Rounding::None);
  }

 private:
  GemmShape shape_;
  Floats a_, b_;
  mutable Floats c_;  // destination of store
};

void blocked_gemm(State& state) {
  const GemmShape shape = {.m = state.range(0), .n = state.range(1), .k = state.range(2)};
  const auto device = backend().open({.threads = 1});
  const PackedGemm gemm(shape, 1);
  const PlainOperands operands(shape);
  const auto scratch = allocate_aligned(gemm.scratch_bytes());
  for (auto _ : state) {
    device->submit(0, [&](Stream*) { gemm.run(operands, scratch.get()); });
  }
  report_flops(state, 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k));
}

/// Patches of 3x3 windows on a square image, 256 rows of the matrix at a time.
void patches(State& state) {
  PatchGrid grid = {.channels = state.range(0),
                    .in = {state.range(1), state.range(1)},
                    .out = {state.range(1), state.range(1)},
                    .stride = {1, 1}};
  for (std::int64_t tap = 0; tap < 9; ++tap) grid.taps.push_back({tap / 3 - 1, tap % 3 - 1});
  constexpr std::int64_t depth = 256;
  const Range columns = {0, std::min<std::int64_t>(grid.positions(), 512)};
  const Floats x(grid.channels * grid.in[0] * grid.in[1]);
  Floats panels(depth * round_up(columns.size(), microkernels().columns));
  for (auto _ : state) {
    pack_patches(grid, x.data(), {0, depth}, columns, panels.data(), Rounding::None);
    benchmark::ClobberMemory();
  }
  report_floats(state, 2 * depth * columns.size());
}

constexpr std::int64_t kImage = 128;

/// One channel of a square image, row of tiles by row of tiles, into panels.
void winograd_patches(State& state) {
  const WinogradGrid grid(static_cast<int>(state.range(0)), 1, {kImage, kImage});
  const std::int64_t panel = microkernels().columns, width = round_up(grid.columns, panel);
  const Floats plane(kImage * kImage);
  Floats v(grid.points() * width);
  for (auto _ : state) {
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      transform_patches(grid, {.plane = plane.data(),
                               .in = {kImage, kImage},
                               .first = {row * grid.tile - 1, -1},
                               .v = v.data(),
                               .point_stride = width,
                               .panel_stride = panel});
    }
    benchmark::ClobberMemory();
  }
  report_floats(state, kImage * kImage + grid.rows * grid.points() * grid.columns);
}

void winograd_outputs(State& state) {
  const WinogradGrid grid(static_cast<int>(state.range(0)), 1, {kImage, kImage});
  const Floats m(grid.points() * grid.columns);
  Floats plane(kImage * kImage);
  for (auto _ : state) {
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      transform_outputs(grid, {.m = m.data(),
                               .point_stride = grid.columns,
                               .plane = plane.data(),
                               .out = {kImage, kImage},
                               .first_row = row * grid.tile});
    }
    benchmark::ClobberMemory();
  }
  report_floats(state, kImage * kImage + grid.rows * grid.points() * grid.columns);
}

void winograd_filters(State& state) {
  const int tile = static_cast<int>(state.range(0)), points = (tile + 2) * (tile + 2);
  constexpr std::int64_t filters = 448;
  const Floats w(9 * filters);
  Floats u(points * filters);
  for (auto _ : state) {
    transform_filters(tile,
                      {.taps = w.data(), .count = filters, .u = u.data(), .point_stride = filters});
    benchmark::ClobberMemory();
  }
  report_floats(state, (9 + points) * filters);
}

/// A row of tiles of a block of channels. `rows` of the image belong to a tile.
template <class Transform>
void winograd_channels(State& state, int rows, const Transform& transform) {
  const int tile = static_cast<int>(state.range(0)), points = (tile + 2) * (tile + 2);
  const std::int64_t tiles = kImage / tile, pitch = tiles * tile + 2, lanes = winograd_lanes();
  const Floats lines(rows * pitch * lanes);
  Floats to(points * tiles * lanes);
  for (auto _ : state) {
    transform(tile, WinogradChannels{.lines = lines.data(),
                                     .pitch = pitch,
                                     .tiles = tiles,
                                     .to = to.data(),
                                     .point_stride = tiles * lanes,
                                     .tile_stride = lanes});
    benchmark::ClobberMemory();
  }
  report_floats(state, (rows * pitch + points * tiles) * lanes);
}

void winograd_patch_channels(State& state) {
  winograd_channels(state, static_cast<int>(state.range(0)) + 2, transform_patch_channels);
}

void winograd_gradient_channels(State& state) {
  winograd_channels(state, static_cast<int>(state.range(0)), transform_gradient_channels);
}

void winograd_sums(State& state) {
  const int tile = static_cast<int>(state.range(0)), points = (tile + 2) * (tile + 2);
  const auto lanes = winograd_lanes();
  const Floats sums(points * lanes);
  Floats taps(9 * lanes);
  for (auto _ : state) {
    transform_sums(tile, sums.data(), lanes, taps.data());
    benchmark::ClobberMemory();
  }
  report_floats(state, (9 + points) * lanes);
}

/// The kernel that the table gives an operator first, prepared, with operands of its own.
class Prepared {
 public:
  Prepared(const Op& op, const std::vector<Shape>& shapes)
      : device_(backend().open({.threads = 1})) {
    std::vector<TensorSpec> in_specs;
    in_specs.reserve(shapes.size());
    for (const auto& shape : shapes) in_specs.push_back({DType::F32, shape});
    const auto out_specs = op.infer(in_specs);
    bytes_ = op.cost(in_specs, out_specs).bytes;
    std::vector<Operand> in, out;
    for (const auto& spec : in_specs) {
      in.push_back(Operand::dense(spec));
      sources_.push_back(memory_.emplace_back(spec.shape.elements()).bytes());
    }
    for (const auto& spec : out_specs) {
      out.push_back(Operand::dense(spec));
      targets_.push_back(memory_.emplace_back(spec.shape.elements()).bytes());
    }
    for (const auto& [output, input] : op.updates(static_cast<int>(in.size()))) {
      targets_[static_cast<std::size_t>(output)] =
          const_cast<std::byte*>(sources_[static_cast<std::size_t>(input)]);
    }
    const std::vector<const Tensor*> constants(in.size());
    const KernelQuery query = {op, in, out, Contract::F32, constants};
    for (const auto& entry : kernel_table()) {
      if (kernel_ || entry.op != op.name() || !entry.accepts(query).accepted) continue;
      kernel_ = entry.prepare(query, *device_);
    }
    scratch_ = allocate_aligned(kernel_->scratch_bytes());
  }

  void run() {
    device_->submit(0, [&](Stream* stream) {
      kernel_->run({sources_, targets_, scratch_.get(), stream});
    });
  }
  /// That the operator must read and write.
  double bytes() const { return bytes_; }

 private:
  std::unique_ptr<Device> device_;
  std::vector<Floats> memory_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::unique_ptr<Kernel> kernel_;
  AlignedBytes scratch_;
  double bytes_ = 0;
};

/// `shapes` of an image [1, channels, side, side].
template <class Shapes>
void run_op(State& state, const Op& op, const Shapes& shapes) {
  Prepared kernel(op, shapes(state.range(0), state.range(1)));
  for (auto _ : state) kernel.run();
  report_bytes(state, kernel.bytes());
}

void batch_normalization(State& state, bool training) {
  BatchNormalization op;
  op.training_mode = training;
  run_op(state, op, [](auto c, auto side) {
    return std::vector<Shape>{{1, c, side, side}, {c}, {c}, {c}, {c}};
  });
}

void batch_normalization_gradient(State& state) {
  run_op(state, BatchNormalizationGradient{}, [](auto c, auto side) {
    const Shape image = {1, c, side, side};
    return std::vector<Shape>{image, image, {c}, {c}, {c}};
  });
}

template <class Pool>
Pool halving() {
  Pool pool;
  pool.kernel_shape = {2, 2};
  pool.strides = {2, 2};
  return pool;
}

void max_pool(State& state) {
  run_op(state, halving<MaxPool>(), [](auto c, auto side) {
    return std::vector<Shape>{{1, c, side, side}};
  });
}

void max_pool_gradient(State& state) {
  run_op(state, halving<MaxPoolGradient>(), [](auto c, auto side) {
    return std::vector<Shape>{{1, c, side, side}, {1, c, side / 2, side / 2}};
  });
}

void register_products() {
  benchmark::RegisterBenchmark("micro_tile", micro_tile)->ArgName("k")->Arg(16)->Arg(64)->Arg(256);
  benchmark::RegisterBenchmark("tiles_of_a_block", tiles_of_a_block)
      ->ArgNames({"panels", "in_place"})
      ->ArgsProduct({{1, 8, 16}, {0, 1}});
  benchmark::RegisterBenchmark("weight_tile", weight_tile)->ArgName("width")->Arg(32)->Arg(256);
  // Convolutions of a U-Net's levels as products: output channels, pixels, 9 x input channels.
  benchmark::RegisterBenchmark("blocked_gemm", blocked_gemm)
      ->ArgNames({"m", "n", "k"})
      ->Args({32, 16384, 288})
      ->Args({64, 4096, 576})
      ->Args({256, 256, 2304})
      ->Args({512, 64, 4608});
  benchmark::RegisterBenchmark("pack_patches", patches)
      ->ArgNames({"channels", "side"})
      ->Args({32, 128})
      ->Args({64, 64})
      ->Args({256, 16});
}

void register_winograd() {
  const std::pair<const char*, void (*)(State&)> transforms[] = {
      {"winograd_patches", winograd_patches},
      {"winograd_outputs", winograd_outputs},
      {"winograd_filters", winograd_filters},
      {"winograd_patch_channels", winograd_patch_channels},
      {"winograd_gradient_channels", winograd_gradient_channels},
      {"winograd_sums", winograd_sums}};
  for (const auto& [name, transform] : transforms) {
    benchmark::RegisterBenchmark(name, transform)->ArgName("tile")->Arg(4)->Arg(2);
  }
}

void register_ops() {
  const std::pair<const char*, void (*)(State&)> ops[] = {
      {"batch_normalization/infer", [](State& state) { batch_normalization(state, false); }},
      {"batch_normalization/train", [](State& state) { batch_normalization(state, true); }},
      {"batch_normalization_gradient", batch_normalization_gradient},
      {"max_pool", max_pool},
      {"max_pool_gradient", max_pool_gradient}};
  for (const auto& [name, op] : ops) {
    benchmark::RegisterBenchmark(name, op)
        ->ArgNames({"channels", "side"})
        ->Args({32, 128})
        ->Args({256, 16});
  }
}

}  // namespace
}  // namespace triptych::cpu

int main(int argc, char** argv) {
  triptych::cpu::register_products();
  triptych::cpu::register_winograd();
  triptych::cpu::register_ops();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
