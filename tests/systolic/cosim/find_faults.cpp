// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/find_faults.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

namespace triptych::mmu {
namespace {

/// How the program tells the machine with the selected fault from the one without. Empty: it does
/// not.
std::string tell(const FaultyMachine& machine, std::uint32_t seed) {
  std::mt19937 random(seed);
  const Case test = machine.random_case(random);
  try {
    return compare(test, machine.open, machine.open_right, machine.compared);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The first program that tells the fault. 0: none.
std::uint32_t find(const FaultyMachine& machine, std::uint32_t programs, std::string& problem) {
  for (std::uint32_t seed = 1; seed <= programs; ++seed) {
    problem = tell(machine, seed);
    if (!problem.empty()) return seed;
  }
  return 0;
}

int survivors(const FaultyMachine& machine, std::uint32_t programs) {
  int count = 0;
  std::string problem;
  for (const char* name : machine.faults) {
    ++*machine.selected;
    const std::uint32_t seed = find(machine, programs, problem);
    fmt::print("{:2} {:38} {:>6}  {}\n", *machine.selected, name,
               seed == 0 ? "alive" : std::to_string(seed), problem.substr(0, problem.find('\n')));
    std::fflush(stdout);
    count += seed == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

int find_faults(const FaultyMachine& machine, int argc, char** argv) {
  const bool given = argc == 3 && std::string_view(argv[1]) == "--programs";
  const auto programs = given ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 1000U;
  std::string problem;
  if (const std::uint32_t seed = find(machine, 100, problem)) {
    fmt::print("program {} tells the machine without a fault: {}\n", seed, problem);
    return 1;
  }
  const int alive = survivors(machine, programs);
  fmt::print("{} of {} faults survive {} programs\n", alive, machine.faults.size(), programs);
  return alive == 0 ? 0 : 1;
}

}  // namespace triptych::mmu
