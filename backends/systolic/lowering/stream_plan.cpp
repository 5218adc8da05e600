// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/stream_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <stdexcept>

#include "backends/systolic/lowering/lower.h"
#include "core/base/checked_math.h"

namespace triptych::systolic {
namespace {

constexpr std::int64_t kAddressable = std::int64_t{1} << 32;

constexpr std::array kParts{Parts{2, 2}, Parts{2, 4}, Parts{4, 2}, Parts{4, 4}};
// The twin's clock decides between the best by estimate; not where that would take long, in
// programs so large that their ends do not count.
constexpr std::size_t kPriced = 6;
constexpr std::size_t kLongProgram = 20000;
constexpr double kWorthPricing = 1.3;

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
                     : choose_tiling(job.problem, machine, plan.parts);
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
    job.tiling = choose_tiling(job.problem, machine, plan.parts, slice);
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

void complete(StreamPlan& plan, const mmu::MachineConfig& machine) {
  fit(plan, machine);
  choose_tilings(plan, machine);
  agree_on_slices(plan, machine);
  estimate(plan);
  place(plan, machine);
}

mmu::Program make_program(const StreamPlan& plan, const mmu::MachineConfig& machine) {
  ProgramBuilder builder(machine, plan.parts);
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

/// All groups and parts that fit the machine, those with the fewest estimated cycles first.
std::vector<StreamPlan> candidates(const std::function<StreamPlan(const PlanTarget&)>& plan,
                                   const mmu::MachineConfig& machine) {
  std::vector<StreamPlan> all;
  std::exception_ptr problem;
  // Of two that are equally fast the larger group has fewer rows in the buffer.
  for (std::int64_t group = machine.rows; group >= 1; group /= 2) {
    for (const auto& parts : kParts) {
      auto candidate = plan({.group = group});
      candidate.parts = parts;
      try {
        complete(candidate, machine);
        all.push_back(std::move(candidate));
      } catch (const UnsupportedError&) {
        problem = std::current_exception();
      }
    }
  }
  if (all.empty()) std::rethrow_exception(problem);
  std::ranges::stable_sort(all, {}, &StreamPlan::cycles);
  return all;
}

}  // namespace

Lowered lower_plan(const std::function<StreamPlan(const PlanTarget&)>& plan,
                   const mmu::MachineConfig& machine) {
  auto plans = candidates(plan, machine);
  std::optional<Lowered> best;
  std::uint64_t fewest = 0;
  for (auto& candidate : std::span(plans).first(std::min(plans.size(), kPriced))) {
    if (best && candidate.cycles > kWorthPricing * static_cast<double>(fewest)) break;
    auto program = make_program(candidate, machine);
    const bool only = plans.size() == 1 || program.size() > kLongProgram;
    const auto cycles = only ? 0 : mmu::cycles_of(program, machine);
    if (best && cycles >= fewest) continue;
    best = Lowered{std::move(candidate), std::move(program)};
    fewest = cycles;
    if (only) break;
  }
  return std::move(*best);
}

}  // namespace triptych::systolic
