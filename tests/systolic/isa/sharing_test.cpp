// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {
namespace {

MachineConfig two_arrays() {
  MachineConfig machine = find_machine("mmu4");
  machine.vector_rows = 64;
  machine.arrays = 2;
  return machine;
}
std::string complaint(const std::string& first, const std::string& second) {
  const std::vector<Program> programs = {assemble_program(first + "halt\n"),
                                         assemble_program(second + "halt\n")};
  try {
    check_sharing(programs, two_arrays());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Sharing, arrays_may_read_the_same_bytes) {
  const std::string load = "vector_load address=64 pitch=16 count=4 columns=4\n";
  EXPECT_EQ(complaint(load, load), "accepted");
}
TEST(Sharing, a_write_to_bytes_of_another_array_is_refused) {
  const std::string store = "vector_store address=64 pitch=16 count=4 columns=4\n";
  EXPECT_EQ(complaint(store, "vector_store address=128 pitch=16 count=4 columns=4\n"), "accepted");
  EXPECT_THAT(complaint(store, "vector_load address=124 pitch=16 count=1 columns=4\n"),
              testing::StartsWith("array 0 writes DRAM bytes that array 1 reads in the same run, "
                                  "124 to 127: "));
  EXPECT_THAT(complaint("vector_load address=0 pitch=16 count=9 columns=4\n", store),
              testing::StartsWith("array 1 writes DRAM bytes that array 0 reads in the same run, "
                                  "64 to 127: "));
  EXPECT_THAT(complaint(store, store), testing::HasSubstr("array 1 writes, too, in"));
}
TEST(Sharing, a_long_piece_hides_no_shorter_one) {
  EXPECT_THAT(complaint("vector_store address=0 pitch=16 count=32 columns=4\n",
                        "vector_load address=16 pitch=16 count=1 columns=4\n"
                        "vector_load address=4096 pitch=16 count=1 columns=4\n"),
              testing::HasSubstr("16 to 31"));
}
TEST(Sharing, an_array_may_read_what_it_writes) {
  EXPECT_EQ(complaint("vector_store address=0 pitch=16 count=4 columns=4\n"
                      "vector_load address=0 pitch=16 count=4 columns=4\n",
                      ""),
            "accepted");
}
TEST(Sharing, a_program_moves_with_all_of_its_places) {
  const auto moved = [](const std::string& text) {
    return disassemble(move_in_dram(assemble_program(text), 4096)[0]);
  };
  EXPECT_THAT(moved("load address=64 units=1 lines=1\n"), testing::HasSubstr("address=4160"));
  EXPECT_THAT(moved("weight_load address=64 rows=1 columns=1\n"),
              testing::HasSubstr("address=4160"));
  EXPECT_THAT(
      moved("store address=64 count=1 select=1 operand=32\n"),
      testing::AllOf(testing::HasSubstr("address=4160"), testing::HasSubstr("operand=4128")));
  EXPECT_THAT(moved("store address=64 count=1 buffer=1 narrow=1\n"),
              testing::AllOf(testing::HasSubstr("address=64"),
                             testing::Not(testing::HasSubstr("operand="))));
  EXPECT_THAT(moved("matmul address=64 count=1\n"), testing::HasSubstr("address=64"));
  EXPECT_THROW(move_in_dram(assemble_program("load address=64 units=1 lines=1\n"), 1ULL << 32),
               std::invalid_argument);
}
TEST(Sharing, each_array_needs_a_program) {
  const std::vector<Program> one = {assemble_program("halt\n")};
  EXPECT_THROW(check_sharing(one, two_arrays()), std::invalid_argument);
}
TEST(Sharing, machine_files_have_up_to_eight_arrays) {
  MachineConfig machine = two_arrays();
  EXPECT_EQ(parse_machine(to_json(machine)).arrays, 2U);
  EXPECT_EQ(to_json(find_machine("mmu4")).find("arrays"), std::string::npos);
  machine.arrays = 9;
  EXPECT_THROW(validate(machine), std::invalid_argument);
  machine.arrays = 0;
  EXPECT_THROW(validate(machine), std::invalid_argument);
}
TEST(Sharing, waits_are_shown_where_there_are_any) {
  Counters counters;
  const auto shown = [&] {
    return std::ranges::count(named_counts(counters), "arbiter_wait_cycles", &NamedCount::name);
  };
  EXPECT_EQ(shown(), 0);
  counters.arbiter_wait_cycles = 7;
  EXPECT_EQ(shown(), 1);
  EXPECT_TRUE(is_counter("arbiter_wait_cycles"));
  counters += counters;
  EXPECT_EQ(counters_from([&](const std::string& name) {
              return name == "arbiter_wait_cycles" ? counters.arbiter_wait_cycles : 0;
            }).arbiter_wait_cycles,
            14U);
}

}  // namespace
}  // namespace triptych::mmu
