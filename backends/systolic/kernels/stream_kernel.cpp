// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/stream_kernel.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "backends/systolic/lowering/stream_plan.h"

namespace triptych::systolic {
namespace {

// Activations that stay in the unified buffer between two programs that run one after the other.

// Cycles that less traffic may cost: matmuls that wait for no loads are cut into fewer parts, and
// their last results take longer to leave.
constexpr double kMostCycles = 1.02;

/// Where each position lies in the tensor, in elements from its begin.
std::vector<std::int64_t> places(std::int64_t offset, std::int64_t images,
                                 std::int64_t image_stride, std::int64_t rows,
                                 std::int64_t row_stride, std::int64_t positions,
                                 std::int64_t position_stride) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t p = 0; p < positions; ++p)
        all.push_back(offset + n * image_stride + r * row_stride + p * position_stride);
  return all;
}

/// True when the image is the result, position by position and channel by channel.
bool is_image_of(const ImagePacking& image, const ResultUnpacking& result) {
  if (image.taps != std::vector<std::int64_t>{0}) return false;
  if (result.positions != result.stored_positions) return false;
  if (std::ssize(result.column_offsets) != image.channels) return false;
  for (std::int64_t c = 0; c < image.channels; ++c)
    if (result.column_offsets[static_cast<std::size_t>(c)] != c * image.channel_stride)
      return false;
  return places(image.offset, image.images, image.image_stride, image.rows, image.row_stride,
                image.positions, image.position_stride) ==
         places(result.offset, result.images, result.image_stride, result.rows, result.row_stride,
                result.positions, result.position_stride);
}

bool reads_all(const StreamAxis& axis) { return axis.reads({0, axis.out}) == Range{0, axis.in}; }

/// Buffer rows of an image that is there as a whole.
std::int64_t rows_of(const StreamProblem& problem) {
  return problem.images * problem.y.in * problem.x.in * (problem.channels / problem.group);
}

/// A column tile fills a group of the next program's channels.
bool fills_groups(const StreamProblem& producer, std::int64_t group, std::int64_t tile_columns) {
  return producer.columns <= std::min(group, tile_columns) || group == tile_columns;
}

bool are_simple(const StreamPlan& producer, const StreamPlan& consumer,
                const mmu::MachineConfig& machine) {
  if (producer.jobs.size() != 1 || consumer.jobs.size() != 1) return false;
  if (producer.jobs[0].problem.transpose || consumer.jobs[0].problem.transpose) return false;
  // Whole numbers that are not requantised are no activations.
  return machine.pe == mmu::PeKind::Bf16 || producer.results[0].value_bytes == 1;
}

/// The consumer's plans that read an image in the buffer. Images lie at its two ends by turns.
std::vector<StreamPlan> readers_of(const Lowered& producer, const Lowered& consumer,
                                   const mmu::MachineConfig& machine) {
  const auto& before = producer.plan.jobs[0].problem;
  const auto& image_row = producer.plan.image_row;
  const std::int64_t buffer_rows = machine.buffer_rows;
  const auto taken = image_row ? rows_of(before) : 0;
  std::vector<StreamPlan> readers;
  for (const auto& plan : consumer.open) {
    const auto& problem = plan.jobs[0].problem;
    const auto rows = rows_of(problem);
    if (!fills_groups(before, problem.group, machine.columns) || rows + taken > buffer_rows ||
        !is_image_of(plan.images[0], producer.plan.results[0]) || !reads_all(problem.y) ||
        !reads_all(problem.x))
      continue;
    readers.push_back(plan);
    readers.back().image_row = image_row && *image_row > 0 ? 0 : buffer_rows - rows;
  }
  return readers;
}

/// The producer's plans that leave the result where `reader` expects it. Where the producer's own
/// image lies in the buffer, it stays in the groups that it has there.
std::vector<StreamPlan> writers_of(const Lowered& producer, const StreamPlan& reader,
                                   const mmu::MachineConfig& machine) {
  const auto& image_row = producer.plan.image_row;
  const auto& read = reader.jobs[0].problem;
  std::vector<StreamPlan> writers;
  for (auto plan : producer.open) {
    auto& problem = plan.jobs[0].problem;
    if (image_row && problem.group != producer.plan.jobs[0].problem.group) continue;
    problem.result_bytes = machine.element_bytes();
    plan.image_row = image_row;
    plan.kept = {*reader.image_row, read.group, read.channels / read.group};
    writers.push_back(std::move(plan));
  }
  return writers;
}

struct Price {
  std::uint64_t cycles, bytes;  ///< of the DRAM
};

Price price_of(const Lowered& first, const Lowered& second) {
  auto sum = first.counters;
  sum += second.counters;
  const auto& bytes = sum.dram_bytes;
  return {sum.cycles, std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0})};
}

bool is_better(const Price& price, const Price& before) {
  if (price.cycles <= before.cycles) return true;
  return price.bytes < before.bytes &&
         static_cast<double>(price.cycles) <= kMostCycles * static_cast<double>(before.cycles);
}

/// Plans both again so that `producer` leaves its result in the buffer and `consumer` reads it
/// there as its streamed operand. The result must be of use to nobody else, and no other program
/// may run between the two. Nothing where the layouts do not match, the buffer is too small, or the
/// two would take longer than they do.
std::optional<std::pair<Lowered, Lowered>> keep_between(const Lowered& producer,
                                                        const Lowered& consumer,
                                                        const PlanLowering& lowering) {
  const auto& machine = lowering.machine();
  if (lowering.has_given_tiling()) return {};
  if (!are_simple(producer.plan, consumer.plan, machine)) return {};
  auto reader = lowering.lower(readers_of(producer, consumer, machine));
  if (!reader) return {};
  auto writer = lowering.lower(writers_of(producer, reader->plan, machine));
  if (!writer) return {};
  if (!is_better(price_of(*writer, *reader), price_of(producer, consumer))) return {};
  writer->open = producer.open;
  reader->open = consumer.open;
  return std::pair{std::move(*writer), std::move(*reader)};
}

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
  if (program.size() > kKeptInstructions) program.clear();
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
  const RunTotals work = {
      .bytes_in = plan.bytes_in, .bytes_out = plan.bytes_out, .useful_macs = plan.macs()};
  const auto run =
      kept.empty() ? device_.run(work, program(), counted_) : device_.run(work, kept, counted_);
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
