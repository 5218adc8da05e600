// The speed of the twin, with separate clock and values, next to the CPU backend's matrix product
// under bf16-exact. Processor time of one thread, CPU and twins in turn.
//   mmu_twin_speed matmul|MODEL train|infer [--rounds N] MACHINE...
// "values": the programs alone, timed before. "all": operands packed, values, results unpacked (of
// matmul only: a model also runs nodes on the host).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>

#include "core/ops/matmul.h"
#include "core/runtime/executor.h"
#include "experiments/training/device_set.h"
#include "systolic/isa/accesses.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/utilisation/measure.h"

namespace triptych {
namespace {

constexpr std::int64_t kSize = 1024;
constexpr double kProductMacs = kSize * kSize * kSize;

template <class Work>
double processor_seconds(const Work& work) {
  const auto begin = std::clock();
  work();
  return number(std::clock() - begin) / CLOCKS_PER_SEC;
}

Graph product_graph() {
  Graph graph;
  const TensorSpec spec = {DType::F32, Shape{kSize, kSize}};
  const std::vector<ValueId> inputs = {graph.add_input("a", spec), graph.add_input("b", spec)};
  graph.mark_output("y", graph.add_node(make_op(MatMul{}), inputs).front());
  return graph;
}

/// The product through a backend's executor.
class ProductRun {
 public:
  explicit ProductRun(const training::ExecutionConfig& config)
      : machine_(config),
        states_(machine_.device()),
        executor_(make_plan(product_graph(), machine_.devices(), machine_.plan_options()),
                  states_) {}

  double seconds() {
    return processor_seconds([&] { executor_.run(); });
  }

 private:
  training::DeviceSet machine_;
  StateStore states_;
  Executor executor_;
};

/// All programs of a graph on one twin.
class ProgramsRun {
 public:
  ProgramsRun(Graph graph, const mmu::MachineConfig& machine)
      : programs_(programs_of(std::move(graph), machine)), twin_(mmu::open_twin(machine)) {
    for (const auto& node : programs_) touch(node.program);
    clock_seconds_ = processor_seconds([&] {
      for (const auto& node : programs_) {
        counters_.push_back(mmu::estimate(node.program, machine).counters);
      }
    });
  }

  double clock_seconds() const { return clock_seconds_; }
  double macs() const {
    double sum = 0;
    for (const auto& counters : counters_) sum += number(counters.macs);
    return sum;
  }
  double value_seconds() {
    return processor_seconds([&] {
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        twin_->run(programs_[i].program, {.counted = &counters_[i]});
      }
    });
  }

 private:
  // Untouched memory is one page of zeros for all addresses, and always in the cache.
  void touch(const mmu::Program& program) {
    mmu::StoreGeometry geometry;
    for (const auto& instruction : program) {
      geometry.set(instruction);
      mmu::visit_accesses(instruction, geometry, twin_->config(),
                          [&](std::uint64_t address, std::uint64_t bytes, bool) {
                            std::memset(twin_->dram().data() + address, 0x3C, bytes);
                            return true;
                          });
    }
  }

  std::vector<NodeProgram> programs_;
  std::unique_ptr<mmu::Machine> twin_;
  std::vector<mmu::Counters> counters_;
  double clock_seconds_ = 0;
};

struct Subject {
  std::string machine;
  ProgramsRun programs;
  std::unique_ptr<ProductRun> product;  ///< of matmul
  double first = 0, values = 0, all = 0;
};

std::vector<Subject> subjects_of(const std::string& model, const std::string& mode,
                                 std::span<const std::string> machines) {
  std::vector<Subject> subjects;
  for (const auto& machine : machines) {
    const bool is_product = model == "matmul";
    auto graph = is_product ? product_graph() : model_graph(model, mode, false);
    subjects.push_back({machine, {std::move(graph), mmu::find_machine(machine)}, nullptr});
    if (!is_product) continue;
    subjects.back().product = std::make_unique<ProductRun>(training::ExecutionConfig{
        .backend = "systolic", .threads = 1, .contract = Contract::Bf16Exact, .machine = machine});
    subjects.back().first = subjects.back().product->seconds();
  }
  return subjects;
}

void print(const Subject& subject, double cpu_rate) {
  const auto rate = [&](double seconds) {
    const auto macs = subject.programs.macs() / seconds;
    return fmt::format("{:6.1f} ({:4.2f})", macs * 1e-9, macs / cpu_rate);
  };
  fmt::print("{:<12} {:8.3f}  {}", subject.machine, subject.programs.clock_seconds(),
             rate(subject.values));
  if (subject.product) fmt::print("  {}  {}", rate(subject.all), rate(subject.first));
  fmt::print("\n");
}

void run(std::vector<std::string> arguments) {
  int rounds = 5;
  const auto option = std::ranges::find(arguments, "--rounds");
  if (option != arguments.end() && option + 1 != arguments.end()) {
    rounds = std::max(1, std::stoi(option[1]));
    arguments.erase(option, option + 2);
  }
  const std::size_t names = !arguments.empty() && arguments[0] == "matmul" ? 1 : 2;
  if (arguments.size() <= names) {
    throw std::invalid_argument("mmu_twin_speed matmul|MODEL train|infer [--rounds N] MACHINE...");
  }
  ProductRun cpu({.backend = "cpu", .threads = 1, .contract = Contract::Bf16Exact});
  auto subjects = subjects_of(arguments[0], arguments[1], std::span(arguments).subspan(names));
  cpu.seconds();
  for (auto& subject : subjects) subject.programs.value_seconds();
  double cpu_seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    cpu_seconds += cpu.seconds() / rounds;
    for (auto& subject : subjects) {
      subject.values += subject.programs.value_seconds() / rounds;
      if (subject.product) subject.all += subject.product->seconds() / rounds;
    }
  }
  const double cpu_rate = kProductMacs / cpu_seconds;
  fmt::print("CPU backend, {0} x {0} x {0}: {1:.1f} GMAC/s\n", kSize, cpu_rate * 1e-9);
  fmt::print("{:<12} {:>8}  {:>13}  {:>13}  {:>13}\n", "GMAC/s (CPU)", "clock, s", "values", "all",
             "first run");
  for (const auto& subject : subjects) print(subject, cpu_rate);
}

}  // namespace
}  // namespace triptych

int main(int argc, char** argv) {
  try {
    triptych::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
