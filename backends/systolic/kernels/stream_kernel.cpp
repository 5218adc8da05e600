// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/stream_kernel.h"

#include <utility>

#include "backends/systolic/lowering/keep.h"

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
    : device_(dynamic_cast<SystolicDevice&>(device)), lowered_(device_.lowering().lower(plan)) {
  auto& program = lowered_.program;
  if (program.size() > kKept) program.clear();
  program.shrink_to_fit();
  device_.count_dram(lowered_.plan.dram_bytes);
}

std::string StreamKernel::keep_output_for(Kernel& next, std::size_t input) {
  auto* reader = dynamic_cast<StreamKernel*>(&next);
  if (reader == nullptr || &reader->device_ != &device_) return {};
  const auto& images = reader->lowered_.plan.images;
  if (images.size() != 1 || images[0].input != input) return {};
  auto both = keep_between(lowered_, reader->lowered_, device_.lowering());
  if (!both) return {};
  lowered_ = std::move(both->first);
  reader->lowered_ = std::move(both->second);
  return "the unified buffer";
}

mmu::Program StreamKernel::program() const {
  const auto& program = lowered_.program;
  return program.empty() ? device_.lowering().program_of(lowered_.plan) : program;
}

template <class Element, class Sum>
void StreamKernel::run_on(const KernelArgs& args) {
  const auto dram = device_.dram();
  const auto& plan = lowered_.plan;
  if (!plan.image_row) {
    for (const auto& image : plan.images) image.pack(args.in<Element>(image.input), dram);
  }
  for (const auto& matrix : plan.matrices) matrix.pack(args.in<Element>(matrix.input), dram);
  for (const auto& registers : plan.registers) {
    for (std::int64_t file = 0; file < registers.files; ++file) {
      const auto input = registers.input + static_cast<std::size_t>(file);
      registers.pack(file, args.in<Sum>(input), dram);
    }
  }
  const auto& kept = lowered_.program;
  const auto run =
      kept.empty() ? device_.run(plan, program(), counted_) : device_.run(plan, kept, counted_);
  counted_ = run.counters;
  totals_ += run;
  if (plan.kept) return;
  for (const auto& result : plan.results) {
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
