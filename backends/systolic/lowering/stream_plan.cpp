// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/stream_plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include "backends/systolic/lowering/lower.h"
#include "backends/systolic/lowering/tiling_choice.h"
#include "core/base/checked_math.h"

namespace triptych::systolic {
namespace {

constexpr std::int64_t kAddressable = std::int64_t{1} << 32;

constexpr std::array<std::int64_t, 2> kParts{4, 2};  // of either memory
// The twin's clock prices the best plans by estimate. Among those within kSlack of the fewest
// cycles the least DRAM traffic wins. Long programs are priced in smaller numbers: their ends,
// which the estimate knows least about, hardly count.
constexpr double kSlack = 1.01;
constexpr std::size_t kPriced = 12;  // at most, of the fastest as of the lightest
constexpr std::size_t kPricedInstructions = 160000;
constexpr double kWorthPricing = 1.3;
// An image that lies in the buffer is one box and one slice.
constexpr auto kAll = TilingChoice::kAll;
const TilingChoice kWhole = {.images = kAll, .y = kAll, .x = kAll, .channels = kAll, .taps = kAll};

void fit(StreamPlan& plan, const mmu::MachineConfig& machine) {
  for (auto& image : plan.images) image.element_bytes = machine.element_bytes();
  for (auto& matrix : plan.matrices) {
    matrix.element_bytes = machine.element_bytes();
    matrix.tile_columns = machine.columns;
  }
  for (auto& result : plan.results) result.tile_columns = machine.columns;
  for (auto& job : plan.jobs) {
    auto& result = plan.results[job.result];
    if (job.registers && plan.registers[*job.registers].files > 1) result.value_bytes = 1;
    job.problem.element_bytes = machine.element_bytes();
    job.problem.result_bytes = result.value_bytes;
  }
}

/// The best tilings of each job. Jobs of one shape are rated once.
std::vector<TilingCandidates> best_tilings(const StreamPlan& plan,
                                           const mmu::MachineConfig& machine,
                                           const TilingChoice& choice) {
  std::vector<TilingCandidates> tilings;
  const StreamJob* previous = nullptr;
  for (const auto& job : plan.jobs) {
    const bool known = previous != nullptr && previous->problem == job.problem;
    tilings.push_back(known ? tilings.back()
                            : choose_tilings(job.problem, machine, plan.parts, choice));
    previous = &job;
  }
  return tilings;
}

/// Jobs that stream one image need it in the same slices: the finest that one of them wants.
void agree_on_slices(StreamPlan& plan, const mmu::MachineConfig& machine, TilingChoice choice) {
  for (const auto& job : plan.jobs) {
    auto& slice = plan.images[job.image].slice;
    const auto wanted = job.tiling.slicing.channels;
    if (wanted > 0 && (slice == 0 || wanted < slice)) slice = wanted;
  }
  for (auto& job : plan.jobs) {
    const auto slice = plan.images[job.image].slice;
    if (job.tiling.slicing.channels == slice) continue;
    choice.channels = slice;
    job.tiling = choose_tilings(job.problem, machine, plan.parts, choice).fastest.front();
  }
}

void estimate(StreamPlan& plan) {
  double ramp = 0;
  for (const auto& job : plan.jobs) {
    plan.cycles += job.tiling.cycles;
    plan.traffic += job.tiling.traffic;
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
  plan.bytes_in = (plan.image_row ? 0 : place_all(plan.images)) + place_all(plan.matrices) +
                  place_all(plan.registers);
  plan.bytes_out = plan.kept ? 0 : place_all(plan.results);
  const auto limit = std::min(static_cast<std::int64_t>(machine.dram_bytes), kAddressable);
  if (plan.dram_bytes > limit) {
    throw UnsupportedError(fmt::format(
        "its operands take {} MiB of the machine's memory, {} has {}; use a smaller batch or "
        "another machine",
        (plan.dram_bytes >> 20) + 1, machine.name, limit >> 20));
  }
}

/// The machine as the plan's loads see it: rows that hold a kept result, which lies above them, are
/// none of theirs. An image that lies in the buffer already is no content of a part.
mmu::MachineConfig space_of(const StreamPlan& plan, mmu::MachineConfig machine) {
  if (plan.image_row)
    machine.buffer_rows = std::numeric_limits<std::uint32_t>::max();
  else if (plan.kept)
    machine.buffer_rows = static_cast<std::uint32_t>(plan.kept->row);
  return machine;
}

/// Tilings, slices and addresses.
void complete(StreamPlan& plan, const std::vector<Tiling>& tilings,
              const mmu::MachineConfig& machine, const TilingChoice& choice) {
  for (std::size_t i = 0; i < tilings.size(); ++i) plan.jobs[i].tiling = tilings[i];
  agree_on_slices(plan, machine, choice);
  estimate(plan);
  place(plan, machine);
}

bool same_tilings(const StreamPlan& a, const StreamPlan& b) {
  const auto cuts = [](Tiling tiling) {
    tiling.cycles = tiling.ramp = tiling.traffic = 0;
    return tiling;
  };
  return std::ranges::equal(a.jobs, b.jobs, [&](const StreamJob& x, const StreamJob& y) {
    return x.problem == y.problem && cuts(x.tiling) == cuts(y.tiling);
  });
}

/// The plan with the first of such tilings of its jobs, with the second ones, ...
void add_ranks(const StreamPlan& plan, const std::vector<TilingCandidates>& tilings,
               std::vector<Tiling> TilingCandidates::*kind, const mmu::MachineConfig& space,
               const TilingChoice& choice, std::vector<StreamPlan>& plans) {
  const auto count = [&](const TilingCandidates& of_job) { return (of_job.*kind).size(); };
  const auto most = count(std::ranges::max(tilings, {}, count));
  for (std::size_t rank = 0; rank < most; ++rank) {
    std::vector<Tiling> chosen;
    chosen.reserve(tilings.size());
    for (const auto& of_job : tilings) {
      chosen.push_back((of_job.*kind)[std::min(rank, count(of_job) - 1)]);
    }
    auto candidate = plan;
    complete(candidate, chosen, space, choice);
    // The same in larger parts waits longer.
    const auto same = [&](const StreamPlan& other) { return same_tilings(candidate, other); };
    if (std::ranges::none_of(plans, same)) plans.push_back(std::move(candidate));
  }
}

void add_candidates(const StreamPlan& plan, const mmu::MachineConfig& machine,
                    const TilingChoice& choice, std::vector<StreamPlan>& plans) {
  const auto space = space_of(plan, machine);
  const auto& sizes = plan.image_row ? kWhole : choice;
  const auto tilings = best_tilings(plan, space, sizes);
  add_ranks(plan, tilings, &TilingCandidates::fastest, space, choice, plans);
  add_ranks(plan, tilings, &TilingCandidates::lightest, space, choice, plans);
}

/// Plans that keep_between() may change later: none with several problems side by side.
std::vector<StreamPlan> open(std::vector<StreamPlan> plans) {
  if (plans[0].jobs.size() > 1) plans.clear();
  return plans;
}

mmu::Program make_program(const StreamPlan& plan, const mmu::MachineConfig& machine) {
  const auto space = space_of(plan, machine);
  ProgramBuilder builder(space, plan.parts);
  try {
    for (const auto& job : plan.jobs) {
      StreamAddresses addresses = {.stream = plan.images[job.image].address,
                                   .stationary = plan.matrices[job.matrix].address,
                                   .result = plan.results[job.result].address,
                                   .stream_row = plan.image_row,
                                   .kept = plan.kept};
      if (job.registers) {
        const auto& registers = plan.registers[*job.registers];
        addresses.registers = {registers.address, registers.files, registers.pitch()};
      }
      lower(job.problem, addresses, job.relu, job.tiling, space, builder);
    }
    return builder.finish();
  } catch (const std::invalid_argument& error) {
    throw UnsupportedError(
        fmt::format("the machine's instructions cannot express it: {}", error.what()));
  }
}

/// Into how many parts the memories may be cut.
std::vector<Parts> parts_of(const TilingChoice& choice) {
  std::vector<Parts> all;
  for (const auto buffer : kParts) {
    for (const auto accumulators : kParts) {
      const Parts parts = {choice.buffer.value_or(buffer),
                           choice.accumulators.value_or(accumulators)};
      if (std::ranges::find(all, parts) == all.end()) all.push_back(parts);
    }
  }
  return all;
}

/// All that fit the machine, those with the fewest estimated cycles first.
std::vector<StreamPlan> candidates(const std::vector<StreamPlan>& plans,
                                   const mmu::MachineConfig& machine, const TilingChoice& choice) {
  std::vector<StreamPlan> all;
  std::exception_ptr problem;  // of the largest group in the largest parts
  for (auto plan : plans) {
    for (const auto& parts : parts_of(choice)) {
      plan.parts = parts;
      try {
        add_candidates(plan, machine, choice, all);
      } catch (const UnsupportedError&) {
        const bool largest = plan.jobs[0].problem.group == plans[0].jobs[0].problem.group;
        if (largest) problem = std::current_exception();
      }
    }
  }
  if (all.empty()) std::rethrow_exception(problem);
  std::ranges::stable_sort(all, {}, &StreamPlan::cycles);
  return all;
}

std::uint64_t dram_bytes(const mmu::Counters& counters) {
  return std::accumulate(counters.dram_bytes.begin(), counters.dram_bytes.end(), std::uint64_t{0});
}

/// Prices plans and keeps the best one.
class Pricing {
 public:
  explicit Pricing(const mmu::MachineConfig& machine) : machine_(machine) {}

  /// Begins a series of plans that is_worth() compares.
  void begin() { plans_ = instructions_ = 0; }
  bool is_worth(const StreamPlan& plan) const {
    if (!best_) return true;
    return plans_ < kPriced && instructions_ < kPricedInstructions &&
           plan.cycles <= kWorthPricing * static_cast<double>(fewest_);
  }
  void price(const StreamPlan& plan) {
    auto program = make_program(plan, machine_);
    const auto counters = mmu::counters_of(program, machine_);
    ++plans_;
    instructions_ += program.size();
    fewest_ = std::min(fewest_, counters.cycles);
    if (best_ && !is_better(counters)) return;
    best_ = Lowered{plan, std::move(program), counters, {}};
  }
  const Lowered& best() const { return *best_; }
  Lowered take() { return std::move(*best_); }

 private:
  bool is_within_slack(const mmu::Counters& counters) const {
    return static_cast<double>(counters.cycles) <= kSlack * static_cast<double>(fewest_);
  }
  bool is_better(const mmu::Counters& counters) const {
    const auto& best = best_->counters;
    if (is_within_slack(counters) != is_within_slack(best)) return is_within_slack(counters);
    const auto bytes = dram_bytes(counters), least = dram_bytes(best);
    return bytes < least || (bytes == least && counters.cycles < best.cycles);
  }

  const mmu::MachineConfig& machine_;
  std::optional<Lowered> best_;
  std::uint64_t fewest_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t plans_ = 0, instructions_ = 0;
};

/// Prices plans of one dataflow, those with the fewest estimated cycles first.
void price_all(std::vector<StreamPlan> plans, Pricing& pricing) {
  std::size_t priced = 0;
  pricing.begin();
  while (priced < plans.size() && pricing.is_worth(plans[priced])) pricing.price(plans[priced++]);
  const auto near = kEstimateSlack * plans.front().cycles;
  plans.erase(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(priced));
  std::ranges::stable_sort(plans, {}, &StreamPlan::traffic);
  pricing.begin();
  for (const auto& plan : plans) {
    if (!pricing.is_worth(plan) || plan.traffic >= pricing.best().plan.traffic) break;
    if (plan.cycles <= near) pricing.price(plan);
  }
}

/// The plan with the least DRAM traffic among those within kSlack of the fewest cycles. `plans`:
/// those with the fewest estimated cycles first. Estimates compare tilings of one dataflow better
/// than those of two, so each dataflow has plans that are priced.
Lowered best_of(const std::vector<StreamPlan>& plans, const mmu::MachineConfig& machine) {
  Pricing pricing(machine);
  for (const auto dataflow : {Dataflow::WeightStationary, Dataflow::OutputStationary}) {
    std::vector<StreamPlan> of_one;
    std::ranges::copy_if(plans, std::back_inserter(of_one), [&](const StreamPlan& plan) {
      const bool stays = std::ranges::any_of(plan.jobs, [](const StreamJob& job) {
        return job.tiling.dataflow == Dataflow::OutputStationary;
      });
      return stays == (dataflow == Dataflow::OutputStationary);
    });
    if (!of_one.empty()) price_all(std::move(of_one), pricing);
  }
  return pricing.take();
}

}  // namespace

std::int64_t StreamPlan::macs() const {
  std::int64_t sum = 0;
  for (const auto& job : jobs) {
    const auto& matrix = matrices[job.matrix];
    const auto& result = results[job.result];
    const auto taps = std::ranges::count_if(matrix.taps, [](auto tap) { return tap >= 0; });
    sum += result.images * result.rows * result.positions * taps * matrix.channels * matrix.columns;
  }
  return sum;
}

mmu::Program PlanLowering::program_of(const StreamPlan& plan) const {
  return make_program(plan, machine_);
}

std::string tilings_of(const StreamPlan& plan) {
  std::vector<std::string> texts;
  for (const auto& job : plan.jobs) {
    auto text = to_string(job.tiling, plan.parts, job.problem);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

Lowered PlanLowering::lower(const Planner& planner) {
  std::vector<StreamPlan> plans;
  std::vector<StreamProblem> problems;
  // The largest group first: of two that are equally fast it has fewer rows in the buffer.
  for (std::uint32_t log2 = 9; log2-- > 0;) {
    if (!machine_.has_group(log2)) continue;
    const std::int64_t group = machine_.group(log2);
    if (tiling_.group && group != std::min<std::int64_t>(*tiling_.group, machine_.rows)) continue;
    plans.push_back(planner({.group = group}));
    fit(plans.back(), machine_);
    for (const auto& job : plans.back().jobs) problems.push_back(job.problem);
  }
  if (plans.empty()) {
    throw UnsupportedError(fmt::format(
        "the tiling \"{}\" does not fit {}: a buffer row holds as many channels as the array has "
        "rows, {}, or a power of two that divides them, not {}",
        tiling_.text, machine_.name, machine_.rows, *tiling_.group));
  }
  const auto known = std::ranges::find(choices_, problems, &Choice::problems);
  if (known != choices_.end()) {
    auto& plan = plans[known->plan];
    plan.parts = known->parts;
    auto completed = plan;
    complete(completed, known->tilings, machine_, tiling_);
    auto program = make_program(completed, machine_);
    return {std::move(completed), std::move(program), known->counters, open(std::move(plans))};
  }
  auto lowered = best_of(candidates(plans, machine_, tiling_), machine_);
  const auto& jobs = lowered.plan.jobs;
  const auto same_group = [&](const StreamPlan& plan) {
    return plan.jobs[0].problem.group == jobs[0].problem.group;
  };
  const auto index = std::ranges::find_if(plans, same_group) - plans.begin();
  Choice choice = {std::move(problems), static_cast<std::size_t>(index), lowered.counters,
                   lowered.plan.parts};
  for (const auto& job : jobs) choice.tilings.push_back(job.tiling);
  choices_.push_back(std::move(choice));
  lowered.open = open(std::move(plans));
  return lowered;
}

std::optional<Lowered> PlanLowering::lower(const std::vector<StreamPlan>& plans) const {
  if (plans.empty()) return {};
  try {
    return best_of(candidates(plans, machine_, tiling_), machine_);
  } catch (const UnsupportedError&) {
    return {};
  }
}

}  // namespace triptych::systolic
