// Random programs on the RTL's view of a grid of PEs and a memory per bank: equals the twin, and
// reaches every cover of the RTL.
//   mmu_covers [--programs N]     (default: 300)
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <verilated_cov.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

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

/// False, with the seed and the shrunk program, when a program tells the RTL from the twin.
bool equals_the_twin(std::uint32_t programs) {
  for (std::uint32_t seed = 1; seed <= programs; ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(vary_machine(find_machine("mmu4"), random), random);
    if (compare(test, open_twin, open_covered).empty()) continue;
    const Case small = shrink(test, open_twin, open_covered);
    fmt::print("seed {}\n{}{}\n", seed, describe(small), compare(small, open_twin, open_covered));
    return false;
  }
  return true;
}

int report() {
  int missed = 0;
  for (const auto& [cover, count] : reached) {
    fmt::print("{:40} {:>10}\n", cover, count == 0 ? "NOT REACHED" : std::to_string(count));
    missed += count == 0 ? 1 : 0;
  }
  fmt::print("{} of {} covers reached\n", reached.size() - static_cast<std::size_t>(missed),
             reached.size());
  return missed == 0 && !reached.empty() ? 0 : 1;
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::string_view(argv[1]) == "--programs";
  const auto programs = given ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 300U;
  return triptych::mmu::equals_the_twin(programs) ? triptych::mmu::report() : 1;
}
