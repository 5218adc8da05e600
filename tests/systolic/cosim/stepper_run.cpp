// A cycle of a run: dispatch, tokens, the ports of the DRAM.
// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_run.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace triptych::mmu {

StepperRun::StepperRun(const Program& program, const MachineConfig& config,
                       std::span<std::byte> memory, StepperArray& array, StepperVector& vector)
    : program_(program),
      config_(config),
      memory_(memory),
      array_(array),
      vector_(vector),
      dram_(config.dram),
      store_(config, array) {
  report_.times.resize(program.size());
  vector_.counts = {};
  vector_.accumulator_reads = 0;
}

RunReport StepperRun::execute() {
  while (!halted_) step();
  report_.counters.cycles = cycle_;
  report_.counters.accumulator_reads += store_.accumulator_reads + vector_.accumulator_reads;
  report_.counters.vector = vector_.counts;
  report_.counters.dram_bursts = dram_.bursts();
  report_.counters.dram_row_misses = dram_.row_misses();
  return report_;
}

void StepperRun::step() {
  while (!actions_.empty() && actions_.begin()->first <= cycle_) {
    actions_.begin()->second();
    actions_.erase(actions_.begin());
  }
  const bool accepted = dispatch();
  start_loader();
  if (halt()) return;
  step_compute();
  pop_load();
  pop_weights();
  pop_store();
  grant();
  store_.step();
  array_.step(slot_, stream_, taps_);
  if (accepted) {
    const auto unit = static_cast<std::size_t>(find_opcode(program_[next_].opcode())->unit);
    queues_[unit].push_back(next_++);
    moved_in_ = cycle_;
  }
  if (cycle_ > moved_in_ + kTimeout) throw std::runtime_error("[stepper] status timeout");
  ++cycle_;
}

void StepperRun::at(std::uint64_t cycle, std::function<void()> action) {
  actions_.emplace(cycle, std::move(action));
}

bool StepperRun::dispatch() const {
  if (program_[next_].opcode() == Opcode::Halt) return false;
  const auto unit = static_cast<std::size_t>(find_opcode(program_[next_].opcode())->unit);
  return queues_[unit].size() < config_.queue_depth;
}

bool StepperRun::halt() {
  if (program_[next_].opcode() != Opcode::Halt || loader_rows_ > 0 || !in_flight().empty() ||
      reading_registers_ || vector_runs_)
    return false;
  for (std::size_t unit = 0; unit < kUnits; ++unit)
    if (!queues_[unit].empty() || units_[unit].busy || units_[unit].outstanding > 0) return false;
  report_.times[next_] = {cycle_, cycle_};
  return halted_ = true;
}

bool StepperRun::has_tokens(std::size_t taker, unsigned givers) const {
  for (std::size_t giver = 0; giver < kUnits; ++giver)
    if ((head(taker).wait() & givers) >> giver & 1 && tokens_[giver][taker] == 0) return false;
  return true;
}

std::size_t StepperRun::pop(std::size_t unit) {
  const std::size_t index = queues_[unit].front();
  for (std::size_t giver = 0; giver < kUnits; ++giver)
    if (program_[index].wait() >> giver & 1) --tokens_[giver][unit];
  queues_[unit].pop_front();
  ++report_.counters.instructions[unit];
  report_.times[index].start = cycle_;
  moved_in_ = cycle_;
  return index;
}

void StepperRun::give(std::size_t unit, std::size_t index, std::uint64_t cycle, unsigned takers) {
  at(cycle, [this, unit, index, takers] {
    for (std::size_t taker = 0; taker < kUnits; ++taker)
      if ((program_[index].signal() & takers) >> taker & 1 && ++tokens_[unit][taker] > 255)
        throw std::runtime_error("[stepper] status token");
  });
}

void StepperRun::end(std::size_t unit, std::size_t index, std::uint64_t cycle) {
  give(unit, index, cycle, 15);
  report_.times[index].end = cycle;
}

void StepperRun::start_requests(std::size_t unit, std::size_t index, std::uint64_t requests,
                                std::uint64_t from) {
  DramUnit& state = units_[unit];
  state.busy = true;
  state.instruction = index;
  state.request = 0;
  state.requests = requests;
  state.presented_from = from;
}

bool StepperRun::presents(std::size_t unit) const {
  const DramUnit& state = units_[unit];
  if (unit == kStore && !vector_runs_ && !store_.shows_position()) return false;
  if (unit == kOperand && !reading_registers_ && !vector_runs_ && !store_.has_room()) return false;
  return state.busy && cycle_ >= state.presented_from && state.outstanding < 128;
}

void StepperRun::grant() {
  const bool to_buffer = !vector_runs_ && store_.writes_buffer();
  if (to_buffer && presents(kStore) && !load_arrivals_.contains(cycle_)) fill_buffer();
  for (const std::size_t unit : {kWeights, kStore, kOperand, kLoad}) {
    if (unit == kStore && to_buffer) continue;
    if (!presents(unit) || !dram_.ready(cycle_)) continue;
    if (unit == kWeights) grant_weights();
    if (unit == kStore) grant_store();
    if (unit == kOperand) grant_operand();
    if (unit == kLoad) grant_load();
    moved_in_ = cycle_;
  }
}

void StepperRun::book(std::size_t port, std::uint32_t address, std::uint32_t bytes, bool write,
                      const std::function<void()>& arrived) {
  DramUnit& state = units_[port];
  const std::size_t unit = port == kOperand ? kStore : port;
  const std::uint64_t arrival =
      dram_.request(cycle_, static_cast<Unit>(unit), address, bytes, write);
  report_.counters.dram_bytes[unit] += bytes;
  if (port == kLoad) load_arrivals_.insert(arrival);
  const bool last = leave_port(port);
  const bool ends = last && (port != kOperand || reading_registers_ || vector_runs_);
  if (ends) end(unit, state.instruction, write ? cycle_ + 1 : arrival + 1);
  if (write) return;
  at(cycle_ + 1, [&state] { ++state.outstanding; });
  at(arrival + 1, [&state, arrived] {
    --state.outstanding;
    arrived();
  });
}

bool StepperRun::leave_port(std::size_t port) {
  DramUnit& state = units_[port];
  state.presented_from = cycle_ + 1;
  const bool last = ++state.request == state.requests;
  if (last) at(cycle_ + 1, [&state] { state.busy = false; });
  if (last) state.presented_from = ~std::uint64_t{0};
  return last;
}

std::vector<std::byte> StepperRun::bytes_at(std::uint32_t address, std::uint32_t bytes) const {
  const auto first = memory_.begin() + address;
  return {first, first + bytes};
}

std::uint16_t StepperRun::element(const std::byte* data, std::uint32_t index) const {
  std::uint16_t value = 0;
  std::memcpy(&value, data + index * config_.element_bytes(), config_.element_bytes());
  return value;
}

}  // namespace triptych::mmu
