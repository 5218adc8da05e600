// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/keep.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace triptych::systolic {
namespace {

// Cycles that less traffic may cost: matmuls that wait for no loads are cut into fewer parts, whose
// last results take longer to leave.
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

/// Buffer rows of an image that lies there as a whole.
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

}  // namespace

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

}  // namespace triptych::systolic
