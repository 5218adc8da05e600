// Traffic of attention between global memory and the chip: without its scores there, and with them.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_gradient.h"

#include <gtest/gtest.h>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/graph/passes/passes.h"
#include "core/runtime/executor.h"

namespace triptych::cuda {
namespace {

constexpr std::int64_t kHeadSize = 64, kTile = 64;
constexpr std::uint64_t kRowSectors = kHeadSize * sizeof(float) / 32;
/// Threads of a tile that read the sums of a query.
constexpr std::uint64_t kRowReaders = 16;

/// The counters of the tensor cores' kernel, of two heads that share one of keys and values.
KernelCounters tensor_core_counters(std::int64_t length) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  Graph graph;
  const TensorSpec heads = {DType::F32, Shape{1, 2, length, kHeadSize}};
  const TensorSpec shared = {DType::F32, Shape{1, 1, length, kHeadSize}};
  const std::vector<ValueId> inputs = {graph.add_input("q", heads), graph.add_input("k", shared),
                                       graph.add_input("v", shared)};
  graph.mark_output("y", graph.add_node(make_op(Attention{}), inputs).front());
  PlanOptions options;
  options.placement.contract = Contract::Bf16;
  StateStore states(device);
  Executor executor(make_plan(std::move(graph), {&device}, options), states);
  executor.run();
  return device.kernel_counters().at("flash_attention_tensor_core");
}

/// The counters of all kernels together, of one head of `length` queries and keys.
KernelCounters counters_of(std::int64_t length, bool flash, bool causal = false) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  Graph graph;
  const TensorSpec head = {DType::F32, Shape{1, 1, length, kHeadSize}};
  Attention op;
  op.is_causal = causal;
  const std::vector<ValueId> inputs = {graph.add_input("q", head), graph.add_input("k", head),
                                       graph.add_input("v", head)};
  graph.mark_output("y", graph.add_node(make_op(op), inputs).front());
  StateStore states(device);
  Executor executor(make_plan(flash ? std::move(graph) : expand_composites(graph), {&device}),
                    states);
  executor.run();
  KernelCounters all;
  for (const auto& [name, counters] : device.kernel_counters()) {
    EXPECT_EQ(name == "flash_attention", flash) << name;
    all += counters;
  }
  return all;
}

/// The counters of the gradient's kernels, of two heads that share one of keys and values.
std::map<std::string, KernelCounters> gradient_counters(std::int64_t length, bool causal = false) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  Graph graph;
  const TensorSpec heads = {DType::F32, Shape{1, 2, length, kHeadSize}};
  const TensorSpec shared = {DType::F32, Shape{1, 1, length, kHeadSize}};
  AttentionGradient op;
  op.is_causal = causal;
  const std::vector<ValueId> inputs = {
      graph.add_input("q", heads),  graph.add_input("k", shared),
      graph.add_input("v", shared), graph.add_input("y", heads),
      graph.add_input("dy", heads), graph.add_input("sums", {DType::F32, Shape{1, 2, length}})};
  const auto gradients = graph.add_node(make_op(op), inputs);
  for (const auto gradient : gradients) {
    graph.mark_output(graph.value(gradient).name, gradient);
  }
  StateStore states(device);
  Executor executor(make_plan(std::move(graph), {&device}), states);
  executor.run();
  const auto counters = device.kernel_counters();
  return {counters.begin(), counters.end()};
}

std::uint64_t loaded(const KernelCounters& counters) {
  return counters.total(MemorySpace::Global, MemoryAccess::Load).sectors;
}
std::uint64_t stored(const KernelCounters& counters) {
  return counters.total(MemorySpace::Global, MemoryAccess::Store).sectors;
}

std::uint64_t useful_loads(const KernelCounters& counters) {
  return counters.total(MemorySpace::Global, MemoryAccess::Load).useful_bytes;
}

TEST(FlashAttention, loads_queries_once_and_keys_and_values_once_per_tile_of_queries) {
  for (const std::int64_t length : {128, 256}) {
    const auto counters = counters_of(length, true);
    const auto rows = static_cast<std::uint64_t>(length);
    EXPECT_EQ(loaded(counters), rows * kRowSectors * (1 + 2 * rows / kTile)) << length;
    EXPECT_EQ(stored(counters), rows * kRowSectors) << length;
    EXPECT_EQ(counters.launches, 1U);
  }
}

TEST(FlashAttention, skips_the_keys_that_no_query_of_a_tile_sees) {
  // The first of four tiles of queries sees one tile of keys, the last all four.
  const auto counters = counters_of(256, true, true);
  EXPECT_EQ(loaded(counters), kRowSectors * (256 + 2 * kTile * (1 + 2 + 3 + 4)));
}

TEST(FlashAttention, has_no_bank_conflict) {
  const auto counters = counters_of(128, true);
  const auto loads = counters.total(MemorySpace::Shared, MemoryAccess::Load);
  EXPECT_EQ(loads.wavefronts, loads.requests * 4);  // all of them 16 bytes a lane
  const auto stores = counters.total(MemorySpace::Shared, MemoryAccess::Store);
  EXPECT_EQ(stores.wavefronts * 32 * sizeof(float), stores.useful_bytes);
}

TEST(FlashAttention, stores_grow_with_the_length_where_scores_in_memory_grow_with_its_square) {
  const auto short_flash = counters_of(128, true), long_flash = counters_of(256, true);
  EXPECT_EQ(stored(long_flash), 2 * stored(short_flash));
  const auto short_scores = counters_of(128, false), long_scores = counters_of(256, false);
  // Scores, scaled ones and weights, each stored by one kernel for the next, and the output.
  const auto stored_bytes = [](const KernelCounters& counters) {
    return counters.total(MemorySpace::Global, MemoryAccess::Store).useful_bytes;
  };
  EXPECT_EQ(stored_bytes(short_scores), (3 * 128 + kHeadSize) * 128 * sizeof(float));
  EXPECT_EQ(stored_bytes(long_scores), (3 * 256 + kHeadSize) * 256 * sizeof(float));
  EXPECT_LT(loaded(short_flash) + stored(short_flash), loaded(short_scores) + stored(short_scores));
  EXPECT_LT(loaded(long_flash) + stored(long_flash), loaded(long_scores) + stored(long_scores));
}

TEST(FlashAttentionGradient, moves_queries_once_per_tile_of_keys_and_the_other_way_round) {
  constexpr std::uint64_t kHeads = 2, kRows = 192, kTiles = kRows / kTile;
  const auto counters = gradient_counters(kRows);
  // q and dy of each head for each tile of keys. k and v once.
  const auto& of_keys = counters.at("flash_attention_key_gradient");
  EXPECT_EQ(of_keys.blocks, kTiles);
  const auto per_row = 2 * kHeadSize * sizeof(float);
  const auto statistics = 2 * kRows * sizeof(float) * kTiles * kHeads * kRowReaders;
  EXPECT_EQ(useful_loads(of_keys), (kHeads * kTiles + 1) * kRows * per_row + statistics);
  EXPECT_EQ(stored(of_keys), kRows * kRowSectors * 2);
  // k and v for each tile of the queries of each head. q and dy once.
  const auto& of_queries = counters.at("flash_attention_query_gradient");
  EXPECT_EQ(of_queries.blocks, kTiles * kHeads);
  EXPECT_EQ(useful_loads(of_queries), kHeads * (kTiles + 1) * kRows * per_row + statistics);
  EXPECT_EQ(stored(of_queries), kHeads * kRows * kRowSectors);
}

TEST(FlashAttentionGradient, skips_tiles_that_see_nothing) {
  const auto whole = gradient_counters(256), causal = gradient_counters(256, true);
  // 10 of 16 pairs of tiles.
  for (const std::string name :
       {"flash_attention_key_gradient", "flash_attention_query_gradient"}) {
    const auto products = [&](const auto& counters) {
      return counters.at(name).total(MemorySpace::Shared, MemoryAccess::Store).useful_bytes;
    };
    EXPECT_LT(products(causal), products(whole) * 12 / 16) << name;
  }
}

TEST(FlashAttentionGradient, has_no_bank_conflict) {
  for (const auto& [name, counters] : gradient_counters(128)) {
    const auto loads = counters.total(MemorySpace::Shared, MemoryAccess::Load);
    EXPECT_LE(loads.wavefronts, loads.requests * 4) << name;  // 16 bytes a lane
    const auto stores = counters.total(MemorySpace::Shared, MemoryAccess::Store);
    EXPECT_EQ(stores.wavefronts * 32 * sizeof(float), stores.useful_bytes) << name;
  }
}

TEST(TensorCoreAttention, multiplies_each_tile_twice_and_reads_it_in_whole_sectors) {
  const auto counters = tensor_core_counters(192);
  const std::uint64_t heads = 2, tiles = 3;
  EXPECT_EQ(counters.blocks, heads * tiles);
  EXPECT_EQ(counters.matrix_products, heads * 2 * 192 * 192 * kHeadSize / (16 * 8 * 16));
  const auto loads = counters.total(MemorySpace::Global, MemoryAccess::Load);
  const std::uint64_t head_bytes = 192 * kHeadSize * sizeof(std::uint16_t);
  EXPECT_EQ(loads.useful_bytes, heads * head_bytes * (1 + 2 * tiles));
  EXPECT_EQ(loads.sectors * 32, loads.useful_bytes);
  const auto stores = counters.total(MemorySpace::Global, MemoryAccess::Store);
  EXPECT_EQ(stores.useful_bytes, heads * 192 * kHeadSize * sizeof(float));
  EXPECT_EQ(stores.sectors * 32, stores.useful_bytes);
}

TEST(TensorCoreAttention, has_no_bank_conflict) {
  const auto counters = tensor_core_counters(128);
  const auto stores = counters.total(MemorySpace::Shared, MemoryAccess::Store);
  EXPECT_EQ(stores.wavefronts, stores.requests * 4);
  const auto loads = counters.total(MemorySpace::Shared, MemoryAccess::Load);
  EXPECT_EQ(loads.wavefronts, loads.requests * 4);  // 512 bytes each
}

}  // namespace
}  // namespace triptych::cuda
