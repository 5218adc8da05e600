// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/tile_gemm.h"

#include <gtest/gtest.h>

#include <bit>

#include "core/base/float16.h"
#include "core/ops/matmul.h"
#include "core/ops/quantized_conv.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

/// Element `i` of a line of a packed factor.
template <class Element>
std::uint32_t element_at(const std::vector<TileWord>& words, const TileFactor<Element>& factor,
                         std::int64_t line, std::int64_t i) {
  constexpr auto in_word = TileElements<Element>::kInWord;
  const auto step = i / kStepElements<Element>, word = i / in_word % kTileDepth;
  std::int64_t part = 0;
  while (factor.part(part).end <= step) ++part;
  const auto row = line % kTileRows;
  const auto at = factor.of_b ? word * kTileRows + row : row * kTileDepth + word;
  const auto place = factor.place(line / kTileRows, factor.part(part)) +
                     (step - factor.part(part).begin) * kStepWords + at;
  constexpr auto bits = 32 / in_word;
  return words[static_cast<std::size_t>(place)] >> (i % in_word * bits) & ((1U << bits) - 1);
}

template <class Element>
void expect_packed(std::int64_t lines, std::int64_t k, bool k_first) {
  constexpr auto in_word = TileElements<Element>::kInWord;
  RandomStream random(3, static_cast<std::uint64_t>(lines * 1000 + k));
  std::vector<Element> matrix(static_cast<std::size_t>(lines * k));
  for (auto& element : matrix) {
    if constexpr (in_word == 2) {
      element = random.uniform(-1, 1);
    } else {
      element = static_cast<Element>(random.below(256) - 128);
    }
  }
  TileFactor<Element> factor = {lines, k, k_first ? 1 : k, k_first ? lines : 1};
  for (const bool of_b : {false, true}) {
    factor.of_b = of_b;
    std::vector<TileWord> words(static_cast<std::size_t>(factor.words()), 0xABABABAB);
    for (std::int64_t panel = 0; panel < factor.panels(); ++panel)
      factor.pack(matrix.data(), panel, words.data());
    for (std::int64_t line = 0; line < factor.panels() * kTileRows; ++line) {
      for (std::int64_t i = 0; i < factor.steps() * kStepElements<Element>; ++i) {
        std::uint32_t expected = 0;
        if (line < lines && i < k) {
          const auto value =
              matrix[static_cast<std::size_t>(k_first ? i * lines + line : line * k + i)];
          if constexpr (in_word == 2) {
            expected = bf16_bits(value);
          } else {
            expected = static_cast<std::uint8_t>(value);
          }
        }
        ASSERT_EQ(element_at(words, factor, line, i), expected)
            << lines << " lines, k " << k << (k_first ? ", k first" : "") << (of_b ? ", of b" : "")
            << ": line " << line << ", element " << i;
      }
    }
  }
}

TEST(TileGemm, a_panel_has_every_element_at_its_place_and_zeros_around) {
  for (const std::int64_t lines : {1, 15, 16, 35})
    for (const std::int64_t k : {1, 3, 31, 64, 65, 300, 600})
      for (const bool k_first : {false, true}) {
        expect_packed<float>(lines, k, k_first);
        expect_packed<std::int8_t>(lines, k, k_first);
      }
}

TEST(TileGemm, tasks_fit_the_cache_and_suffice_for_all_threads) {
  for (const std::int64_t size : {1, 40, 200, 1024, 2048, 4096}) {
    for (const std::int64_t threads : {1, 2, 16}) {
      const auto task = tile_task(size, size, 1, 1 << 20, threads);
      EXPECT_LE(task.rows * task.columns * 4, 1 << 19) << size;
      EXPECT_EQ(task.rows % 64 + task.columns % 32, 0) << size;
      const auto count = ceil_div(size, task.rows) * ceil_div(size, task.columns);
      EXPECT_TRUE(count >= 4 * threads || task.rows * task.columns == 64 * 32)
          << size << ", " << threads << " threads: " << count;
    }
  }
}

/// The order of sums on the tile unit: in each step of 32 elements the even and the odd
/// ones are a chain each, and their sum is added to the result.
float unit_sum(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t k = 0; k < a.size(); k += 32) {
    float chains[2] = {};
    for (std::size_t i = k; i < std::min(k + 32, a.size()); ++i)
      chains[i % 2] = std::fma(round_to_bf16(a[i]), round_to_bf16(b[i]), chains[i % 2]);
    sum += chains[0] + chains[1];
  }
  return sum;
}

TEST(TileGemm, a_product_has_the_bits_of_its_steps_one_after_the_other) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 8, 8},
                                {33, 47, 320},
                                {97, 65, 321},
                                {130, 33, 700},
                                {40, 200, 1111}}) {
    const auto a = random_tensor({m, k}, 0), b = random_tensor({k, n}, 1);
    std::vector<Tensor> inputs;
    inputs.push_back(a.clone());
    inputs.push_back(b.clone());
    for (const int threads : {1, 3}) {
      const auto y = run_kernel(
          MatMul(), inputs, {.threads = threads, .contract = Contract::Bf16, .kernel = "tiles"});
      for (std::int64_t i = 0; i < m; i += 3) {
        const auto* row = a.as<float>().data() + i * k;
        for (std::int64_t j = 0; j < n; j += 5) {
          std::vector<float> column;
          for (std::int64_t l = 0; l < k; ++l) column.push_back(b.as<float>()[l * n + j]);
          ASSERT_EQ(std::bit_cast<std::uint32_t>(y[0].as<float>()[i * n + j]),
                    std::bit_cast<std::uint32_t>(unit_sum({row, row + k}, column)))
              << m << " x " << n << " x " << k << ": " << i << ", " << j;
        }
      }
    }
  }
}

template <class T>
Tensor random_integers(Shape shape, std::int64_t low, std::int64_t high, RandomStream& random) {
  Tensor tensor(TensorSpec{dtype_of<T>, std::move(shape)});
  for (auto& value : tensor.as<T>()) value = static_cast<T>(low + random.below(high - low + 1));
  return tensor;
}

TEST(TileGemm, integer_products_are_those_of_the_plain_kernel) {
  RandomStream random(9, 0);
  for (int i = 0; i < 24; ++i) {
    QuantizedConv op;
    op.group = 1 + random.below(3);
    if (i % 3 == 1) op.activation = "relu";
    const auto in = 1 + random.below(i % 4 == 0 ? 700 : 90), out = 1 + random.below(70);
    const auto channels = op.group * out;
    std::vector<Tensor> inputs;
    inputs.push_back(random_integers<std::int8_t>(
        {1 + random.below(3), op.group * in, 1 + random.below(80), 1 + random.below(3)}, -128, 127,
        random));
    inputs.push_back(random_integers<std::int8_t>({channels, in, 1, 1}, -128, 127, random));
    if (i % 2 == 1) {
      inputs.push_back(random_integers<std::int32_t>({channels}, -9999, 9999, random));
      inputs.push_back(random_integers<std::int32_t>({channels}, 300, 900, random));
      inputs.push_back(random_integers<std::int32_t>({channels}, 16, 18, random));
    }
    const auto expected = run_kernel(op, inputs, {.contract = Contract::Int8, .kernel = "gemm"});
    for (const int threads : {1, 3}) {
      for (const bool constant : {false, true}) {
        const auto y = run_kernel(op, inputs,
                                  {.threads = threads,
                                   .gap = constant ? 0 : 5,
                                   .constant = constant,
                                   .contract = Contract::Int8,
                                   .kernel = "product-tiles"});
        EXPECT_EQ(std::memcmp(y[0].bytes().data(), expected[0].bytes().data(), y[0].bytes().size()),
                  0)
            << to_string(inputs[0].spec()) << " by " << to_string(inputs[1].spec()) << ", "
            << threads << " threads, constant " << constant;
      }
    }
  }
}

TEST(TileGemm, wider_windows_are_no_products) {
  QuantizedConv op;
  RandomStream random(9, 1);
  std::vector<Tensor> inputs;
  inputs.push_back(random_integers<std::int8_t>({1, 8, 9, 9}, -5, 5, random));
  inputs.push_back(random_integers<std::int8_t>({8, 8, 3, 3}, -5, 5, random));
  EXPECT_THROW(run_kernel(op, inputs, {.contract = Contract::Int8, .kernel = "product-tiles"}),
               UnsupportedError);
}

}  // namespace
}  // namespace triptych::cpu
