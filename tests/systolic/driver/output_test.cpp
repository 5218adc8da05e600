// Programs for the output unit, written by hand: the effect of a store on an image in the
// accumulators. On RTL and twin side by side where the build has the RTL.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "systolic/driver/driver.h"
#include "systolic/twin/numerics.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

// Two images of 5 x 5 positions, four channels, as they are in the accumulators and at kPlain.
constexpr std::uint32_t kSide = 5, kImages = 2, kChannels = 4;
constexpr std::uint32_t kPositions = kImages * kSide * kSide;
constexpr std::uint32_t kPlain = 1 << 17, kResult = 1 << 18, kOperand = 1 << 19;

class OutputPrograms : public testing::Test {
 protected:
  OutputPrograms() {
    config_.dram = dram_preset("ideal", config_.clock_mhz);
    const bool rtl = std::ranges::count(rtl_machines(), config_.name) != 0;
    machine_ = open_machine(config_, rtl ? Simulation::Both : Simulation::Twin);
    for (std::uint32_t i = 0; i < kPositions * kChannels; ++i) put(2 * i, to_bf16(value(i)));
    for (std::uint32_t r = 0; r < kChannels; ++r)
      put(product_.w + 2 * (kChannels + 1) * r, to_bf16(1));
  }

  /// From -40 to 40, in no order.
  static float value(std::uint32_t i) { return static_cast<float>(i * 37 % 81) - 40; }
  static float value(std::uint32_t image, std::uint32_t y, std::uint32_t x, std::uint32_t c) {
    return value(((image * kSide + y) * kSide + x) * kChannels + c);
  }

  template <class T>
  void put(std::uint32_t address, T number) {
    std::memcpy(machine_->dram().data() + address, &number, sizeof number);
  }
  template <class T>
  T get(std::uint32_t address) {
    T number;
    std::memcpy(&number, machine_->dram().data() + address, sizeof number);
    return number;
  }

  /// Computes the image, then executes these instructions of the store unit.
  RunReport run(const std::string& text) {
    Program program = product_.program(config_);
    program.pop_back();
    for (const Instruction& instruction : assemble_program(text)) program.push_back(instruction);
    program.push_back(encode_halt());
    return machine_->run(program, {.record_times = true});
  }

  MachineConfig config_ = find_machine("mmu4");
  Product product_{kPositions, kChannels, kChannels, 0, 1 << 16, kPlain};
  std::unique_ptr<Machine> machine_;
};

constexpr const char* kWholeImages = "rows_left=1 columns_left=50 columns=4 count=50";

TEST_F(OutputPrograms, scale_and_bias_fold_a_batch_normalisation) {
  constexpr std::array<float, kChannels> kScale{2, -1, 0.5F, 0}, kBias{1, 2, -3, 4};
  for (std::uint32_t c = 0; c < kChannels; ++c) {
    put(kOperand + 4 * c, kScale[c]);
    put(kOperand + 16 + 4 * c, kBias[c]);
  }
  run(
      fmt::format("set_output out_height=1 out_width=50 step_x=8\n"
                  "load_registers file=1 columns=4 address={}\n"
                  "load_registers columns=4 address={}\n"
                  "store scale=1 bias=1 relu=1 narrow=1 address={} {}",
                  kOperand, kOperand + 16, kResult, kWholeImages));
  for (std::uint32_t i = 0; i < kPositions * kChannels; ++i) {
    const std::uint32_t c = i % kChannels;
    EXPECT_EQ(get<std::uint16_t>(kResult + 2 * i),
              to_bf16(std::max(value(i) * kScale[c] + kBias[c], 0.0F)));
  }
}

TEST_F(OutputPrograms, pools_images_with_odd_sides) {
  // The manual's wraps for w = h = 5: 2 w - 2 (w / 2) + 2 and w h - 2 w (h / 2 - 1) - 2 (w / 2)
  // + 2.
  const RunReport report = run(
      fmt::format("set_output out_height=2 out_width=2 step_x=16 wrap_y=16 wrap_n=16 pool_pitch=5 "
                  "pool_wrap_y=8 pool_wrap_n=13\n"
                  "store pool=1 address={} rows_left=2 columns_left=2 columns=4 count=8",
                  kResult));
  std::uint32_t address = kResult;
  for (std::uint32_t image = 0; image < kImages; ++image)
    for (std::uint32_t y = 0; y < 4; y += 2)
      for (std::uint32_t x = 0; x < 4; x += 2)
        for (std::uint32_t c = 0; c < kChannels; ++c, address += 4)
          EXPECT_EQ(get<float>(address),
                    std::max({value(image, y, x, c), value(image, y, x + 1, c),
                              value(image, y + 1, x, c), value(image, y + 1, x + 1, c)}));
  // The first position is presented six cycles after the pop, one more every four.
  const InstructionTimes times = report.times[report.times.size() - 2];
  EXPECT_EQ(times.end, times.start + 6 + 4 * 7 + 1);
}

TEST_F(OutputPrograms, a_mask_selects_what_the_relu_keeps) {
  run(
      fmt::format("set_output out_height=1 out_width=50 step_x=1\n"
                  "store mask=1 address={0} {2}\n"
                  "set_operand step_x=1\n"
                  "set_output out_height=1 out_width=50 step_x=16\n"
                  "store select=1 address={1} operand={0} {2}",
                  kOperand, kResult, kWholeImages));
  for (std::uint32_t i = 0; i < kPositions * kChannels; ++i) {
    EXPECT_EQ(get<std::uint8_t>(kOperand + i / 4) >> i % 4 & 1, value(i) > 0 ? 1 : 0);
    EXPECT_EQ(get<float>(kResult + 4 * i), std::max(value(i), 0.0F));
  }
}

TEST_F(OutputPrograms, a_residual_is_added_in_place_before_the_relu) {
  for (std::uint32_t i = 0; i < kPositions * kChannels; ++i)
    put(kOperand + 2 * i, to_bf16(value(i + 11)));
  run(
      fmt::format("set_output out_height=1 out_width=50 step_x=8\n"
                  "set_operand step_x=8\n"
                  "store residual=1 relu=1 narrow=1 address={0} operand={0} {1}",
                  kOperand, kWholeImages));
  for (std::uint32_t i = 0; i < kPositions * kChannels; ++i)
    EXPECT_EQ(get<std::uint16_t>(kOperand + 2 * i),
              to_bf16(std::max(value(i) + value(i + 11), 0.0F)));
}

TEST_F(OutputPrograms, a_layer_reads_what_the_one_before_left_in_the_buffer) {
  const RunReport report = run(fmt::format(
      "set_output out_height=1 out_width=50 step_x=1\n"
      "store buffer=1 narrow=1 relu=1 log2_group=2 address=128 {0} signal=compute\n"
      "weight_load address={1} pitch=8 rows=4 columns=4\n"
      "set_stream in_height=1 in_width=50 out_height=1 out_width=50 stride_x=1 step_x=1\n"
      "set_taps channels=4 kernel_width=1 log2_group=2\n"
      "matmul address=128 rows_left=1 columns_left=50 count=50 accumulator=64 "
      "wait=store signal=store\n"
      "set_output out_height=1 out_width=50 step_x=16\n"
      "store address={2} accumulator=64 {0} wait=compute",
      kWholeImages, product_.w, kResult));
  for (std::uint32_t i = 0; i < kPositions * kChannels; ++i)
    EXPECT_EQ(get<float>(kResult + 4 * i), std::max(value(i), 0.0F));
  EXPECT_EQ(report.counters.dram_bytes[3], 2U * 50 * 16) << "the plain store and the last one";
  EXPECT_EQ(report.counters.buffer_writes, 2U * 50 * 4) << "loaded and stored";
}

TEST_F(OutputPrograms, operands_are_asked_for_ahead_of_their_positions) {
  config_.dram.latency = 40;
  machine_ = open_machine(config_, Simulation::Twin);
  const RunReport report =
      run(fmt::format("set_output out_height=1 out_width=50 step_x=16\n"
                      "set_operand step_x=16\n"
                      "store residual=1 address={} operand={} {}",
                      kResult, kOperand, kWholeImages));
  const InstructionTimes times = report.times[report.times.size() - 2];
  // One wait for all: the first row is requested at t + 1 and arrives 40 cycles later.
  const std::uint64_t arrival = times.start + 1 + 40;
  EXPECT_EQ(times.end, arrival + 3 + 50);
  EXPECT_EQ(report.counters.dram_bytes[3], 3U * 50 * 16) << "result, operand, and the plain store";
}

}  // namespace
}  // namespace triptych::mmu
