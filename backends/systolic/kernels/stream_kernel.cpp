// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/stream_kernel.h"

#include <utility>

namespace triptych::systolic {
namespace {

/// Instructions of the longest program that a kernel keeps: 2 MiB. Longer ones belong to arrays of
/// few PEs, where a network has gigabytes of instructions, and making one again takes a small part
/// of the time of simulating it.
constexpr std::size_t kKept = std::size_t{1} << 16;

}  // namespace

Verdict accepts_contract(const KernelQuery& query) {
  if (query.inputs[0].spec.dtype == DType::I8) return Verdict::yes();
  if (query.contract == Contract::F32) {
    return Verdict::no(
        "the array multiplies bfloat16 operands; add the option contract bf16 (or bf16-exact)");
  }
  if (query.contract == Contract::Int8) {
    return Verdict::no(
        "lowers bfloat16 products only; add the option contract bf16 (or bf16-exact)");
  }
  return Verdict::yes();
}

void add_registers(const KernelQuery& query, RegisterPacking packing, StreamJob& job,
                   StreamPlan& plan) {
  packing.files = std::ssize(query.inputs) - static_cast<std::ptrdiff_t>(packing.input);
  if (packing.files == 0) return;
  job.registers = plan.registers.size();
  plan.registers.push_back(packing);
}

StreamKernel::StreamKernel(const std::function<StreamPlan(const PlanTarget&)>& plan, Device& device)
    : device_(dynamic_cast<SystolicDevice&>(device)) {
  auto lowered = device_.lowering().lower(plan);
  plan_ = std::move(lowered.plan);
  if (lowered.program.size() > kKept) return;
  kept_ = std::move(lowered.program);
  kept_.shrink_to_fit();
}

mmu::Program StreamKernel::program() const {
  return kept_.empty() ? device_.lowering().program_of(plan_) : kept_;
}

template <class Element, class Sum>
void StreamKernel::run_on(const KernelArgs& args) {
  const auto dram = device_.dram();
  for (const auto& image : plan_.images) image.pack(args.in<Element>(image.input), dram);
  for (const auto& matrix : plan_.matrices) matrix.pack(args.in<Element>(matrix.input), dram);
  for (const auto& registers : plan_.registers) {
    for (std::int64_t file = 0; file < registers.files; ++file) {
      const auto input = registers.input + static_cast<std::size_t>(file);
      registers.pack(file, args.in<Sum>(input), dram);
    }
  }
  const auto run =
      kept_.empty() ? device_.run(plan_, program(), counted_) : device_.run(plan_, kept_, counted_);
  counted_ = run.counters;
  totals_ += run;
  for (const auto& result : plan_.results) {
    if (result.value_bytes == 1) {
      result.unpack(dram, args.out<std::int8_t>(0));
    } else {
      result.unpack(dram, args.out<Sum>(0));
    }
  }
}

void StreamKernel::run(const KernelArgs& args) {
  if (device_.machine().pe == mmu::PeKind::Bf16) {
    run_on<float, float>(args);
  } else {
    run_on<std::int8_t, std::int32_t>(args);
  }
}

std::map<std::string, double> StreamKernel::counters() const {
  return named_counters(device_.machine(), totals_);
}

}  // namespace triptych::systolic
