// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "systolic/dram/memory.h"
#include "systolic/isa/check.h"
#include "systolic/isa/sharing.h"
#include "systolic/twin/functional.h"
#include "systolic/twin/timing_model.h"

namespace triptych::mmu {
namespace {

/// The arbiter's queue of the reads that a port owes: answers of the last kSharedReads.
class Owed {
 public:
  /// From when the port may grant one more.
  Cycle room() const { return count_ < kSharedReads ? 0 : arrivals_[count_ % kSharedReads] + 1; }
  void add(Cycle arrival) { arrivals_[count_++ % kSharedReads] = arrival; }

 private:
  std::array<Cycle, kSharedReads> arrivals_{};
  std::uint64_t count_ = 0;
};

/// The arbiter (systolic/rtl/mmu_arbiter.sv) and the arrays behind it. Invariant: all events before
/// the next turn or grant have been simulated, as in the model of one array.
class Turns {
 public:
  Turns(std::span<const Program> programs, const MachineConfig& machine, bool record_times)
      : dram_(machine.dram), arrays_(programs.size()), turn_(programs.size() - 1) {
    for (std::size_t a = 0; a < programs.size(); ++a)
      arrays_[a].timing = std::make_unique<Timing>(programs[a], machine, dram_, record_times);
  }

  std::vector<RunReport> run() {
    for (Array& array : arrays_) array.timing->settle();
    while (true) {
      const Cycle next = held_ ? next_grant() : next_turn();
      if (write_to_a_buffer(next)) continue;
      if (next == kUnknown) return finish();
      if (held_)
        grant(next);
      else
        take_turn(next);
    }
  }

 private:
  struct Array {
    std::unique_ptr<Timing> timing;
    Cycle after_turn = 0;  ///< the first cycle after its last turn
    std::uint64_t waits = 0;
  };

  static Cycle first_request(const Array& array) {
    Cycle first = kUnknown;
    for (const std::size_t port : Timing::kPriority)
      first = std::min(first, array.timing->requests_from(port));
    return first;
  }
  /// From when the array in turn may be granted its request at a port, if the DRAM is ready.
  Cycle possible(std::size_t port) const {
    const Cycle requested = arrays_[turn_].timing->requests_from(port);
    return requested == kUnknown ? kUnknown : std::max({requested, held_from_, owed_[port].room()});
  }
  Cycle next_turn() const {
    Cycle first = kUnknown;
    for (const Array& array : arrays_) first = std::min(first, first_request(array));
    return first == kUnknown ? kUnknown : std::max(first, free_from_);
  }
  Cycle next_grant() const {
    Cycle first = kUnknown;
    for (const std::size_t port : Timing::kPriority) first = std::min(first, possible(port));
    return dram_.next_ready(first);
  }
  /// At most one position, no later than `limit`.
  bool write_to_a_buffer(Cycle limit) {
    for (Array& array : arrays_) {
      const Cycle cycle = array.timing->next_buffer_write();
      if (cycle == kUnknown || cycle > limit) continue;
      if (array.timing->write_position(cycle)) array.timing->settle();
      return true;
    }
    return false;
  }
  /// To the next array that requests in this cycle.
  void take_turn(Cycle cycle) {
    do turn_ = (turn_ + 1) % arrays_.size();
    while (first_request(arrays_[turn_]) > cycle);
    Array& array = arrays_[turn_];
    array.waits += cycle - std::max(first_request(array), array.after_turn);
    held_ = true;
    held_from_ = cycle;
  }
  void grant(Cycle cycle) {
    Array& array = arrays_[turn_];
    bool ended = false;
    for (const std::size_t port : Timing::kPriority) {
      if (possible(port) > cycle || !dram_.ready(cycle)) continue;
      ended |= array.timing->grant(port, cycle);
      if (port != Timing::kStore) owed_[port].add(array.timing->last_arrival(port));
    }
    if (ended) array.timing->settle();
    held_ = false;
    array.after_turn = free_from_ = cycle + 1;
  }
  std::vector<RunReport> finish() {
    std::vector<RunReport> reports;
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      try {
        reports.push_back(arrays_[a].timing->finish());
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{} (array {})", error.what(), a));
      }
      reports.back().counters.arbiter_wait_cycles = arrays_[a].waits;
    }
    return reports;
  }

  Dram dram_;
  std::vector<Array> arrays_;
  std::array<Owed, Timing::kPorts> owed_;
  std::size_t turn_;     ///< of the array that has the ports, or had them last
  bool held_ = false;    ///< it has them
  Cycle held_from_ = 0;  ///< then
  Cycle free_from_ = 0;  ///< the first cycle after the last turn
};

class TwinArrays : public Arrays {
 public:
  explicit TwinArrays(const MachineConfig& config) : config_(config), memory_(config.dram_bytes) {
    for (std::uint32_t a = 0; a < config.arrays; ++a)
      arrays_.push_back(std::make_unique<Functional>(config, memory_.bytes()));
  }

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }

  std::vector<RunReport> run(std::span<const Program> programs,
                             const RunOptions& options) override {
    std::vector<RunReport> reports = estimate_arrays(programs, config_, options);
    // No program reads what another one writes, so their order does not matter.
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      arrays_[a]->begin_program();
      for (const Instruction& instruction : programs[a]) arrays_[a]->execute(instruction);
    }
    return reports;
  }

  std::vector<std::uint16_t> read_buffer(std::size_t array) override {
    return arrays_.at(array)->buffer();
  }
  std::vector<std::uint32_t> read_accumulators(std::size_t array) override {
    return arrays_.at(array)->accumulators();
  }

 private:
  MachineConfig config_;
  Memory memory_;
  std::vector<std::unique_ptr<Functional>> arrays_;
};

}  // namespace

std::unique_ptr<Arrays> open_twin_arrays(const MachineConfig& machine) {
  validate(machine);
  return std::make_unique<TwinArrays>(machine);
}

std::vector<RunReport> estimate_arrays(std::span<const Program> programs,
                                       const MachineConfig& machine, const RunOptions& options) {
  for (const Program& program : programs) check_program(program, machine);
  check_sharing(programs, machine);
  return Turns(programs, machine, options.record_times).run();
}

}  // namespace triptych::mmu
