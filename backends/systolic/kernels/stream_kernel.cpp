// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/stream_kernel.h"

namespace triptych::systolic {

Verdict accepts_contract(const KernelQuery& query) {
  if (query.contract == Contract::F32) {
    return Verdict::no(
        "the array multiplies bfloat16 operands; add --contract bf16 (or bf16-exact)");
  }
  if (query.contract == Contract::Int8) {
    return Verdict::no("lowers bfloat16 products only; add --contract bf16 (or bf16-exact)");
  }
  return Verdict::yes();
}

StreamKernel::StreamKernel(const std::function<StreamPlan(const PlanTarget&)>& plan, Device& device)
    : device_(dynamic_cast<SystolicDevice&>(device)),
      plan_(choose_plan(plan, device_.machine())),
      program_(make_program(plan_, device_.machine())) {}

void StreamKernel::run(const KernelArgs& args) {
  const auto dram = device_.dram();
  for (const auto& image : plan_.images) image.pack(args.in<float>(image.input), dram);
  for (const auto& matrix : plan_.matrices) matrix.pack(args.in<float>(matrix.input), dram);
  for (const auto& bias : plan_.biases) bias.pack(args.in<float>(bias.input), dram);
  totals_ += device_.run(program_, plan_.bytes_in, plan_.bytes_out);
  for (const auto& result : plan_.results) result.unpack(dram, args.out<float>(0));
}

std::map<std::string, double> StreamKernel::counters() const {
  return named_counters(device_.machine(), totals_);
}

}  // namespace triptych::systolic
