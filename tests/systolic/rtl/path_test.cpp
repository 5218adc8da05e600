// Units between the buffer and the DRAM: address units, transposer and output unit, each
// against the manual's sentence about it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "Vlanes_bench.h"
#include "Vmmu_output.h"
#include "Vmmu_output_int8.h"
#include "Vmmu_output_stages.h"
#include "Vmmu_output_stages_int8.h"
#include "Vmmu_transposer.h"
#include "systolic/isa/isa.h"
#include "tests/systolic/rtl/clocked.h"

namespace triptych::mmu {
namespace {

constexpr std::size_t kRows = 4;
constexpr std::uint32_t kBufferRows = 64;

/// Stream walker and buffer, filled with the number of each element.
class Lanes : public testing::Test {
 protected:
  Lanes() {
    bench_->enable_i = 1;
    bench_->write_i = 1;
    for (std::uint32_t row = 0; row < kBufferRows; ++row) {
      bench_->write_row_i = row;
      for (std::size_t r = 0; r < kRows; ++r) set_element(bench_->write_data_i, r, number(row, r));
      bench_.tick();
    }
    bench_->write_i = 0;
  }
  static std::uint16_t number(std::uint32_t row, std::size_t bank) {
    return static_cast<std::uint16_t>(1 + row * kRows + bank);
  }
  void word(const Instruction& instruction) {
    std::memcpy(&bench_->word_i, instruction.words.data(), 32);
  }
  void set(const SetStream& stream, const SetTaps& taps) {
    word(encode(stream));
    bench_->set_stream_i = 1;
    bench_.tick();
    bench_->set_stream_i = 0;
    word(encode(taps));
    bench_->set_taps_i = 1;
    bench_.tick();
    bench_->set_taps_i = 0;
  }
  using Row = std::array<std::uint16_t, kRows>;
  /// Values that the lanes show in each cycle of matmuls, one after the other, from the first one's
  /// start on. Each transposed one begins at the lane after the last value of the one before.
  std::vector<Row> run(const std::vector<Matmul>& matmuls) {
    std::vector<Row> shown;
    std::size_t lane = 0;
    for (const Matmul& matmul : matmuls) {
      for (std::size_t p = 0; p < matmul.count; ++p) slot(matmul, p, lane, shown);
      lane = (lane + matmul.count) % kRows;
    }
    bench_->start_i = bench_->step_i = bench_->restart_i = 0;
    for (std::size_t left = 0; left < kRows + 2; ++left) tick(shown);
    return shown;
  }
  /// The cycle of slot p. The matmul's first value is at `lane`.
  void slot(const Matmul& matmul, std::size_t p, std::size_t lane, std::vector<Row>& shown) {
    word(encode(matmul));
    bench_->start_i = p == 0;
    bench_->start_lane_i = static_cast<std::uint8_t>(lane);
    bench_->step_i = p > 0;
    bench_->restart_i = p > 0 && matmul.transpose && (lane + p) % kRows == 0;
    tick(shown);
    bench_->enters_i = !matmul.transpose || p < kRows;
    bench_->entry_i = static_cast<std::uint8_t>(matmul.transpose ? lane : 0);
  }
  void tick(std::vector<Row>& shown) {
    bench_.tick();
    Row& row = shown.emplace_back();
    for (std::size_t r = 0; r < kRows; ++r) row[r] = element<std::uint16_t>(bench_->data_o, r);
    bench_->enters_i = 0;
  }

  Clocked<Vlanes_bench> bench_;
};

/// A 3 x 3 convolution with padding 1 over a 5 x 4 image of two channels, in groups of two.
constexpr int kHeight = 5, kWidth = 4;
SetStream image_stream() {
  return {.in_height = kHeight,
          .in_width = kWidth,
          .stride_y = 1,
          .stride_x = 1,
          .out_height = kHeight,
          .out_width = kWidth,
          .step_x = 1,
          .wrap_y = 1,
          .wrap_n = 1};
}
SetTaps three_by_three() {
  return {.channels = 2,
          .kernel_width = 3,
          .log2_group = 1,
          .step_dy = 1,
          .step_dx = 1,
          .restart_dx = -1,
          .jump_x = 1,
          .jump_y = kWidth - 2};
}

/// The manual's activation of position m and value k, read in `lane`.
std::uint16_t activation(int m, int k, int lane) {
  const int dy = k / 6 - 1, dx = k / 2 % 3 - 1;
  const int y = m / kWidth + dy, x = m % kWidth + dx;
  if (y < 0 || y >= kHeight || x < 0 || x >= kWidth) return 0;
  const auto row = static_cast<std::uint32_t>(y * kWidth + x);
  return static_cast<std::uint16_t>(1 + row * kRows + static_cast<unsigned>(lane));
}

Matmul tile(int k, std::uint32_t count, bool transpose) {
  const int dy = k / 6 - 1, dx = k / 2 % 3 - 1;
  return {.transpose = transpose,
          .rows_left = kHeight,
          .columns_left = kWidth,
          .count = count,
          .channel = static_cast<std::uint32_t>(k % 2),
          .kernel_x = static_cast<std::uint32_t>(k / 2 % 3),
          .dy = dy,
          .dx = dx,
          .offset = dy * kWidth + dx};
}

// A lane answers a request in the next cycle: data[t] is the answer of cycle t.
TEST_F(Lanes, walk_a_convolution_s_positions_and_taps) {
  set(image_stream(), three_by_three());
  for (const int first : {0, 4, 8, 12}) {
    const auto data = run({tile(first, kHeight * kWidth, false)});
    for (int m = 0; m < kHeight * kWidth; ++m)
      for (int r = 0; r < 4; ++r)
        ASSERT_EQ(data.at(static_cast<std::size_t>(m + 1 + r)).at(static_cast<std::size_t>(r)),
                  activation(m, first + r, r))
            << "position " << m << ", value " << first + r;
  }
}

TEST_F(Lanes, meet_each_value_of_a_transposed_stream_with_all_positions) {
  set(image_stream(), three_by_three());
  const auto data = run({tile(0, 16, true)});
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 4; ++i)
      ASSERT_EQ(data.at(static_cast<std::size_t>(k + 1 + i)).at(static_cast<std::size_t>(k % 4)),
                activation(i, k, k % 4))
          << "position " << i << ", value " << k;
}

TEST_F(Lanes, go_on_at_the_next_lane_with_values_that_abut) {
  set(image_stream(), three_by_three());
  Matmul second = tile(4, 10, true);
  second.address = second.y = 1;  // another row of the image
  second.address *= kWidth;
  const auto data = run({tile(0, 6, true), second});
  for (int slot = 0; slot < 16; ++slot)
    for (int i = 0; i < 4; ++i) {
      const int lane = slot % 4;
      const auto expected =
          slot < 6 ? activation(i, slot, lane) : activation(kWidth + i, 4 + slot - 6, lane);
      ASSERT_EQ(data.at(static_cast<std::size_t>(slot + 1 + i)).at(static_cast<std::size_t>(lane)),
                expected)
          << "position " << i << ", slot " << slot;
    }
}

TEST(Transposer, gives_row_i_lane_p_mod_rows_in_transposed_slots_and_lane_i_in_others) {
  Clocked<Vmmu_transposer> transposer;
  std::mt19937 random(11);
  struct Slot {
    bool transpose = false;
    std::size_t lane = 0;
  };
  std::vector<Slot> slots;  // slots[t] reaches row 0 in cycle t + 1
  transposer->enable_i = 1;
  for (std::size_t t = 0; t < 2'000; ++t) {
    slots.push_back({.transpose = random() % 2 != 0, .lane = random() % kRows});
    transposer->transpose_i = slots.back().transpose;
    transposer->lane_i = static_cast<std::uint8_t>(slots.back().lane);
    for (std::size_t r = 0; r < kRows; ++r)
      set_element(transposer->data_i, r, static_cast<std::uint16_t>(random()));
    transposer.settle();
    for (std::size_t r = 0; r < kRows && r + 1 <= t; ++r) {
      const Slot slot = slots[t - 1 - r];
      ASSERT_EQ(element<std::uint16_t>(transposer->act_o, r),
                element<std::uint16_t>(transposer->data_i, slot.transpose ? slot.lane : r))
          << "cycle " << t << " row " << r;
    }
    transposer.tick();
  }
}

/// The output unit of one PE kind, with Number in its accumulators: of one stage, or of eleven.
template <class Model, class Number>
class OutputOf : public testing::Test {
 protected:
  using Row = std::array<Number, kRows>;
  static constexpr bool kHasStages = requires(Model & model) { model.step_i; };

  OutputOf() {
    if constexpr (kHasStages) output_->step_i = 1;
  }

  void load(std::uint32_t file, const Row& row, std::uint16_t columns = kRows) {
    for (std::size_t c = 0; c < kRows; ++c) set_element(output_->registers_data_i, c, row[c]);
    output_->registers_file_i = static_cast<std::uint8_t>(file);
    output_->columns_i = columns;
    output_->registers_write_i = 1;
    output_.tick();
    output_->registers_write_i = 0;
  }
  /// Values that a store makes of a position's rows.
  template <class Shown>
  void expect(const Store& store, const std::vector<Row>& rows, const std::vector<Shown>& expected,
              const void* operand = nullptr) {
    if (operand != nullptr) std::memcpy(&output_->operand_i, operand, sizeof output_->operand_i);
    output_->flags_i = encode(store).words[0] >> 16;
    output_->columns_i = static_cast<std::uint16_t>(store.columns > 0 ? store.columns : kRows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t c = 0; c < kRows; ++c) set_element(output_->data_i, c, rows[i][c]);
      output_->first_i = i == 0;
      output_->last_i = i + 1 == rows.size();
      output_->valid_i = 1;
      output_.tick();
    }
    output_->valid_i = 0;
    output_->data_i[0] = 0;
    for (int cycle = 0; cycle < (kHasStages ? 11 : 1); ++cycle) output_.tick();
    for (std::size_t c = 0; c < expected.size(); ++c)
      EXPECT_EQ(element<Shown>(output_->data_o, c), expected[c]) << "column " << c;
  }

  Clocked<Model> output_;
};

template <class Model>
class Output : public OutputOf<Model, float> {};
template <class Model>
class OutputInt8 : public OutputOf<Model, std::int32_t> {};

using Models = testing::Types<Vmmu_output, Vmmu_output_stages>;
TYPED_TEST_SUITE(Output, Models);
using ModelsInt8 = testing::Types<Vmmu_output_int8, Vmmu_output_stages_int8>;
TYPED_TEST_SUITE(OutputInt8, ModelsInt8);

TYPED_TEST(Output, adds_the_biases_that_were_loaded_then_rectifies) {
  this->load(LoadRegisters::kBias, {1, 1, 1, 1});
  this->load(LoadRegisters::kBias, {0.5F, -8, 100, 100}, 2);
  this->template expect<float>({}, {{1, 2, 3, -4}}, {1, 2, 3, -4});
  this->template expect<float>({.bias = true}, {{1, 2, 3, -4}}, {1.5F, -6, 4, -3});
  this->template expect<float>({.bias = true, .relu = true}, {{1, 2, 3, -4}}, {1.5F, 0, 4, 0});
}

TYPED_TEST(Output, scales_before_it_adds_the_bias) {
  this->load(LoadRegisters::kBias, {1, 1, 1, 1});
  this->load(LoadRegisters::kMultiplier, {2, -2, 0.5F, 0});
  this->template expect<float>({.bias = true, .scale = true}, {{3, 3, 3, 3}}, {7, -5, 2.5F, 1});
}

TYPED_TEST(Output, packs_bf16_without_gaps_and_holds_it) {
  typename TestFixture::Row values;
  for (std::size_t c = 0; c < kRows; ++c)
    values[c] = std::bit_cast<float>(0x3F808000U + 0x10000U * static_cast<unsigned>(c));
  this->template expect<std::uint16_t>({.narrow = true}, {values},
                                       {0x3F80, 0x3F82, 0x3F82, 0x3F84});  // ties
}

TYPED_TEST(Output, pools_what_is_scaled_and_rectifies_after) {
  this->load(LoadRegisters::kMultiplier, {1, -1, 1, 1});
  const std::vector<typename TestFixture::Row> rows{
      {1, 1, -5, -4}, {3, 3, -4, -3}, {2, 2, -3, -2}, {-9, -9, -2, -1}};
  this->template expect<float>({.scale = true, .pool = true}, rows, {3, 9, -2, -1});
  this->template expect<float>({.relu = true, .scale = true, .pool = true}, rows, {3, 9, 0, 0});
}

TYPED_TEST(Output, keeps_a_pool_s_first_value_unless_another_is_larger) {
  const float nan = std::bit_cast<float>(0x7FC00000U);
  this->template expect<std::uint32_t>({.pool = true}, {{nan, 1, -0.0F, 0}, {1, nan, 0, -0.0F}},
                                       {0x7FC00000U, 0x3F800000U, 0x80000000U, 0});
}

TYPED_TEST(Output, masks_what_is_above_zero) {
  const float nan = std::bit_cast<float>(0x7FC00000U);
  this->template expect<std::uint8_t>({.mask = true}, {{1, 0, -1, 1e-38F}}, {0b1001});
  this->template expect<std::uint8_t>({.mask = true}, {{nan, -0.0F, 5, 1}}, {0b1100});
  this->template expect<std::uint8_t>({.mask = true, .columns = 3}, {{1, 1, 1, 1}}, {0b0111});
}

TYPED_TEST(Output, adds_a_residual_of_the_result_s_format_before_the_relu) {
  const typename TestFixture::Row residual{1, -10, 0.5F, -0.0F};
  this->template expect<float>({.residual = true}, {{1, 2, 3, -4}}, {2, -8, 3.5F, -4},
                               residual.data());
  this->template expect<float>({.relu = true, .residual = true}, {{1, 2, 3, -4}}, {2, 0, 3.5F, 0},
                               residual.data());
  const std::array<std::uint16_t, 8> narrow{0x3F80, 0xC000, 0x7FC1, 0x8000};  // 1, -2, NaN, -0
  this->template expect<std::uint16_t>({.narrow = true, .residual = true}, {{1, 2, 3, -4}},
                                       {0x4000, 0, 0x7FC0, 0xC080}, narrow.data());
}

TYPED_TEST(Output, selects_by_the_bits_of_a_mask_after_the_pool) {
  const std::array<std::uint8_t, 16> mask{0b0101};
  this->template expect<float>({.select = true}, {{1, 2, -3, 4}}, {1, 0, -3, 0}, mask.data());
  this->template expect<float>({.pool = true, .select = true}, {{1, 2, -3, 4}, {5, 6, -7, 8}},
                               {5, 0, -3, 0}, mask.data());
}

TYPED_TEST(OutputInt8, requantizes_after_the_bias_and_before_the_relu) {
  this->load(LoadRegisters::kBias, {1, 1, 1, 1});
  this->load(LoadRegisters::kMultiplier, {1, 1, -1, 0x40000000});
  this->load(LoadRegisters::kShift, {1, 2, 1, 1});
  this->template expect<std::int32_t>({.bias = true, .scale = true}, {{4, 9, 4, 1000}},
                                      {3, 3, -2, 0x7FFFFFFF});
  this->template expect<std::int32_t>({.bias = true, .relu = true, .scale = true},
                                      {{4, 9, 4, -1000}}, {3, 3, 0, 0});
}

TYPED_TEST(OutputInt8, packs_int8_without_gaps) {
  this->template expect<std::int8_t>({.narrow = true}, {{127, 128, -128, -1000}},
                                     {127, 127, -128, -128});
}

TYPED_TEST(OutputInt8, adds_a_residual_without_wrapping) {
  const typename TestFixture::Row wide{1, -1, 0x7FFFFFFF, -0x7FFFFFFF};
  this->template expect<std::int32_t>({.residual = true}, {{1, 1, 0x7FFFFFFF, -0x7FFFFFFF}},
                                      {2, 0, 0x7FFFFFFF, -0x7FFFFFFF - 1}, wide.data());
  const std::array<std::int8_t, 16> narrow{-1, 127, -128, 5};
  this->template expect<std::int8_t>({.narrow = true, .residual = true}, {{1, 1, -1, 2}},
                                     {0, 127, -128, 7}, narrow.data());
}

TYPED_TEST(OutputInt8, pools_and_masks_integers) {
  const std::vector<typename TestFixture::Row> rows{{1, -5, 0, -1}, {-3, -7, 0, 2}};
  this->template expect<std::int32_t>({.pool = true}, rows, {1, -5, 0, 2});
  this->template expect<std::uint8_t>({.pool = true, .mask = true}, rows, {0b1001});
}

}  // namespace
}  // namespace triptych::mmu
