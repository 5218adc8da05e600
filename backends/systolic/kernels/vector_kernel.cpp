// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/vector_kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/ops/scalar_math.h"

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

/// Copies `count` values, which become float32.
void copy_in(DType type, const std::byte* from, std::uint64_t count, std::byte* to) {
  visit_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    const auto* values = reinterpret_cast<const T*>(from);
    std::transform(values, values + count, reinterpret_cast<float*>(to),
                   &scalar::convert<T, float>);
  });
}

/// Copies `count` values of float32, which get the host's type.
void copy_out(DType type, const std::byte* from, std::uint64_t count, std::byte* to) {
  visit_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    const auto* values = reinterpret_cast<const float*>(from);
    std::transform(values, values + count, reinterpret_cast<T*>(to), &scalar::convert<float, T>);
  });
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
    const TensorSpec& spec = operands[i].spec;
    const bool is_there = spec.dtype == DType::F32 || task_.converts;
    const auto bytes =
        is_there ? static_cast<std::uint64_t>(spec.shape.elements()) * sizeof(float) : 0;
    addresses.push_back(reserve(bytes));
    if (bytes > 0) spans.push_back({i, addresses.back(), bytes, spec.dtype});
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
  for (const auto& [operand, address, bytes, type] : inputs_) {
    if (type == DType::F32)
      std::memcpy(dram + address, args.inputs[operand], bytes);
    else
      copy_in(type, args.inputs[operand], bytes / sizeof(float), dram + address);
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
  for (const auto& [operand, address, bytes, type] : outputs_) {
    if (type == DType::F32)
      std::memcpy(args.outputs[operand], dram + address, bytes);
    else
      copy_out(type, dram + address, bytes / sizeof(float), args.outputs[operand]);
  }
}

std::map<std::string, double> VectorKernel::counters() const {
  return named_counters(device_.machine(), totals_);
}

namespace {

bool all_operands(const KernelQuery& query, bool (*is_right)(DType type)) {
  const auto is_right_one = [=](const Operand& operand) { return is_right(operand.spec.dtype); };
  return std::ranges::all_of(query.inputs, is_right_one) &&
         std::ranges::all_of(query.outputs, is_right_one);
}

}  // namespace

Verdict accepts_vectors(const KernelQuery& query) {
  if (!query.dense()) return Verdict::no("the vector unit needs dense operands");
  if (!all_operands(query, [](DType type) { return type == DType::F32; }))
    return Verdict::no("the vector unit computes float32");
  return Verdict::yes();
}

Verdict accepts_converted(const KernelQuery& query) {
  if (!query.dense()) return Verdict::no("the vector unit needs dense operands");
  const auto converts = [](DType type) {
    return type == DType::F32 || type == DType::I32 || type == DType::I64 || type == DType::Bool;
  };
  if (!all_operands(query, converts))
    return Verdict::no("the copies to the vector unit convert i32, i64 and bool only");
  return Verdict::yes();
}

}  // namespace triptych::systolic
