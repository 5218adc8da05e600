// A training step of U-Net S whose products and vectors all come from the RTL behind AXI4 masters,
// with a memory that stalls: the bits of the CPU.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "Vmmu_axi_vector.h"
#include "Vmmu_axi_vector___024root.h"
#include "backends/all_backends.h"
#include "core/base/fnv1a.h"
#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "systolic/driver/watcher.h"
#include "systolic/isa/accesses.h"
#include "tests/systolic/cosim/axi_machine.h"

namespace triptych {
namespace {

using AxiMachine = mmu::AxiMachine<Vmmu_axi_vector>;
constexpr mmu::AxiTiming kStalls{.stall_percent = 30, .latency = 20, .spread = 10};

/// Bytes of the DRAM up to the last one that the program touches.
std::size_t bytes_of(const mmu::Program& program, const mmu::MachineConfig& machine) {
  std::uint64_t last = 0;
  mmu::StoreGeometry geometry;
  for (const mmu::Instruction& instruction : program) {
    geometry.set(instruction);
    mmu::visit_accesses(instruction, geometry, machine,
                        [&](std::uint64_t address, std::uint64_t bytes, bool) {
                          last = std::max(last, address + bytes);
                          return true;
                        });
  }
  return last;
}

/// Runs every program of a device again, and gives the device the results of that run.
class BehindAxi : public mmu::Watcher {
 public:
  explicit BehindAxi(mmu::Watched& device) : device_(device), axi_(device.machine(), kStalls, 1) {
    device.watch(this);
  }
  BehindAxi(const BehindAxi&) = delete;
  BehindAxi& operator=(const BehindAxi&) = delete;
  ~BehindAxi() override { device_.watch(nullptr); }

  mmu::RunOptions starts(const mmu::Program& program) override {
    bytes_ = bytes_of(program, device_.machine());
    std::memcpy(axi_.dram().data(), device_.dram().data(), bytes_);
    const auto counters = axi_.run(program, {}).counters;
    cycles += counters.cycles;
    vector_cycles += counters.vector.cycles;
    ++programs;
    return {};
  }
  void ended(const mmu::Program&, const mmu::RunReport& report) override {
    twin_cycles += report.counters.cycles;
    EXPECT_FALSE(axi_.error());
    const bool equal = std::memcmp(axi_.dram().data(), device_.dram().data(), bytes_) == 0;
    EXPECT_TRUE(equal) << "program " << programs;
    std::memcpy(device_.dram().data(), axi_.dram().data(), bytes_);
  }

  int programs = 0;
  std::uint64_t cycles = 0, vector_cycles = 0, twin_cycles = 0;

 private:
  mmu::Watched& device_;
  AxiMachine axi_;
  std::size_t bytes_ = 0;
};

Plan plan_of(const ModelConfig& model, const std::vector<Device*>& devices) {
  PlanOptions options;
  options.placement.contract = Contract::Bf16Exact;
  if (devices.size() > 1) options.placement.host = 1;
  return make_plan(optimize(build_training_graph(model, {.batch = 1, .seed = 5}).graph, {}),
                   devices, options);
}

/// The bytes of the loss and of all states after a step.
std::vector<std::byte> step(Plan plan, const ModelConfig& model, Device& device) {
  StateStore states(device);
  Executor executor(std::move(plan), states);
  Tensor x(TensorSpec{DType::F32, Shape{1, 1, model.size, model.size}});
  Tensor target(x.spec());
  RandomStream random(1, 1);
  for (auto& value : x.as<float>()) value = random.normal();
  for (auto& value : target.as<float>()) value = random.uniform() < 0.3F ? 1.0F : 0.0F;
  executor.set_input("x", x);
  executor.set_input("target", target);
  executor.set_input("learning_rate", scalar_tensor(0.01F));
  executor.run();
  std::vector<std::byte> result;
  const auto append = [&](const Tensor& tensor) {
    result.insert(result.end(), tensor.bytes().begin(), tensor.bytes().end());
  };
  append(executor.output("loss"));
  for (const auto& name : states.names()) append(states.read(name));
  return result;
}

TEST(AxiStep, a_training_step_of_unet_s_has_the_bits_of_the_cpu) {
  const auto model = model_preset("unet-s");
  const auto cpu = open_device("cpu", {.threads = 1});
  const auto array = open_device("systolic", {.extra = {{"machine", "mmu4-vector"}}});
  auto plan = plan_of(model, {array.get(), cpu.get()});
  for (const auto& step : plan.steps)
    ASSERT_TRUE(step.entry == nullptr || step.device == 0) << plan.graph.node(step.node).name;
  BehindAxi axi(dynamic_cast<mmu::Watched&>(*array));
  const auto found = step(std::move(plan), model, *array);
  const auto expected = step(plan_of(model, {cpu.get()}), model, *cpu);
  EXPECT_EQ(found, expected);
  EXPECT_GT(axi.vector_cycles, 0U);
  EXPECT_GT(axi.cycles, axi.twin_cycles);  // it stalls
  fmt::print("{} programs, {} cycles behind AXI4, {} on the twin, bits {:016x}\n", axi.programs,
             axi.cycles, axi.twin_cycles, fnv1a(found));
}

}  // namespace
}  // namespace triptych
