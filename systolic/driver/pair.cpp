// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "systolic/isa/accesses.h"
#include "systolic/isa/check.h"

namespace triptych::mmu {
namespace {

struct NamedCount {
  std::string_view name;
  std::uint64_t value;
};

std::vector<NamedCount> list(const Counters& counters) {
  const auto& stalls = counters.stall_cycles;
  return {{"cycles", counters.cycles},
          {"issue cycles", counters.issue_cycles},
          {"padding cycles", counters.padding_cycles},
          {"stall cycles: drain", stalls[0]},
          {"stall cycles: activations", stalls[1]},
          {"stall cycles: output", stalls[2]},
          {"stall cycles: dram", stalls[3]},
          {"stall cycles: weights", stalls[4]},
          {"stall cycles: accumulator", stalls[5]},
          {"stall cycles: in-flight", stalls[6]},
          {"MACs", counters.macs},
          {"buffer reads", counters.buffer_reads},
          {"buffer writes", counters.buffer_writes},
          {"accumulator reads", counters.accumulator_reads},
          {"accumulator writes", counters.accumulator_writes},
          {"weight reads", counters.weight_reads},
          {"DRAM bytes of load", counters.dram_bytes[0]},
          {"DRAM bytes of weights", counters.dram_bytes[1]},
          {"DRAM bytes of compute", counters.dram_bytes[2]},
          {"DRAM bytes of store", counters.dram_bytes[3]},
          {"DRAM bursts", counters.dram_bursts},
          {"DRAM row misses", counters.dram_row_misses},
          {"instructions of load", counters.instructions[0]},
          {"instructions of weights", counters.instructions[1]},
          {"instructions of compute", counters.instructions[2]},
          {"instructions of store", counters.instructions[3]}};
}

/// The index of the first element that differs, or the size.
template <class T>
std::size_t first_difference(const std::vector<T>& first, const std::vector<T>& second) {
  return static_cast<std::size_t>(std::ranges::mismatch(first, second).in1 - first.begin());
}

class Pair : public Machine {
 public:
  Pair(std::unique_ptr<Machine> first, std::unique_ptr<Machine> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  const MachineConfig& config() const override { return first_->config(); }
  std::span<std::byte> dram() override { return first_->dram(); }
  std::vector<std::uint16_t> read_buffer() override { return first_->read_buffer(); }
  std::vector<std::uint32_t> read_accumulators() override { return first_->read_accumulators(); }

  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config());
    copy_accessed(program);
    RunOptions timed = options;
    timed.record_times = true;
    RunReport report = first_->run(program, timed);
    const RunReport other = second_->run(program, timed);
    reject(difference(report, other, program));
    compare_stores(program);
    compare_memories();
    if (!options.record_times) report.times.clear();
    return report;
  }

 private:
  static void reject(const std::string& difference) {
    if (!difference.empty()) throw std::runtime_error("[mmu] RTL and twin differ: " + difference);
  }

  /// visit(instruction, address, bytes, is_write) in program order.
  template <class Visit>
  void visit_program(const Program& program, Visit visit) {
    StoreGeometry geometry;
    for (std::size_t i = 0; i < program.size(); ++i) {
      geometry.set(program[i]);
      visit_accesses(program[i], geometry, config(),
                     [&](std::uint64_t address, std::uint64_t bytes, bool is_write) {
                       visit(i, address, bytes, is_write);
                       return true;
                     });
    }
  }

  void copy_accessed(const Program& program) {
    const std::byte* source = first_->dram().data();
    std::byte* target = second_->dram().data();
    visit_program(program, [&](std::size_t, std::uint64_t address, std::uint64_t bytes, bool) {
      std::memcpy(target + address, source + address, bytes);
    });
  }

  void compare_stores(const Program& program) {
    const std::byte* first = first_->dram().data();
    const std::byte* second = second_->dram().data();
    visit_program(program,
                  [&](std::size_t i, std::uint64_t address, std::uint64_t bytes, bool is_write) {
                    if (is_write && std::memcmp(first + address, second + address, bytes) != 0)
                      reject(fmt::format("DRAM bytes {} to {}, written by instruction {} ({})",
                                         address, address + bytes - 1, i, disassemble(program[i])));
                  });
  }

  void compare_memories() {
    const auto values = first_->read_accumulators();
    const std::size_t value = first_difference(values, second_->read_accumulators());
    if (value < values.size())
      reject(fmt::format("accumulator row {}, column {}", value / config().columns,
                         value % config().columns));
    const auto elements = first_->read_buffer();
    const std::size_t element = first_difference(elements, second_->read_buffer());
    if (element < elements.size())
      reject(
          fmt::format("buffer row {}, bank {}", element / config().rows, element % config().rows));
  }

  std::unique_ptr<Machine> first_, second_;
};

}  // namespace

std::string difference(const RunReport& first, const RunReport& second, const Program& program) {
  for (std::size_t i = 0; i < std::min(first.times.size(), second.times.size()); ++i) {
    const InstructionTimes& a = first.times[i];
    const InstructionTimes& b = second.times[i];
    if (a != b)
      return fmt::format("instruction {} ({}): cycles {} to {} and {} to {}", i,
                         disassemble(program[i]), a.start, a.end, b.start, b.end);
  }
  const auto counts = list(first.counters);
  const auto others = list(second.counters);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i].value != others[i].value)
      return fmt::format("{}: {} and {}", counts[i].name, counts[i].value, others[i].value);
  return {};
}

std::unique_ptr<Machine> open_pair(std::unique_ptr<Machine> first,
                                   std::unique_ptr<Machine> second) {
  return std::make_unique<Pair>(std::move(first), std::move(second));
}

}  // namespace triptych::mmu
