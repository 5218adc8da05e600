// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/array_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "core/ops/conv.h"
#include "core/ops/matmul.h"
#include "systolic/driver/driver.h"
#include "systolic/driver/listed_data.h"
#include "systolic/driver/order.h"
#include "systolic/driver/watcher.h"
#include "systolic/isa/accesses.h"

namespace triptych::web {
namespace {

/// Bytes of DRAM from address 0 on that hold all that the program touches.
std::size_t touched(const mmu::Program& program, const mmu::MachineConfig& machine) {
  std::uint64_t end = 0;
  mmu::StoreGeometry geometry;
  for (const auto& instruction : program) {
    geometry.set(instruction);
    mmu::visit_accesses(instruction, geometry, machine,
                        [&](std::uint64_t address, std::uint64_t bytes, bool) {
                          end = std::max(end, address + bytes);
                          return true;
                        });
  }
  return end;
}

/// Keeps the one program that runs, and the memory around it.
class Onlooker : public mmu::Watcher {
 public:
  Onlooker(mmu::Watched& device, ArrayRun& run, const mmu::PeWatcher& pes)
      : device_(device), run_(run), pes_(pes) {}

  mmu::RunOptions starts(const mmu::Program& program) override {
    run_.program = program;
    run_.before = memory();
    return {.record_times = true, .pes = &pes_};
  }
  void ended(const mmu::Program&, const mmu::RunReport& report) override {
    run_.report = report;
    run_.after = memory();
  }

 private:
  std::vector<std::byte> memory() {
    const auto bytes = device_.dram().first(touched(run_.program, run_.machine));
    return {bytes.begin(), bytes.end()};
  }

  mmu::Watched& device_;
  ArrayRun& run_;
  const mmu::PeWatcher& pes_;
};

std::unique_ptr<Kernel> prepare(const KernelQuery& query, Device& device) {
  std::string reason = fmt::format("the array has no kernel for {}", query.op.name());
  for (const auto& entry : device.kernels()) {
    if (entry.op != query.op.name()) continue;
    const auto verdict = entry.accepts(query);
    if (verdict.accepted) return entry.prepare(query, device);
    reason = verdict.reason;
  }
  throw UnsupportedError(reason);
}

void check_arrays(const mmu::Listing& listing, const mmu::MachineConfig& machine) {
  for (const auto& array : listing.arrays) {
    auto problem = mmu::misfit(array, machine);
    if (problem.empty() && array.is_input && array.values.empty())
      problem = fmt::format("the input '{0}' has no values; add lines .values {0} ...", array.name);
    if (!problem.empty())
      throw std::invalid_argument(fmt::format("line {}: {}", array.line, problem));
  }
}

/// The memory of the product as an array.
mmu::DramArray memory_array(std::span<const std::byte> memory) {
  mmu::DramArray array;
  array.name = "memory";
  array.type = mmu::ElementType::Uint8;
  array.shape = {static_cast<std::uint32_t>(memory.size())};
  return array;
}

Tensor tensor_of(const nlohmann::ordered_json& values, Shape shape) {
  return {std::move(shape), values.get<std::vector<float>>()};
}

}  // namespace

ArrayProblem array_problem(const nlohmann::ordered_json& request) {
  const auto size = [&](const char* name) { return request.at(name).get<std::int64_t>(); };
  ArrayProblem problem;
  if (request.at("op") == "matmul") {
    problem.op = make_op(MatMul{});
    problem.inputs.push_back(tensor_of(request.at("x"), {size("m"), size("k")}));
    problem.inputs.push_back(tensor_of(request.at("w"), {size("k"), size("n")}));
    return problem;
  }
  Conv conv;
  const auto window = size("window"), pad = window / 2;
  conv.pads = {pad, pad, pad, pad};
  problem.op = make_op(conv);
  problem.inputs.push_back(
      tensor_of(request.at("x"), {size("batch"), size("channels"), size("height"), size("width")}));
  problem.inputs.push_back(
      tensor_of(request.at("w"), {size("filters"), size("channels"), window, window}));
  return problem;
}

ArrayRun run_on_array(const Backend& systolic, const ArrayProblem& problem,
                      const std::string& machine, const mmu::PeWatcher& pes) {
  const auto device = systolic.open({.extra = {{"machine", machine}, {"simulate", "twin"}}});
  auto& watched = dynamic_cast<mmu::Watched&>(*device);
  std::vector<TensorSpec> specs;
  std::vector<Operand> operands;
  std::vector<const std::byte*> in;
  for (const auto& input : problem.inputs) {
    specs.push_back(input.spec());
    operands.push_back(Operand::dense(input.spec()));
    in.push_back(input.bytes().data());
  }
  ArrayRun run{watched.machine(), {}, {}, {}, {}, Tensor(problem.op->infer(specs).at(0))};
  const std::vector results = {Operand::dense(run.y.spec())};
  const std::vector<const Tensor*> constants(in.size(), nullptr);
  const auto kernel =
      prepare({*problem.op, operands, results, Contract::Bf16Exact, constants}, *device);
  Onlooker onlooker(watched, run, pes);
  watched.watch(&onlooker);
  std::byte* out = run.y.bytes().data();
  kernel->run({.inputs = in, .outputs = {&out, 1}});
  watched.watch(nullptr);
  return run;
}

ArrayRun run_listing(const mmu::Listing& listing, const ArrayRun& product,
                     const mmu::PeWatcher& pes) {
  const auto& config = product.machine;
  auto arrays = listing.arrays;
  if (arrays.empty()) arrays.push_back(memory_array(product.before));
  check_arrays(listing, config);
  mmu::verify(listing.program, config);
  mmu::check_order(listing.program, config, arrays);
  ArrayRun run{config, listing.program, {}, {}, {}, {}};
  const auto machine = mmu::open_machine(config, mmu::Simulation::Twin);
  std::uint64_t bytes = std::max(touched(run.program, config), product.before.size());
  for (const auto& array : arrays) bytes = std::max(bytes, array.address + array.bytes());
  const auto memory = machine->dram().first(static_cast<std::size_t>(bytes));
  if (listing.arrays.empty()) std::ranges::copy(product.before, memory.begin());
  for (const auto& array : listing.arrays)
    if (array.is_input) mmu::put_values(array, memory);
  run.before.assign(memory.begin(), memory.end());
  run.report = machine->run(run.program, {.record_times = true, .pes = &pes});
  run.after.assign(memory.begin(), memory.end());
  return run;
}

}  // namespace triptych::web
