// The model of the traffic of packed products: by hand where everything fits, and as caches grow.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm_traffic.h"

#include <gtest/gtest.h>

#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

/// 12 x 96 x 100 in two tiles of six rows, three panels of 32 columns, K in one visit.
PackedProduct small_product() {
  return {.batch = 2,
          .m = 12,
          .n = 90,
          .k = 100,
          .columns = 32,
          .width = 96,
          .row_tiles = 2,
          .panels = 3,
          .depth = 256,
          .b = 9600,
          .packed = 9600,
          .packings = 1,
          .source = 1000,
          .weights = 1200};
}

TEST(GemmTraffic, counts_what_instructions_load) {
  const auto levels = packed_traffic(small_product(), {1e9, 1e9});
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[0].level, "L1");
  // A column of each tile per panel, a row of the panel per tile, then packing, finishing, packing
  // A.
  const double panels = 100 * (12 * 3 + 32 * 3 * 2);
  EXPECT_EQ(levels[0].read_bytes, 4 * (2 * (panels + 9600 + 12 * 90) + 1200));
  const double writes = 2 * (12 * 96 + 12 * 90 + 9600) + 1200;
  EXPECT_EQ(levels[0].bytes, levels[0].read_bytes + 4 * writes);
  // Everything stays: the source and A come from memory once, C goes there once.
  EXPECT_EQ(levels[2].read_bytes, 4 * (1200 + 2 * 1000 + 1200));
  EXPECT_EQ(levels[2].bytes, levels[2].read_bytes + 4 * (2 * 12 * 90 + 1200));
}

TEST(GemmTraffic, batch_entries_that_share_no_a_load_each_its_own) {
  auto product = small_product();
  const auto shared = packed_traffic(product, {1e9, 1e9});
  product.distinct_a = 2;
  const auto apart = packed_traffic(product, {1e9, 1e9});
  EXPECT_EQ(apart[0].bytes, shared[0].bytes);
  EXPECT_EQ(apart[1].bytes, shared[1].bytes);
  EXPECT_EQ(apart[2].read_bytes, shared[2].read_bytes + 4 * 1200);
  // Where none stays, each entry loads it again anyway.
  product.distinct_a = 1;
  const auto none = packed_traffic(product, {64, 64});
  product.distinct_a = 2;
  EXPECT_EQ(packed_traffic(product, {64, 64})[2].bytes, none[2].bytes);
}

TEST(GemmTraffic, in_place_finishing_moves_nothing) {
  auto product = small_product();
  const auto apart = packed_traffic(product, {1e9, 1e9});
  product.in_place = true;
  const auto in_place = packed_traffic(product, {1e9, 1e9});
  const double c = 4 * 2 * 12 * 90;
  EXPECT_EQ(in_place[0].bytes, apart[0].bytes - 2 * c);
  EXPECT_EQ(in_place[1].bytes, apart[1].bytes - 2 * c);
  EXPECT_EQ(in_place[2].bytes, apart[2].bytes);
  // Sums that do not stay go there and back at each visit but the first.
  product.depth = 50;
  EXPECT_EQ(packed_traffic(product, {1e9, 8600})[2].bytes,
            packed_traffic(product, {1e9, 8700})[2].bytes + 2 * c);
}

TEST(GemmTraffic, packing_on_the_way_reads_nothing_twice) {
  auto product = small_product();
  const auto before = packed_traffic(product, {1e9, 1e9});
  product.fused = true;
  const auto fused = packed_traffic(product, {1e9, 1e9});
  // The first tile reads B where it lies instead of packed.
  EXPECT_EQ(fused[0].read_bytes, before[0].read_bytes - 4 * 2 * 9600);
  EXPECT_EQ(fused[0].bytes, before[0].bytes - 4 * 2 * 9600);
  EXPECT_EQ(fused[1].read_bytes, before[1].read_bytes - 4 * 2 * 9600);
  EXPECT_EQ(fused[2].bytes, before[2].bytes);
  // Instead of all of A first, its tiles, for each column of blocks.
  product.weights = 0;
  product.tile_packings = 1;
  const auto tiles = packed_traffic(product, {1e9, 1e9});
  EXPECT_EQ(tiles[0].bytes, fused[0].bytes + 4 * 2 * (2 * 1200 - 1200));
  EXPECT_EQ(tiles[2].bytes, fused[2].bytes - 4 * 2 * 1200);
}

TEST(GemmTraffic, by_tile_panels_come_again_instead_of_rows) {
  auto product = small_product();
  const auto by_panel = packed_traffic(product, {64, 1e9});
  product.by_tile = true;
  const auto by_tile = packed_traffic(product, {64, 1e9});
  // Three panels meet A once each, or two tiles meet B.
  EXPECT_EQ(by_panel[1].bytes - by_tile[1].bytes, 4 * 2 * (12 * 100 * (3 - 1) - 9600 * (2 - 1)));
}

TEST(GemmTraffic, grows_where_nothing_stays) {
  auto product = small_product();
  product.column_blocks = 3;
  product.row_blocks = 2;
  product.packings = 2;
  const auto fits = packed_traffic(product, {1e9, 1e9});
  const auto none = packed_traffic(product, {64, 64});
  EXPECT_EQ(none[0].bytes, fits[0].bytes);
  EXPECT_GT(none[1].read_bytes, fits[1].read_bytes);
  EXPECT_GT(none[2].read_bytes, fits[2].read_bytes);
}

/// The traffic of the operator's kernel "gemm" with operands of these shapes.
template <class AnyOp>
std::vector<LevelTraffic> gemm_traffic(Device& device, const AnyOp& op, const Shape& a,
                                       const Shape& b) {
  const std::vector<TensorSpec> specs = {{DType::F32, a}, {DType::F32, b}};
  const std::vector<Operand> inputs = {Operand::dense(specs[0]), Operand::dense(specs[1])};
  const std::vector<Operand> outputs = {Operand::dense(op.infer(specs)[0])};
  const std::vector<const Tensor*> constants(2, nullptr);
  const KernelQuery query = {op, inputs, outputs, Contract::Bf16Exact, constants};
  for (const auto& entry : device.kernels()) {
    if (entry.op == AnyOp::kName && entry.name == "gemm") return entry.traffic(query, device);
  }
  return {};
}

/// Elements that come from memory.
template <class AnyOp>
double loaded(const AnyOp& op, const Shape& a, const Shape& b) {
  const auto device = backend().open({.threads = 1});
  return gemm_traffic(*device, op, a, b).at(2).read_bytes / 4;
}

TEST(GemmTraffic, of_a_product_counts_each_matrix_once) {
  const MatMul op;
  EXPECT_EQ(loaded(op, {3, 24, 40}, {3, 40, 50}), 3 * (24 * 40 + 40 * 50));
  EXPECT_EQ(loaded(op, {24, 40}, {3, 40, 50}), 24 * 40 + 3 * 40 * 50);
  EXPECT_EQ(loaded(op, {2, 1, 24, 40}, {2, 3, 40, 50}), 2 * 24 * 40 + 6 * 40 * 50);
}

TEST(GemmTraffic, of_convolutions_counts_the_weights_of_all_groups) {
  const double x = 4 * 8 * 10 * 10, w = 12 * 4 * 3 * 3;  // packed first, then read
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  conv.group = 2;
  EXPECT_EQ(loaded(conv, {4, 8, 10, 10}, {12, 4, 3, 3}), x + 2 * w);
  ConvTranspose transposed;
  transposed.group = 2;
  EXPECT_EQ(loaded(transposed, {4, 8, 10, 10}, {8, 6, 3, 3}), x + 2 * (8 * 6 * 3 * 3));
  transposed.strides = {3, 3};
  EXPECT_EQ(loaded(transposed, {4, 8, 10, 10}, {8, 6, 3, 3}), x + 2 * (8 * 6 * 3 * 3));
  ConvWeightGradient gradient;
  gradient.kernel_shape = {3, 3};
  gradient.pads = {1, 1, 1, 1};
  gradient.group = 2;
  const double dy = 4 * 12 * 10 * 10;
  EXPECT_EQ(loaded(gradient, {4, 8, 10, 10}, {4, 12, 10, 10}), x + 2 * dy);
}

TEST(GemmTraffic, of_a_transposed_convolution_into_tiles_is_that_of_one_product) {
  const auto device = backend().open({.threads = 1});
  ConvTranspose tiles;
  tiles.strides = {2, 2};
  const auto own = gemm_traffic(*device, tiles, {4, 8, 10, 10}, {8, 6, 2, 2});
  const auto product = gemm_traffic(*device, ConvTranspose{}, {4, 8, 10, 10}, {8, 24, 1, 1});
  ASSERT_EQ(own.size(), product.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].bytes, product[i].bytes) << own[i].level;
    EXPECT_EQ(own[i].read_bytes, product[i].read_bytes) << own[i].level;
  }
}

TEST(GemmTraffic, of_a_convolution_falls_from_level_to_level_and_with_its_channels) {
  const auto device = backend().open({.threads = 1});
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  double last = 1e9;
  for (const std::int64_t channels : {8, 32, 128}) {
    const auto levels =
        gemm_traffic(*device, conv, {4, channels, 64, 64}, {channels, channels, 3, 3});
    ASSERT_EQ(levels.size(), 3U);
    EXPECT_GE(levels[0].read_bytes, levels[1].read_bytes);
    EXPECT_GE(levels[1].read_bytes, levels[2].read_bytes);
    // Operands are reused over the channels.
    const double macs = 4.0 * 64 * 64 * 9 * static_cast<double>(channels * channels);
    EXPECT_LT(levels[0].read_bytes / macs, last);
    last = levels[0].read_bytes / macs;
  }
}

}  // namespace
}  // namespace triptych::cpu
