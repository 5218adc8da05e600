// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/vector_kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace triptych::systolic {
namespace {

/// Rows for the constants of the longest program.
constexpr std::uint32_t kConstantRows = 56;

constexpr std::uint64_t kOperandAlignment = 64;

std::uint32_t rows_of_block(const VectorTask& task, const mmu::MachineConfig& machine) {
  const std::uint32_t others = kConstantRows + task.single_rows;
  const std::uint32_t needed = others + task.blocks * task.least_rows;
  if (machine.vector_rows < needed)
    throw UnsupportedError(fmt::format(
        "the vector memory of {} has {} rows, and the operator needs {}; give the machine more "
        "vector_rows",
        machine.name, machine.vector_rows, needed));
  const std::int64_t most = (machine.vector_rows - others) / task.blocks;
  const std::int64_t least = task.least_rows;
  return static_cast<std::uint32_t>(std::clamp(task.rows, least, std::max(least, most)));
}

}  // namespace

std::int64_t vector_rows_of(std::int64_t values, const mmu::MachineConfig& machine) {
  return (values + machine.columns - 1) / machine.columns;
}

void for_each_tile(VectorProgram& program, std::int64_t values,
                   const std::function<void(std::int64_t first, std::int64_t count)>& body) {
  const std::int64_t lanes = program.lanes(), most = lanes * program.block_rows();
  for (std::int64_t first = 0; first < values; first += most) {
    const std::int64_t count = std::min(most, values - first);
    program.use_rows(static_cast<std::uint32_t>((count + lanes - 1) / lanes));
    body(first, count);
  }
}

VectorKernel::VectorKernel(Plan plan, const KernelQuery& query, Device& device)
    : device_(dynamic_cast<SystolicDevice&>(device)), task_(plan(query, device_.machine())) {
  block_rows_ = rows_of_block(task_, device_.machine());
  parameters_.resize(static_cast<std::size_t>(task_.parameters));
  place(query.inputs, inputs_, at_.inputs);
  place(query.outputs, outputs_, at_.outputs);
  at_.parameters = reserve(static_cast<std::uint64_t>(task_.parameters) * sizeof(float));
  at_.scratch = reserve(static_cast<std::uint64_t>(task_.scratch_bytes));
  if (dram_bytes_ > device_.machine().dram_bytes)
    throw UnsupportedError(
        fmt::format("operands of {} bytes do not fit the DRAM of {}; use a smaller batch, or give "
                    "the machine more dram_bytes",
                    dram_bytes_, device_.machine().name));
  device_.count_dram(static_cast<std::int64_t>(dram_bytes_));
  kept_ = program();
  if (kept_.size() > kKeptInstructions) kept_.clear();
  kept_.shrink_to_fit();
}

std::uint64_t VectorKernel::reserve(std::uint64_t bytes) {
  const std::uint64_t address = dram_bytes_;
  dram_bytes_ += (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
  return address;
}

void VectorKernel::place(std::span<const Operand> operands, std::vector<Span>& spans,
                         std::vector<std::uint64_t>& addresses) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_there = operands[i].spec.dtype == DType::F32;
    const auto bytes = is_there ? static_cast<std::uint64_t>(operands[i].spec.bytes()) : 0;
    addresses.push_back(reserve(bytes));
    if (bytes > 0) spans.push_back({i, addresses.back(), bytes});
  }
}

mmu::Program VectorKernel::program() const {
  if (!kept_.empty()) return kept_;
  VectorProgram program(device_.machine(), block_rows_);
  task_.emit(program, at_);
  return program.finish();
}

std::string VectorKernel::tiling() const { return fmt::format("vector_rows={}", block_rows_); }

void VectorKernel::run(const KernelArgs& args) {
  std::byte* dram = device_.dram().data();
  RunTotals work;
  for (const auto& [operand, address, bytes] : inputs_) {
    std::memcpy(dram + address, args.inputs[operand], bytes);
    work.bytes_in += static_cast<std::int64_t>(bytes);
  }
  if (task_.begin) {
    task_.begin(args, parameters_.data());
    std::memcpy(dram + at_.parameters, parameters_.data(), parameters_.size() * sizeof(float));
  }
  for (const auto& span : outputs_) work.bytes_out += static_cast<std::int64_t>(span.bytes);
  const RunTotals run = device_.run(work, kept_.empty() ? program() : kept_, counted_);
  counted_ = run.counters;
  totals_ += run;
  for (const auto& [operand, address, bytes] : outputs_)
    std::memcpy(args.outputs[operand], dram + address, bytes);
}

std::map<std::string, double> VectorKernel::counters() const {
  return named_counters(device_.machine(), totals_);
}

Verdict accepts_vectors(const KernelQuery& query, std::size_t inputs) {
  if (!query.dense()) return Verdict::no("the vector unit needs dense operands");
  const auto is_float = [](const Operand& operand) { return operand.spec.dtype == DType::F32; };
  if (!std::ranges::all_of(query.inputs.first(inputs), is_float) ||
      !std::ranges::all_of(query.outputs, is_float))
    return Verdict::no("the vector unit computes float32");
  return Verdict::yes();
}

}  // namespace triptych::systolic
