// Matrix products on the CPU: every element is one chain of fused multiply-adds, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/host/flush_subnormals.h"
#include "core/ops/matmul.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

struct Sizes {
  std::int64_t m, n, k;
};

/// Around the sizes of tiles, panels and blocks of every instruction set, then random ones.
std::vector<Sizes> sizes() {
  std::vector<Sizes> list = {{1, 1, 1},      {1, 33, 7},    {14, 32, 256}, {15, 33, 257},
                             {6, 16, 64},    {29, 129, 3},  {300, 5, 600}, {3, 300, 513},
                             {400, 70, 264}, {290, 40, 300}};
  RandomStream random(3, 0);
  for (int i = 0; i < 12; ++i) {
    list.push_back({1 + random.below(70), 1 + random.below(140), 1 + random.below(300)});
  }
  return list;
}

/// The chain that bf16-exact promises, one element after the other.
Tensor chains(const MatMul& op, const Tensor& a, const Tensor& b) {
  const FlushSubnormals flush;
  const auto g = MatMulGeometry::of(op, a.spec(), b.spec());
  const TensorSpec specs[] = {a.spec(), b.spec()};
  Tensor y(op.infer(specs)[0]);
  float* out = y.as<float>().data();
  for (std::size_t entry = 0; entry < g.batch_a.size(); ++entry) {
    const float* from_a = a.as<float>().data() + g.batch_a[entry];
    const float* from_b = b.as<float>().data() + g.batch_b[entry];
    for (std::int64_t m = 0; m < g.m; ++m) {
      for (std::int64_t n = 0; n < g.n; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < g.k; ++k) {
          sum = std::fma(round_to_bf16(from_a[op.transpose_a ? k * g.m + m : m * g.k + k]),
                         round_to_bf16(from_b[op.transpose_b ? n * g.k + k : k * g.n + n]), sum);
        }
        *out++ = std::isnan(sum) ? std::bit_cast<float>(0x7FC00000) : sum;
      }
    }
  }
  return y;
}

/// Products on the tile unit: the same for any threads, and near the chains.
void expect_near_on_tiles(const MatMul& op, const std::vector<Tensor>& inputs,
                          const Tensor& expected) {
  std::vector<float> first;
  for (const int threads : {1, 2, 4}) {
    for (const bool constant : {false, true}) {
      const auto y = run_kernel(op, inputs,
                                {.threads = threads,
                                 .constant = constant,
                                 .contract = Contract::Bf16,
                                 .kernel = "tiles"});
      const auto values = y[0].as<float>();
      if (first.empty()) first.assign(values.begin(), values.end());
      EXPECT_EQ(std::memcmp(values.data(), first.data(), y[0].bytes().size()), 0) << threads;
    }
  }
  const auto chains = expected.as<float>();
  for (std::size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(std::isfinite(first[i]), std::isfinite(chains[i]));
    if (!std::isfinite(chains[i])) continue;
    ASSERT_NEAR(first[i], chains[i], 1e-4F + 1e-4F * std::abs(chains[i])) << i;
  }
}

void expect_chains(const MatMul& op, const Tensor& a, const Tensor& b) {
  const auto expected = chains(op, a, b);
  std::vector<Tensor> inputs;
  inputs.push_back(a.clone());
  inputs.push_back(b.clone());
  expect_near_on_tiles(op, inputs, expected);
  // In float32 the chain is the same once the operands are rounded.
  using Run = std::pair<Contract, const char*>;
  for (const auto& [contract, kernel] :
       {Run{Contract::Bf16Exact, "dots"}, Run{Contract::Bf16Exact, ""}, Run{Contract::F32, ""}}) {
    if (contract == Contract::F32) {
      for (auto& input : inputs)
        for (auto& value : input.as<float>()) value = round_to_bf16(value);
    }
    for (const int threads : {1, 2, 4}) {
      for (const bool constant : {false, true}) {
        const auto y = run_kernel(
            op, inputs,
            {.threads = threads, .constant = constant, .contract = contract, .kernel = kernel});
        ASSERT_EQ(y.size(), 1U);
        EXPECT_EQ(std::memcmp(y[0].bytes().data(), expected.bytes().data(), y[0].bytes().size()), 0)
            << to_string(a.spec()) << " x " << to_string(b.spec()) << ", " << threads
            << " threads, " << to_string(contract) << " " << kernel;
      }
    }
  }
}

TEST(Gemm, every_element_is_one_ascending_chain) {
  if (!microkernels().fused) GTEST_SKIP() << "no fused multiply-add";
  for (const auto& [m, n, k] : sizes()) {
    expect_chains(MatMul(), random_tensor({m, k}, 0), random_tensor({k, n}, 1));
  }
}

TEST(Gemm, transposed_operands_make_the_same_chains) {
  if (!microkernels().fused) GTEST_SKIP() << "no fused multiply-add";
  for (const auto& [m, n, k] : sizes()) {
    MatMul op;
    op.transpose_a = true;
    expect_chains(op, random_tensor({k, m}, 0), random_tensor({k, n}, 1));
    op.transpose_b = true;
    expect_chains(op, random_tensor({k, m}, 0), random_tensor({n, k}, 1));
  }
}

TEST(Gemm, batches_broadcast) {
  if (!microkernels().fused) GTEST_SKIP() << "no fused multiply-add";
  expect_chains(MatMul(), random_tensor({2, 1, 5, 40}), random_tensor({3, 40, 35}, 1));
  expect_chains(MatMul(), random_tensor({7, 9, 20}), random_tensor({20, 33}, 1));
  expect_chains(MatMul(), random_tensor({9, 20}), random_tensor({4, 20, 33}, 1));
  expect_chains(MatMul(), random_tensor({20}), random_tensor({4, 20, 33}, 1));
  expect_chains(MatMul(), random_tensor({4, 33, 20}), random_tensor({20}, 1));
}

TEST(Gemm, special_operands_round_and_flush_as_stated) {
  if (!microkernels().fused) GTEST_SKIP() << "no fused multiply-add";
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // Ties in both directions, overflow to infinity, and subnormals: one rounds up to the smallest
  // normal number, the others count as zero.
  const std::vector<float> specials = {0.0F,         -0.0F,         0x1.01p0F,     0x1.03p0F,
                                       0x1.fffp127F, -0x1.fffp127F, 0x0.fffp-126F, 0x1p-130F,
                                       -0x1p-127F,   0x1p-126F,     0x1p-100F,     infinity};
  const auto count = static_cast<std::int64_t>(specials.size());
  for (const float other : {1.0F, -0x1p-30F, 0x1p60F}) {
    const Tensor a(Shape{count, 1}, specials);
    const Tensor b(Shape{1, 17}, std::vector<float>(17, other));
    expect_chains(MatMul(), a, b);
    // An underflow makes -0, which must stay where an odd k has no partner.
    expect_chains(MatMul(), Tensor(Shape{count, 1}, std::vector<float>(specials.size(), 0x1p-90F)),
                  Tensor(Shape{1, 17}, std::vector<float>(17, -0x1p-90F)));
    MatMul swapped;
    swapped.transpose_a = swapped.transpose_b = true;
    expect_chains(swapped, b, a);
  }
}

TEST(Gemm, a_chain_that_fails_ends_in_the_canonical_nan) {
  if (!microkernels().fused) GTEST_SKIP() << "no fused multiply-add";
  // infinity - infinity and infinity * 0, for which x86 makes a NaN with the sign set.
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor a(Shape{2, 3}, std::vector<float>{infinity, -infinity, 1, 0, infinity, 2});
  expect_chains(MatMul(), a, Tensor(Shape{3, 17}, std::vector<float>(51, 1.0F)));
  expect_chains(MatMul(), a, Tensor(Shape{3, 17}, std::vector<float>(51, 0.0F)));
}

/// Infinity in `row` of a and 0 in `column` of b make the only NaN of a tile.
struct OneNan {
  std::int64_t rows, columns, row, column;

  std::vector<float> a() const {
    return with(rows, 1, row, std::numeric_limits<float>::infinity());
  }
  std::vector<float> b() const { return with(columns, -1, column, 0); }
  void expect(const std::vector<float>& c) const {
    const auto from_a = a(), from_b = b();
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const auto y = i / columns, x = i % columns;
      const float product =
          y == row && x == column
              ? std::bit_cast<float>(0x7FC00000)
              : from_a[static_cast<std::size_t>(y)] * from_b[static_cast<std::size_t>(x)] + 0;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(c[static_cast<std::size_t>(i)]),
                std::bit_cast<std::uint32_t>(product))
          << y << ", " << x << " of " << rows << " x " << columns << ", NaN in " << row << ", "
          << column;
    }
  }

 private:
  static std::vector<float> with(std::int64_t count, float all, std::int64_t at, float other) {
    std::vector<float> values(static_cast<std::size_t>(count), all);
    values[static_cast<std::size_t>(at)] = other;
    return values;
  }
};

TEST(Microkernels, one_nan_among_infinities_becomes_canonical_wherever_it_is) {
  const auto& kernels = microkernels();
  const std::int64_t offsets[] = {0};
  for (const std::int64_t columns : {kernels.columns, kernels.narrow_columns}) {
    const bool narrow = columns < kernels.columns;
    const std::int64_t highest = narrow ? 2 * kernels.max_rows : kernels.max_rows;
    for (std::int64_t rows = 1; rows <= highest; ++rows) {
      for (std::int64_t i = 0; i < rows * columns; ++i) {
        const OneNan problem = {rows, columns, i / columns, i % columns};
        const auto a = problem.a(), b = problem.b();
        std::vector<float> c(static_cast<std::size_t>(rows * columns));
        const MicroTile tile = {.a = a.data(),
                                .b = b.data(),
                                .c = c.data(),
                                .c_stride = columns,
                                .k_inner = 1,
                                .b_inner = columns};
        kernels.run_tile(rows, tile, narrow);
        problem.expect(c);
        if (narrow) continue;
        kernels.run_scattered[static_cast<std::size_t>(rows)](tile, offsets);
        problem.expect(c);
      }
    }
  }
}

TEST(Gemm, packing_makes_every_nan_the_canonical_one) {
  const std::uint32_t payloads[] = {0x7F800001, 0xFFC12345, 0x7FFFFFFF, 0xFF800001, 0x7FC00000};
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) {
    for (const auto bits : payloads) values.push_back(std::bit_cast<float>(bits));
  }
  std::vector<float> copied(values.size()), transposed(values.size());
  copy_matrix({values.data(), 10, 4, 10}, copied.data(), 10, Rounding::ToBf16);
  transpose_matrix({values.data(), 10, 4, 10}, transposed.data(), 4, Rounding::ToBf16);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(copied[i]), 0x7FC00000U);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(transposed[i]), 0x7FC00000U);
  }
}

TEST(Gemm, float32_is_the_same_chain_without_rounding) {
  // Operands that bfloat16 holds exactly: then both contracts compute one chain. Float32 reads rows
  // of a as they lie, except for many columns, and rows of whole pages where tiles are high.
  auto all = sizes();
  all.insert(all.end(), {{37, 50, 300}, {31, 40, 1024}, {31, 24, 2048}, {20, 1100, 40}});
  for (const auto& [m, n, k] : all) {
    std::vector<Tensor> inputs;
    inputs.push_back(random_tensor({m, k}));
    inputs.push_back(random_tensor({k, n}, 1));
    for (auto& input : inputs) {
      for (auto& value : input.as<float>()) value = round_to_bf16(value);
    }
    expect_same_bits(run_kernel(MatMul(), inputs, {.contract = Contract::F32}),
                     run_kernel(MatMul(), inputs, {.contract = Contract::Bf16, .kernel = "gemm"}));
  }
}

TEST(Gemm, refuses_int8_and_says_why) {
  const MatMul op;
  const std::vector<Operand> in(2, Operand::dense({DType::F32, {2, 2}}));
  const auto verdict = accepts_gemm({op, in, {in.data(), 1}, Contract::Int8, {}});
  EXPECT_FALSE(verdict.accepted);
  EXPECT_NE(verdict.reason.find("int8"), std::string::npos);
}

}  // namespace
}  // namespace triptych::cpu
