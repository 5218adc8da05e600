// Programs, random ones and two for covers that those seldom reach, on the RTL's view of a grid of
// PEs and a memory per bank: it equals the twin, and they reach every cover of the RTL.
//   mmu_covers [--programs N]     (default: 1000)
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <verilated_cov.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "Vmmu_covered.h"
#include "Vmmu_covered___024root.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/verilated_model.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/compare.h"

namespace triptych::mmu {
namespace {

/// How often each cover was reached, by file and line.
std::map<std::string, std::uint64_t> reached;

/// A key's value in a line of Verilator's coverage file: keys follow \001, values \002.
std::string value_of(std::string_view line, std::string_view key) {
  const std::string mark = fmt::format("\x01{}\x02", key);
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + mark.size();
  return std::string(line.substr(begin, line.find_first_of("\x01'", begin) - begin));
}

void add_counts(const std::filesystem::path& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("C '")) continue;
    const std::string source = std::filesystem::path(value_of(line, "f")).filename().string();
    reached[fmt::format("{}:{}", source, value_of(line, "l"))] +=
        std::strtoull(line.c_str() + line.rfind(' '), nullptr, 10);
  }
}

/// The model, which tells its counts when it goes.
class Covered : public Vmmu_covered {
 public:
  explicit Covered(VerilatedContext* context) : Vmmu_covered(context) {}
  ~Covered() override {
    const auto path = std::filesystem::temp_directory_path() /
                      fmt::format("mmu_covers.{}.dat", static_cast<const void*>(this));
    contextp()->coveragep()->write(path.c_str());
    add_counts(path);
    std::filesystem::remove(path);
  }
};

std::unique_ptr<Machine> open_covered(const MachineConfig& config) {
  return make_rtl_machine(std::make_unique<VerilatedModel<Covered>>(), config);
}

/// False, with the shrunk program, when a program tells the RTL from the twin.
bool equals_the_twin(const std::string& name, const Case& test) {
  if (compare(test, open_twin, open_covered).empty()) return true;
  const Case small = shrink(test, open_twin, open_covered);
  fmt::print("{}\n{}{}\n", name, describe(small), compare(small, open_twin, open_covered));
  return false;
}

/// mmu4 with both dataflows and a vector unit: all of the RTL.
MachineConfig covered_machine() {
  MachineConfig machine = find_machine("mmu4");
  machine.dataflows = Dataflows::Both;
  machine.vector_rows = 64;
  return machine;
}

Case case_of(std::string_view program, const DramConfig& dram) {
  Case test = {.machine = covered_machine(),
               .program = assemble_program(program),
               .dram = std::vector<std::byte>(kCaseDramBytes)};
  test.machine.dram = dram;
  test.machine.dram_bytes = kCaseDramBytes;
  return test;
}

/// More requests than a unit may have outstanding are due before the first answer comes.
Case more_requests_than_fit() {
  return case_of("load pitch=8 buffer_pitch=1 units=1 lines=250 log2_group=2\nhalt\n",
                 {.preset = "custom", .latency = 400});
}

/// The accumulators of a matmul are still on their way to a slow DRAM.
Case accumulators_not_yet_stored() {
  return case_of(R"(load pitch=8 buffer_pitch=1 units=1 lines=64 log2_group=2
set_stream in_height=1 in_width=64 out_height=1 out_width=64 stride_x=1 step_x=1
set_taps channels=4 kernel_width=1 log2_group=2
weight_load address=512 pitch=8 rows=4 columns=4
matmul count=64 rows_left=1 columns_left=64
set_output out_height=1 out_width=64 step_x=16
store address=1024 count=64 columns=4 rows_left=1 columns_left=64
matmul keep=1 count=64 rows_left=1 columns_left=64
store address=4096 count=64 columns=4 rows_left=1 columns_left=64
halt
)",
                 {.preset = "custom", .bytes_per_cycle = 1});
}

bool all_equal_the_twin(std::uint32_t programs) {
  for (std::uint32_t seed = 1; seed <= programs; ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(vary_machine(covered_machine(), random), random);
    if (!equals_the_twin(fmt::format("seed {}", seed), test)) return false;
  }
  return equals_the_twin("more requests than fit", more_requests_than_fit()) &&
         equals_the_twin("accumulators not yet stored", accumulators_not_yet_stored());
}

/// Prints how often each cover was reached. The exit code: 0 when all of the RTL were.
int report(std::uint32_t programs) {
  int missed = 0;
  for (const auto& [cover, count] : reached) {
    fmt::print("{:40} {:>10}\n", cover, count == 0 ? "NOT REACHED" : std::to_string(count));
    missed += count == 0 ? 1 : 0;
  }
  fmt::print("{} of {} covers reached, {} assertions kept, in {} random programs and two by hand\n",
             reached.size() - static_cast<std::size_t>(missed), TRIPTYCH_COVERS,
             TRIPTYCH_ASSERTIONS, programs);
  return missed == 0 && reached.size() == TRIPTYCH_COVERS ? 0 : 1;
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::string_view(argv[1]) == "--programs";
  const auto programs = given ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 1000U;
  return triptych::mmu::all_equal_the_twin(programs) ? triptych::mmu::report(programs) : 1;
}
