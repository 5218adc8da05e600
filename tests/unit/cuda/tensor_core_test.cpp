// The tensor-core and copy types in the emulator: layouts against plain loops, banks, and the
// findings when a kernel does not wait.
// SPDX-License-Identifier: Apache-2.0
#define TRIPTYCH_COUNTED

#include "backends/cuda/kernels/hopper.cuh"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/kernels/divisor.h"
#include "core/base/random.h"
#include "tests/unit/cuda/launch_bench.h"

namespace triptych::cuda::counted {
namespace {

constexpr int kDepth = 64;

/// a [16, 64] and b [8, 64] (rows along k) in one tile of 32 rows, or [64, 64] each with k down.
struct Operands {
  Swizzled<64> a, b;
};

template <bool kWait, bool kBarrier>
void fill(Operands& tiles, Global<const BFloat16> a, Global<const BFloat16> b) {
  CopyQueue queue;
  for (int i = static_cast<int>(threadIdx.x); i < 64 * 8; i += static_cast<int>(blockDim.x)) {
    queue.copy(tiles.a, i / 8, i % 8, a, i * 8, true);
    queue.copy(tiles.b, i / 8, i % 8, b, i * 8, i / 8 < 60);
    queue.commit();
  }
  if constexpr (kWait) queue.wait<0>();
  if constexpr (kBarrier) __syncthreads();
}

void write_sums(const FragmentC& c, Global<float> y) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) y[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c.sums[i];
}

/// One warp: y [16, 8] = a b of the first 16 rows of a and 8 of b.
template <bool kWait, bool kBarrier>
void product_kernel(Global<const BFloat16> a, Global<const BFloat16> b, Global<float> y) {
  auto& tiles = shared<Operands>();
  fill<kWait, kBarrier>(tiles, a, b);
  if (threadIdx.x >= 32) return;
  const int lane = static_cast<int>(threadIdx.x);
  FragmentC c;
  for (int k = 0; k < kDepth; k += 16) {
    FragmentA of_a;
    Pair pairs[4];
    load_matrices(tiles.a, lane % 16, k / 8 + lane / 16, of_a.pairs);
    load_matrices(tiles.b, lane / 16 * 8 + lane % 8, k / 8 + lane / 8 % 2, pairs);
    multiply(c, of_a, {{pairs[0], pairs[1]}});
  }
  write_sums(c, y);
}

/// The same of operands that lie the other way: a [k, m] and b [k, n].
void transposed_kernel(Global<const BFloat16> a, Global<const BFloat16> b, Global<float> y) {
  auto& tiles = shared<Operands>();
  fill<true, true>(tiles, a, b);
  const int lane = static_cast<int>(threadIdx.x);
  FragmentC c;
  for (int k = 0; k < kDepth; k += 16) {
    FragmentA of_a;
    Pair pairs[4];
    load_matrices_transposed(tiles.a, k + lane / 16 * 8 + lane % 8, lane / 8 % 2, of_a.pairs);
    load_matrices_transposed(tiles.b, k + lane / 8 % 2 * 8 + lane % 8, lane / 16, pairs);
    multiply(c, of_a, {{pairs[0], pairs[1]}});
  }
  write_sums(c, y);
}

Array<BFloat16> random_matrix(std::uint64_t seed) {
  Array<BFloat16> matrix(64 * 64);
  RandomStream random(seed, 0);
  for (auto& value : matrix.values) value = BFloat16(random.normal());
  return matrix;
}

/// y[m, n] as one chain over k. `zero_from`: rows of b from there on were filled with zeros.
std::vector<float> product(const Array<BFloat16>& a, const Array<BFloat16>& b, bool k_down,
                           int zero_from) {
  std::vector<float> y;
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      float sum = 0;
      for (int k = 0; k < kDepth; ++k) {
        const auto at = [&](int row) {
          return static_cast<std::size_t>(k_down ? k * 64 + row : row * 64 + k);
        };
        const bool zero = (k_down ? k : n) >= zero_from;
        sum = std::fma(static_cast<float>(a.values[at(m)]),
                       zero ? 0.0F : static_cast<float>(b.values[at(n)]), sum);
      }
      y.push_back(sum);
    }
  }
  return y;
}

struct Trial {
  Bench bench{"checked"};
  Array<BFloat16> a = random_matrix(1), b = random_matrix(2);
  Array<float> y{16 * 8};

  void of(unsigned threads,
          void (*kernel)(Global<const BFloat16>, Global<const BFloat16>, Global<float>)) {
    const Global<const BFloat16> x = {a.values.data(), 64 * 64}, w = {b.values.data(), 64 * 64};
    bench.run({{1}, {threads}, sizeof(Operands)}, kernel, x, w, y.global());
  }
};

TEST(TensorCore, products_are_chains_over_k_in_the_documented_layout) {
  Trial trial;
  trial.of(64, product_kernel<true, true>);
  EXPECT_EQ(trial.y.values, product(trial.a, trial.b, false, 60));
  EXPECT_EQ(trial.bench.counters().matrix_products, 4U);
}

TEST(TensorCore, transposed_loads_take_operands_with_k_down) {
  Trial trial;
  trial.of(32, transposed_kernel);
  EXPECT_EQ(trial.y.values, product(trial.a, trial.b, true, 60));
}

TEST(TensorCore, copies_and_loads_meet_no_bank_twice) {
  Trial trial;
  trial.of(32, transposed_kernel);
  trial.of(64, product_kernel<true, true>);
  for (const auto access : {emulation::Access::Load, emulation::Access::Store}) {
    const auto shared = trial.bench.counters().total(emulation::Space::Shared, access);
    EXPECT_EQ(shared.wavefronts, shared.requests * 4);  // 16 bytes a lane, by quarter warps
  }
}

TEST(TensorCore, a_copy_that_is_not_waited_for_leaves_no_numbers) {
  Trial trial;
  trial.of(64, product_kernel<false, true>);
  EXPECT_TRUE(std::isnan(trial.y.values[0]));
}

TEST(TensorCore, a_copy_of_another_thread_needs_a_barrier) {
  Trial trial;
  try {
    trial.of(64, product_kernel<true, false>);
    ADD_FAILURE() << "no fault";
  } catch (const KernelFault& fault) {
    EXPECT_EQ(fault.kind(), FaultKind::Race) << fault.what();
    EXPECT_TRUE(fault.place().file.ends_with("tensor_core_test.cpp")) << fault.what();
  }
}

struct Phases {
  PhaseBarrier full;
};

/// Three of four copies of 128 bytes are requested when `kAll` is not set.
template <bool kAll>
void phase_kernel(Global<float> y) {
  auto& phases = shared<Phases>();
  if (threadIdx.x == 0) phases.full.begin(1);
  __syncthreads();
  if (threadIdx.x == 0) {
    phases.full.expect(512);
    for (int i = 0; i < (kAll ? 4 : 3); ++i) phases.full.come(128);
  } else {
    phases.full.wait(0);
    y[threadIdx.x] = 1;
  }
}

TEST(PhaseBarrier, waits_for_all_bytes_and_says_who_waits_for_ever) {
  Bench bench("checked");
  Array<float> y(64);
  bench.run({{1}, {64}, sizeof(Phases)}, phase_kernel<true>, y.global());
  EXPECT_EQ(y.values[63], 1);
  try {
    bench.run({{1}, {64}, sizeof(Phases)}, phase_kernel<false>, y.global());
    ADD_FAILURE() << "no fault";
  } catch (const KernelFault& fault) {
    EXPECT_EQ(fault.kind(), FaultKind::DivergentBarrier) << fault.what();
    EXPECT_EQ(fault.place().thread.x, 1U) << fault.what();
  }
}

TEST(Divisor, divides_as_the_processor_does) {
  constexpr std::uint32_t kLast = 0x7FFFFFFF;
  for (const std::uint32_t divisor : {1U, 2U, 3U, 7U, 9U, 64U, 641U, 65536U, 65537U, kLast}) {
    const Divisor by(divisor);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      for (const auto n :
           {i, kLast - i, (i * 2147483 + divisor - 1) & kLast, divisor * i & kLast}) {
        const auto number = static_cast<std::uint32_t>(n);
        ASSERT_EQ(by.divide(number), number / divisor) << number << " / " << divisor;
      }
    }
  }
}

}  // namespace
}  // namespace triptych::cuda::counted
