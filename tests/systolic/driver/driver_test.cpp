// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "systolic/driver/pair.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

/// bf16 ones in a row from address 0 on.
void fill_ones(Machine& machine) {
  constexpr std::uint16_t kOne = 0x3F80;
  for (std::size_t i = 0; i < 1 << 16; ++i)
    std::memcpy(machine.dram().data() + 2 * i, &kOne, sizeof kOne);
}

TEST(Driver, opens_a_twin_that_multiplies) {
  const auto machine = open_machine(find_machine("mmu4"), Simulation::Twin);
  fill_ones(*machine);
  const Product product{3, 5, 2};
  const Program program = product.program(machine->config());
  verify(program, machine->config());
  machine->run(program);
  float first = 0;
  std::memcpy(&first, machine->dram().data() + product.y, sizeof first);
  EXPECT_EQ(first, 5.0F);
}

TEST(Driver, estimates_the_counters_of_a_run) {
  const MachineConfig config = find_machine("mmu16");
  const Program program = Product{40, 50, 30}.program(config);
  EXPECT_EQ(estimate(program, config).counters, open_twin(config)->run(program).counters);
}

TEST(Driver, runs_rtl_and_twin_side_by_side) {
  if (rtl_machines().empty()) GTEST_SKIP() << "this build has no RTL (TRIPTYCH_ENABLE_RTL)";
  for (const std::string& name : rtl_machines()) {
    const auto machine = open_machine(find_machine(name), Simulation::Both);
    fill_ones(*machine);
    const Product product{20, 21, 19};
    const RunReport report = machine->run(product.program(machine->config()));
    EXPECT_EQ(report.counters.macs, 20U * 21 * 19);
    machine->run(product.program(machine->config()));
  }
}

/// In program order at most 251 tokens wait. Side by side, the loads run ahead of a long matmul.
Program overflowing_program() {
  std::string text =
      "set_stream in_height=1 in_width=1 out_height=1 out_width=1\n"
      "set_taps channels=4 kernel_width=1\n"
      "weight_load rows=4 columns=4\n"
      "matmul count=1000 rows_left=1 columns_left=1\n";
  for (int i = 0; i < 250; ++i) text += "load units=1 lines=1 signal=compute\n";
  for (int i = 0; i < 10; ++i)
    text +=
        "load units=1 lines=1 signal=compute\n"
        "matmul keep=1 count=1 rows_left=1 columns_left=1 wait=load\n";
  return assemble_program(text + "halt");
}

TEST(Driver, reports_a_token_counter_that_overflows) {
  const MachineConfig config = find_machine("mmu4");
  std::vector<Simulation> simulations{Simulation::Twin};
  if (!rtl_machines().empty()) simulations.push_back(Simulation::Rtl);
  for (const Simulation simulation : simulations) {
    try {
      open_machine(config, simulation)->run(overflowing_program());
      ADD_FAILURE() << "ran to its end";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("token"));
    }
  }
}

TEST(Driver, names_the_command_that_builds_rtl_when_there_is_none) {
  MachineConfig config = find_machine("mmu4");
  config.buffer_rows = 32;  // no build has this one
  for (const std::string source : {"mine.json", "of mine.json", ""}) {
    config.source = source;
    const std::string type = source == "mine.json"      ? "machine build mine.json"
                             : source == "of mine.json" ? "machine build \"of mine.json\""
                                                        : "machine build FILE";
    EXPECT_THAT([&] { open_machine(config, Simulation::Rtl); },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr(type)));
  }
}

TEST(Pair, passes_machines_that_agree) {
  const MachineConfig config = find_machine("mmu4");
  const auto pair = open_pair(open_twin(config), open_twin(config));
  fill_ones(*pair);
  EXPECT_NO_THROW(pair->run(Product{9, 9, 9}.program(config)));
  EXPECT_TRUE(pair->run(Product{9, 9, 9}.program(config)).times.empty());
}

TEST(Pair, names_the_first_instruction_whose_cycles_differ) {
  const MachineConfig config = find_machine("mmu4");
  MachineConfig slower = config;
  slower.dram.latency += 1;
  const auto pair = open_pair(open_twin(config), open_twin(slower));
  try {
    pair->run(Product{3, 4, 4}.program(config));
    FAIL() << "the difference was not seen";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("instruction 0 (load "));
  }
}

TEST(Pair, compares_only_what_programs_have_written) {
  const MachineConfig config = find_machine("mmu4");
  auto second = open_twin(config);
  fill_ones(*second);
  second->run(Product{4, 4, 4}.program(config));  // as if it had powered up with other values
  const auto pair = open_pair(open_twin(config), std::move(second));
  EXPECT_NO_THROW(pair->run({encode_halt()}));
  fill_ones(*pair);
  EXPECT_NO_THROW(pair->run(Product{2, 4, 3}.program(config)));
}

/// An operand that the array takes with another sign, in its first runs or in all.
struct WrongOperand {
  std::size_t address = 0;
  int runs = 1 << 30;
};

/// A twin with wrong PEs, or one wrong bit of the output unit.
class Faulty : public Machine {
 public:
  Faulty(const MachineConfig& config, std::vector<WrongOperand> operands, std::size_t result)
      : twin_(open_twin(config)), operands_(std::move(operands)), result_(result) {}
  const MachineConfig& config() const override { return twin_->config(); }
  std::span<std::byte> dram() override { return twin_->dram(); }
  std::vector<std::uint16_t> read_buffer() override { return twin_->read_buffer(); }
  std::vector<std::uint32_t> read_accumulators() override { return twin_->read_accumulators(); }
  RunReport run(const Program& program, const RunOptions& options) override {
    flip_operands();
    RunReport report = twin_->run(program, options);
    flip_operands();
    if (result_ != 0) flip(result_);
    ++runs_;
    return report;
  }

 private:
  void flip_operands() {
    for (const auto& operand : operands_)
      if (runs_ < operand.runs) flip(operand.address);
  }
  void flip(std::size_t address) { dram()[address] ^= std::byte{0x80}; }

  std::unique_ptr<Machine> twin_;
  std::vector<WrongOperand> operands_;
  std::size_t result_;
  int runs_ = 0;
};

std::string complaint(const Product& product, std::vector<WrongOperand> operands,
                      std::size_t result) {
  const MachineConfig config = find_machine("mmu4");
  const auto pair =
      open_pair(std::make_unique<Faulty>(config, std::move(operands), result), open_twin(config));
  fill_ones(*pair);
  try {
    pair->run(product.program(config));
  } catch (const Mismatch& error) {
    return error.what();
  }
  return "no difference";
}

TEST(Pair, names_values_and_the_pe_that_was_first_wrong) {
  const Product product{3, 9, 4};
  // The third of the second tile's four rows. bfloat16's high byte holds the sign.
  const std::size_t weight = product.w + 2 * (6 * product.n + 1) + 1;
  const auto text = complaint(product, {{weight}}, 0);
  EXPECT_THAT(text, testing::HasSubstr("position 0, column 1 of instruction 10 (store "));
  EXPECT_THAT(text, testing::HasSubstr("expected 9 (0x41100000) (twin), got 7 (0x40e00000) (RTL)"));
  const auto times =
      estimate(product.program(find_machine("mmu4")), find_machine("mmu4"), {.record_times = true})
          .times;
  EXPECT_THAT(text, testing::HasSubstr("PE row 2, column 1, in cycle " +
                                       std::to_string(times[7].start + 3 + 2 + 1) +
                                       ", at position 0 of instruction 7 (matmul "));
}

TEST(Pair, looks_at_the_next_position_when_the_first_is_right_in_another_run) {
  const Product product{3, 4, 4};
  const std::size_t sign = 1;  // of a bfloat16, in its high byte
  const WrongOperand once = {product.x + sign, 1};
  EXPECT_THAT(complaint(product, {once}, 0),
              testing::AllOf(testing::HasSubstr("position 0, column 0 of instruction 6 (store "),
                             testing::HasSubstr("is wrong, too, but right when the program runs "
                                                "again")));
  const WrongOperand always = {product.x + 2 * 4 * 2 + 2 * 3 + sign};
  const auto text = complaint(product, {once, always}, 0);
  EXPECT_THAT(text, testing::HasSubstr("position 0, column 0 of instruction 6 (store "));
  EXPECT_THAT(text, testing::HasSubstr("first wrong is PE row 3, column 0, in cycle "));
  EXPECT_THAT(text, testing::HasSubstr(", at position 2 of instruction 5 (matmul "));
}

TEST(Pair, tells_the_output_unit_from_the_array) {
  const Product product{3, 4, 4};
  EXPECT_THAT(complaint(product, {}, product.y + 4 * 5),
              testing::AllOf(testing::HasSubstr("position 1, column 1 of instruction 6 (store "),
                             testing::HasSubstr("the output unit did it")));
}

}  // namespace
}  // namespace triptych::mmu
