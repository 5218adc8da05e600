// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/simulator.h"

#include <utility>

namespace triptych::mmu {
namespace {

constexpr std::array<std::string_view, kStalls> kStallNames{
    "drain", "activations", "output", "dram", "weights", "accumulator", "in_flight"};

/// Calls visit(name, value) for every counter, in the order of the manual.
void visit_counts(auto& counters, const auto& visit) {
  const auto visit_all = [&](std::string_view before, auto names, std::string_view after,
                             auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string name(before);
      name += to_string(static_cast<decltype(names)>(i));
      visit(name += after, values[i]);
    }
  };
  visit("cycles", counters.cycles);
  visit("issue_cycles", counters.issue_cycles);
  visit("padding_cycles", counters.padding_cycles);
  visit_all("stall_", Stall{}, "_cycles", counters.stall_cycles);
  visit("macs", counters.macs);
  visit("buffer_reads", counters.buffer_reads);
  visit("buffer_writes", counters.buffer_writes);
  visit("accumulator_reads", counters.accumulator_reads);
  visit("accumulator_writes", counters.accumulator_writes);
  visit("weight_reads", counters.weight_reads);
  visit_all("dram_", Unit{}, "_bytes", counters.dram_bytes);
  visit("dram_bursts", counters.dram_bursts);
  visit("dram_row_misses", counters.dram_row_misses);
  visit_all("", Unit{}, "_instructions", counters.instructions);
}

constexpr const char* kArbiterWaits = "arbiter_wait_cycles";

void visit_counts_of_vectors(auto& counts, const auto& visit) {
  visit("vector_cycles", counts.cycles);
  visit("vector_reads", counts.reads);
  visit("vector_writes", counts.writes);
  visit("vector_adds", counts.adds);
  visit("vector_multiplies", counts.multiplies);
  visit("vector_fmas", counts.fmas);
  visit("vector_others", counts.others);
}

/// sum += other for every counter that visit_all(counters, visit) lists.
template <class Counts, class VisitAll>
void add_counts(Counts& sum, const Counts& other, const VisitAll& visit_all) {
  std::vector<std::uint64_t> values;
  visit_all(other, [&](const auto&, std::uint64_t value) { values.push_back(value); });
  auto value = values.begin();
  visit_all(sum, [&](const auto&, std::uint64_t& total) { total += *value++; });
}

}  // namespace

std::string_view to_string(Stall stall) { return kStallNames[static_cast<std::size_t>(stall)]; }

std::vector<NamedCount> named_counts(const Counters& counters) {
  std::vector<NamedCount> named;
  const auto add = [&](std::string name, std::uint64_t value) {
    named.push_back({std::move(name), value});
  };
  visit_counts(counters, add);
  if (counters.arbiter_wait_cycles > 0) add(kArbiterWaits, counters.arbiter_wait_cycles);
  visit_counts_of_vectors(counters.vector, add);
  return named;
}

bool is_counter(std::string_view name) {
  bool found = name == kArbiterWaits;
  const auto compare = [&](std::string_view other, std::uint64_t) { found |= other == name; };
  const Counters counters;
  visit_counts(counters, compare);
  visit_counts_of_vectors(counters.vector, compare);
  return found;
}

Counters counters_from(const std::function<std::uint64_t(const std::string&)>& value_of) {
  Counters counters;
  const auto take = [&](const std::string& name, std::uint64_t& value) { value = value_of(name); };
  visit_counts(counters, take);
  take(kArbiterWaits, counters.arbiter_wait_cycles);
  visit_counts_of_vectors(counters.vector, take);
  return counters;
}

VectorCounts& VectorCounts::operator+=(const VectorCounts& other) {
  const auto visit_all = [](auto& counts, const auto& visit) {
    visit_counts_of_vectors(counts, visit);
  };
  add_counts(*this, other, visit_all);
  return *this;
}

Counters& Counters::operator+=(const Counters& other) {
  const auto visit_all = [](auto& counters, const auto& visit) { visit_counts(counters, visit); };
  add_counts(*this, other, visit_all);
  arbiter_wait_cycles += other.arbiter_wait_cycles;
  vector += other.vector;
  return *this;
}

}  // namespace triptych::mmu
