// The product of Hopper under every schedule that a GPU may choose, and with one planted mistake
// each (hopper_mistakes.cmake), which the emulator has to find under every one of them. A mistake
// runs under two schedules. TRIPTYCH_ALL_CASES=1, as in the part `cases`, runs all four.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>

#include "core/runtime/kernel_fault.h"
#include "tests/unit/cuda/matmul_run.h"

namespace triptych::cuda {

namespace counted {
/// By its mistake's name.
std::vector<KernelEntry> hopper_mistakes();
}  // namespace counted

namespace {

using emulation::EmulatedDevice, emulation::OperandReads, emulation::Schedule;

/// Four tiles of 128 x 256, none of them whole, in ten steps through a ring of four stages.
const MatMulRun& problem() {
  static const MatMulRun run = {.m = 192, .n = 271, .k = 640};
  return run;
}
const std::vector<float>& right_values() {
  static const auto values = problem().expected();
  return values;
}

EmulatedDevice device_in(const std::string& mode) {
  return EmulatedDevice({.threads = 1, .extra = {{"emulation", mode}}});
}

const KernelEntry& entry_of(KernelTable table, std::string_view name) {
  return *std::ranges::find_if(table, [&](const KernelEntry& entry) {
    return entry.op == MatMul::kName && entry.name == name;
  });
}

const std::vector<Schedule>& schedules() {
  static const std::vector<Schedule> list = {
      {.seed = 0, .operands = OperandReads::Latest, .most_blocks = 1},
      {.seed = 1, .operands = OperandReads::Latest, .most_blocks = 2},
      {.seed = 2, .operands = OperandReads::Earliest, .most_blocks = 1},
      {.seed = 0, .operands = OperandReads::Earliest, .most_blocks = 132}};
  return list;
}

class Hopper : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, Hopper, testing::Values("plain", "checked"),
                         [](const auto& tested) { return tested.param; });

TEST_P(Hopper, has_the_same_bits_under_every_schedule) {
  auto device = device_in(GetParam());
  const auto& entry = entry_of(device.kernels(), "hopper");
  for (const Schedule& schedule : schedules()) {
    device.follow(schedule);
    EXPECT_TRUE(same_bits(problem().by(entry, device), right_values())) << schedule.seed;
  }
}

TEST_P(Hopper, takes_the_matrices_of_a_batch_one_after_another) {
  // The last step of k is not whole.
  const MatMulRun run = {.m = 72, .n = 130, .k = 200, .batch = 3};
  auto device = device_in(GetParam());
  device.follow({.seed = 1, .most_blocks = 2});
  EXPECT_TRUE(same_bits(run.by(entry_of(device.kernels(), "hopper"), device), run.expected()));
}

/// Findings of the emulator about a mistake under the schedules that are not drawn; which of its
/// consequences shows first depends on the order of threads. No kind: the values are wrong.
struct Mistake {
  const char* name;
  std::optional<FaultKind> kind;
  const char* says = "";
  unsigned most_blocks = 1;
  std::uint64_t most_steps = 10000;
};
void PrintTo(const Mistake& mistake, std::ostream* to) { *to << mistake.name; }

class HopperMistake : public testing::TestWithParam<Mistake> {
 protected:
  void run(std::uint64_t seed, OperandReads operands) {
    const auto& mistake = GetParam();
    const auto entries = counted::hopper_mistakes();
    auto device = device_in("checked");
    device.follow({seed, operands, mistake.most_blocks, mistake.most_steps});
    try {
      const auto values = problem().by(entry_of(entries, mistake.name), device);
      EXPECT_FALSE(mistake.kind) << "no fault";
      EXPECT_FALSE(same_bits(values, right_values()));
    } catch (const KernelFault& fault) {
      EXPECT_TRUE(fault.place().file.starts_with("backends/cuda/kernels/")) << fault.what();
      EXPECT_TRUE(mistake.kind) << fault.what();
      if (seed != 0) return;
      EXPECT_EQ(fault.kind(), mistake.kind) << fault.what();
      EXPECT_NE(fault.reason().find(mistake.says), std::string::npos) << fault.what();
    }
  }
};

TEST_P(HopperMistake, is_found_under_every_schedule) {
  run(0, OperandReads::Latest);
  run(2, OperandReads::Earliest);
  if (std::getenv("TRIPTYCH_ALL_CASES") == nullptr) return;
  run(0, OperandReads::Earliest);
  run(1, OperandReads::Latest);
}

using enum FaultKind;
INSTANTIATE_TEST_SUITE_P(
    Each, HopperMistake,
    testing::Values(Mistake{"stage_released_early", Race, "that a product of thread"},
                    Mistake{"stage_never_released", DivergentBarrier, "arrivals"},
                    Mistake{"no_wait_for_full", Race, "is still under way"},
                    Mistake{"no_wait_for_empty", Race, "overwrites"},
                    Mistake{"wrong_parity_of_full", Race, "is still under way"},
                    Mistake{"wrong_parity_of_empty", DivergentBarrier, "256 of 256 arrivals"},
                    Mistake{"parity_never_flips", Race, "overwrites"},
                    Mistake{"ring_begins_anew_with_each_tile", DivergentBarrier},
                    Mistake{"too_few_arrivals", DivergentBarrier},
                    Mistake{"too_many_arrivals", DivergentBarrier, "of 384 arrivals"},
                    Mistake{"barriers_not_published", Phase, "publish_barriers()"},
                    Mistake{"no_barrier_behind_begin", Race, "has begun the barrier"},
                    Mistake{"too_few_bytes_expected", Race, "is still under way"},
                    Mistake{"too_many_bytes_expected", DivergentBarrier, "49152 bytes are missing"},
                    Mistake{"copy_into_the_first_stage", Race, "overwrites what the copy"},
                    Mistake{"copy_missing", DivergentBarrier, "16384 bytes are missing"},
                    Mistake{"no_fence", UnderWay, "fence_products()"}, Mistake{"no_commit", Race},
                    Mistake{"no_wait_for_products", Race, "is still reading"},
                    Mistake{"wait_for_one_group_less", Race, "has read"},
                    Mistake{"no_last_wait", Race, "is still reading"},
                    Mistake{"sums_read_before_the_wait", std::nullopt},
                    Mistake{"sums_kept_for_the_next_tile", std::nullopt},
                    Mistake{"descriptor_off_by_a_row", Misaligned, "1024"},
                    Mistake{"descriptor_off_by_a_swizzle", Race, "has not waited"},
                    Mistake{"operands_of_two_stages", Race},
                    Mistake{"lanes_start_different_products", MissingLane, "different products"},
                    Mistake{"registers_not_left", DivergentBarrier, "registers"},
                    Mistake{"both_warpgroups_the_same_rows", Race, "another thread of the block"},
                    Mistake{"blocks_store_the_same_tile", Race, "another block", 2},
                    Mistake{"steps_without_end", Endless, "has not ended", 1, 100}),
    [](const auto& tested) { return tested.param.name; });

TEST(HopperMistakes, boxes_that_the_copy_engine_refuses_are_refused) {
  const auto entries = counted::hopper_mistakes();
  auto device = device_in("checked");
  for (const auto& [name, says] : {std::pair{"rows_of_no_multiple_of_16_bytes", "multiple of 16"},
                                   {"box_of_too_many_rows", "1 to 256"}}) {
    try {
      problem().by(entry_of(entries, name), device);
      ADD_FAILURE() << name;
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  }
}

TEST(HopperMistakes, the_copy_without_a_mistake_is_right) {
  const auto entries = counted::hopper_mistakes();
  auto device = device_in("checked");
  EXPECT_TRUE(same_bits(problem().by(entry_of(entries, "none"), device), right_values()));
}

}  // namespace
}  // namespace triptych::cuda
