// Random graphs on the other machines: each node within its bound of the float64 reference, and the
// whole with the CPU's bits (bf16-exact, and int8 by nature). A failing graph is shrunk.
// TRIPTYCH_MACHINE_GRAPHS=20 tries twenty times as many.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/all_backends.h"
#include "tests/conformance/random/judge.h"
#include "tests/conformance/random_graph.h"

namespace triptych::conformance {
namespace {

struct Subject {
  std::string_view name;
  std::string_view backend;
  std::map<std::string, std::string> extra;
  std::uint64_t graphs;
  std::uint64_t first_seed;
  /// The contract of the bound. Bits are compared under bf16-exact.
  Contract bound;

  /// Shown by GoogleTest.
  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
};

const Subject kSubjects[] = {
    {"cuda_emulated", "cuda-emulated", {}, 250, 0, Contract::F32},
    {"twin", "systolic", {{"machine", "mmu4"}}, 50, 100000, Contract::Bf16},
    {"twin_vector", "systolic", {{"machine", "mmu4-vector"}}, 50, 500000, Contract::Bf16},
    {"twin_int8", "systolic", {{"machine", "mmu16-int8"}}, 50, 200000, Contract::Bf16Exact},
    {"rtl", "systolic", {{"machine", "mmu4"}, {"simulate", "rtl"}}, 5, 300000, Contract::Bf16},
    {"rtl_int8",
     "systolic",
     {{"machine", "mmu16-int8"}, {"simulate", "rtl"}},
     5,
     400000,
     Contract::Bf16Exact},
    {"both_vector",
     "systolic",
     {{"machine", "mmu4-vector"}, {"simulate", "both"}},
     10,
     600000,
     Contract::Bf16}};

std::uint64_t times() {
  const char* wanted = std::getenv("TRIPTYCH_MACHINE_GRAPHS");
  return wanted == nullptr ? 1 : std::strtoull(wanted, nullptr, 10);
}

class MachineGraph : public testing::TestWithParam<Subject> {};

TEST_P(MachineGraph, is_within_its_bound_and_has_the_bits_of_the_cpu) {
  const auto& subject = GetParam();
  const auto cpu = open_device("cpu", {.threads = 2});
  std::unique_ptr<Device> device;
  try {
    device = open_device(subject.backend, {.threads = 2, .extra = subject.extra});
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  Judge judge;
  Machine machine{{device.get(), cpu.get()}};
  const Check check = [&](const RandomGraph& test) -> std::string {
    try {
      auto found = Judge::every_node_is_within_its_bound(test, subject.bound, machine);
      return found.empty() ? judge.gives_the_bits_of_the_cpu(test, machine) : found;
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  for (std::uint64_t i = 0; i < subject.graphs * times() && !HasFailure(); ++i) {
    const auto seed = subject.first_seed + i;
    const bool products = subject.backend == "systolic" || i % 2 == 0;
    auto graph = make_random_graph(seed, {.products = products});
    if (check(graph).empty()) continue;
    const auto small = shrink(std::move(graph), check);
    ADD_FAILURE() << "seed " << seed << ": " << check(small) << "\nshrunk to\n"
                  << to_text(small.graph);
  }
  // Without this the CPU may have computed all of it.
  EXPECT_GE(machine.nodes, static_cast<int>(subject.graphs / 4));
  fmt::print("{} graphs, {} nodes on {}\n", subject.graphs * times(), machine.nodes,
             device->info().name);
}

INSTANTIATE_TEST_SUITE_P(Machines, MachineGraph, testing::ValuesIn(kSubjects),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace triptych::conformance
