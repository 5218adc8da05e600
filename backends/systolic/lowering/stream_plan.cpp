// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/stream_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "backends/systolic/lowering/lower.h"
#include "core/base/checked_math.h"

namespace triptych::systolic {
namespace {

constexpr std::int64_t kAddressable = std::int64_t{1} << 32;

void fit(StreamPlan& plan, const mmu::MachineConfig& machine) {
  for (auto& image : plan.images) image.element_bytes = machine.element_bytes();
  for (auto& matrix : plan.matrices) {
    matrix.element_bytes = machine.element_bytes();
    matrix.tile_columns = machine.columns;
  }
  for (auto& result : plan.results) result.tile_columns = machine.columns;
  for (auto& job : plan.jobs) job.problem.element_bytes = machine.element_bytes();
}

/// Jobs of one shape are rated once.
void choose_tilings(StreamPlan& plan, const mmu::MachineConfig& machine) {
  const StreamJob* previous = nullptr;
  for (auto& job : plan.jobs) {
    job.tiling = previous != nullptr && previous->problem == job.problem
                     ? previous->tiling
                     : choose_tiling(job.problem, machine);
    previous = &job;
  }
}

/// Jobs that stream one image need it in the same slices: the finest that one of them wants.
void agree_on_slices(StreamPlan& plan, const mmu::MachineConfig& machine) {
  for (const auto& job : plan.jobs) {
    auto& slice = plan.images[job.image].slice;
    const auto wanted = job.tiling.slicing.channels;
    if (wanted > 0 && (slice == 0 || wanted < slice)) slice = wanted;
  }
  for (auto& job : plan.jobs) {
    const auto slice = plan.images[job.image].slice;
    if (job.tiling.slicing.channels == slice) continue;
    job.tiling = choose_tiling(job.problem, machine, slice);
  }
}

void estimate(StreamPlan& plan) {
  double ramp = 0;
  for (const auto& job : plan.jobs) {
    plan.cycles += job.tiling.cycles;
    ramp = std::max(ramp, job.tiling.ramp);
  }
  plan.cycles += ramp;
}

void place(StreamPlan& plan, const mmu::MachineConfig& machine) {
  const auto place_all = [&](auto& operands) {
    std::int64_t sum = 0;
    for (auto& operand : operands) {
      operand.address = static_cast<std::uint32_t>(plan.dram_bytes);
      sum = checked_add(sum, operand.bytes());
      plan.dram_bytes = round_up(checked_add(plan.dram_bytes, operand.bytes()),
                                 std::max<std::int64_t>(machine.dram.burst_bytes, 4));
    }
    return sum;
  };
  plan.bytes_in = place_all(plan.images) + place_all(plan.matrices) + place_all(plan.biases);
  plan.bytes_out = place_all(plan.results);
  const auto limit = std::min(static_cast<std::int64_t>(machine.dram_bytes), kAddressable);
  if (plan.dram_bytes > limit) {
    throw UnsupportedError(fmt::format(
        "its operands take {} MiB of the machine's memory, {} has {}; use a smaller --batch or "
        "another --machine",
        (plan.dram_bytes >> 20) + 1, machine.name, limit >> 20));
  }
}

}  // namespace

StreamPlan choose_plan(const std::function<StreamPlan(const PlanTarget&)>& plan,
                       const mmu::MachineConfig& machine) {
  std::optional<StreamPlan> best;
  for (std::int64_t group = 1; group <= machine.rows; group *= 2) {
    auto candidate = plan({.group = group});
    fit(candidate, machine);
    choose_tilings(candidate, machine);
    agree_on_slices(candidate, machine);
    estimate(candidate);
    // Of two that are equally fast the later one has fewer rows in the buffer.
    if (!best || candidate.cycles <= best->cycles) best = std::move(candidate);
  }
  place(*best, machine);
  return std::move(*best);
}

mmu::Program make_program(const StreamPlan& plan, const mmu::MachineConfig& machine) {
  ProgramBuilder builder(machine);
  try {
    for (const auto& job : plan.jobs) {
      StreamAddresses addresses = {.stream = plan.images[job.image].address,
                                   .stationary = plan.matrices[job.matrix].address,
                                   .result = plan.results[job.result].address};
      if (job.bias) addresses.bias = plan.biases[*job.bias].address;
      lower(job.problem, addresses, job.relu, job.tiling, machine, builder);
    }
    return builder.finish();
  } catch (const std::invalid_argument& error) {
    throw UnsupportedError(
        fmt::format("the machine's instructions cannot express it: {}", error.what()));
  }
}

}  // namespace triptych::systolic
