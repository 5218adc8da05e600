// The RTL of several arrays on one DRAM, mmu_arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <verilated_sym_props.h>

#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include "systolic/dram/dram.h"
#include "systolic/isa/check.h"
#include "systolic/sim/harness.h"
#include "tests/systolic/cosim/verilated_bench.h"

namespace triptych::mmu {

/// Model is Verilator's class of mmu_arrays. Its parameters are the machine's. The counts of DRAM
/// bursts and row misses are those of all arrays, in the first report.
template <class Model>
class ArraysMachine : private VerilatedBench<Model>, public Arrays {
 public:
  explicit ArraysMachine(const MachineConfig& config)
      : VerilatedBench<Model>(config), dram_(config.dram) {}

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }

  std::vector<RunReport> run(std::span<const Program> programs,
                             const RunOptions& options) override {
    std::vector<TimesRecorder> recorders(programs.begin(), programs.end());
    std::vector<std::size_t> next(programs.size());
    std::vector<bool> runs(programs.size(), true);
    begin();
    for (std::uint64_t cycle = 0; std::ranges::find(runs, true) != runs.end(); ++cycle) {
      present(programs, next);
      serve_ports(cycle);
      settle();
      for (std::size_t a = 0; a < programs.size(); ++a) {
        recorders[a].started(cycle, bits_of(model_.trace_start_o, 4, a));
        recorders[a].ended(cycle + 1, bits_of(model_.trace_end_o, 4, a));
        const unsigned taken = model_.instruction_valid_i & model_.instruction_ready_o;
        next[a] += bits_of(taken, 1, a);
      }
      tick();
      for (std::size_t a = 0; a < programs.size(); ++a) {
        const auto status = static_cast<Status>(bits_of(model_.status_o, 3, a));
        if (!runs[a] || (status == Status::Running && cycle < options.max_cycles)) continue;
        if (status != Status::Halted)
          throw_stopped(status, cycle, programs[a], next[a], recorders[a]);
        recorders[a].halted(cycle);
        runs[a] = false;
      }
    }
    return reports(programs, recorders);
  }

  std::vector<std::uint16_t> read_buffer(std::size_t array) override {
    return read<std::uint16_t>(array, "gen_banks_buffer.u_buffer.gen_lane", "u_bank");
  }
  std::vector<std::uint32_t> read_accumulators(std::size_t array) override {
    return read<std::uint32_t>(array, "gen_banks_sums.u_accumulators.gen_bank", "u_bank.u_a");
  }

 private:
  using Bench = VerilatedBench<Model>;
  using Bench::config_, Bench::memory_, Bench::model_, Bench::bytes_of, Bench::settle, Bench::tick;

  /// The ports of the DRAM, in the order of their grants.
  enum Port : std::uint8_t { kWeights, kStore, kOperand, kLoad };

  template <class Bits>
  static unsigned bits_of(Bits bits, std::size_t width, std::size_t array) {
    return static_cast<unsigned>(std::uint64_t{bits} >> (width * array)) & ((1U << width) - 1);
  }
  void begin() {
    dram_.reset();
    for (auto& port : answers_) port.clear();
    model_.load_valid_i = model_.weights_valid_i = model_.operand_valid_i = 0;
    this->start();
  }
  void present(std::span<const Program> programs, const std::vector<std::size_t>& next) {
    unsigned valid = 0;
    for (std::size_t a = 0; a < programs.size(); ++a) {
      if (next[a] == programs[a].size()) continue;
      valid |= 1U << a;
      std::memcpy(bytes_of(model_.instruction_i) + 32 * a, programs[a][next[a]].words.data(), 32);
    }
    model_.instruction_valid_i = static_cast<std::uint8_t>(valid);
  }

  void serve_ports(std::uint64_t cycle) {
    Model& m = model_;
    const std::uint32_t element = config_.element_bytes();
    m.weights_ready_i =
        m.weights_request_o != 0 && serve(cycle, kWeights, m.weights_address_o, m.weights_bytes_o);
    m.store_ready_i =
        m.store_request_o != 0 && serve(cycle, kStore, m.store_address_o, m.store_bytes_o);
    m.operand_ready_i =
        m.operand_request_o != 0 && serve(cycle, kOperand, m.operand_address_o, m.operand_bytes_o);
    m.load_ready_i = m.load_request_o != 0 && serve(cycle, kLoad, m.load_address_o, m.load_bytes_o);
    m.load_valid_i = answer(cycle, kLoad, bytes_of(m.load_data_i), config_.rows * element);
    m.weights_valid_i =
        answer(cycle, kWeights, bytes_of(m.weights_data_i), config_.columns * element);
    m.operand_valid_i = answer(cycle, kOperand, bytes_of(m.operand_data_i), config_.columns * 4);
  }
  bool serve(std::uint64_t cycle, Port port, std::uint32_t address, std::uint32_t bytes) {
    if (!dram_.ready(cycle)) return false;
    if (address + std::uint64_t{bytes} > config_.dram_bytes)
      throw HardwareFault("[arrays] a request leaves the DRAM");
    constexpr std::array units{Unit::Weights, Unit::Store, Unit::Store, Unit::Load};
    const std::uint64_t arrival = dram_.request(cycle, units[port], address, bytes, port == kStore);
    if (port == kStore)
      std::memcpy(memory_.bytes().data() + address, bytes_of(model_.store_data_o), bytes);
    else
      answers_[port].push_back({arrival, address, bytes});
    if (answers_[port].size() > kSharedReads)
      throw HardwareFault("[arrays] more reads are outstanding than the arbiter can hold");
    return true;
  }
  bool answer(std::uint64_t cycle, Port port, std::byte* data, std::uint32_t width) {
    if (answers_[port].empty() || answers_[port].front().arrival != cycle) return false;
    const Answers::Answer& answer = answers_[port].front();
    std::memcpy(data, memory_.bytes().data() + answer.address, answer.bytes);
    std::memset(data + answer.bytes, 0xA5, width - answer.bytes);
    answers_[port].pop_front();
    return true;
  }

  std::vector<RunReport> reports(std::span<const Program> programs,
                                 std::vector<TimesRecorder>& recorders) {
    std::vector<std::array<std::uint64_t, kCounters + 1>> values(programs.size());
    this->read_counters(kCounters + 1, [&](std::size_t i) {
      for (std::size_t a = 0; a < programs.size(); ++a)
        std::memcpy(&values[a][i], bytes_of(model_.counter_o) + 8 * a, 8);
    });
    std::vector<RunReport> reports;
    for (std::size_t a = 0; a < programs.size(); ++a) {
      std::array<std::uint64_t, kCounters> own{};
      std::copy_n(values[a].begin(), kCounters, own.begin());
      reports.push_back({counters_from(own), recorders[a].take(), {}, {}});
      Counters& counters = reports.back().counters;
      counters.arbiter_wait_cycles = values[a][kCounters];
    }
    reports[0].counters.dram_bursts = dram_.bursts();
    reports[0].counters.dram_row_misses = dram_.row_misses();
    return reports;
  }

  /// Row by row. Bank i of an array is <banks>[i].<memory>, an mmu_sram_1r1w.
  template <class Value>
  std::vector<Value> read(std::size_t array, const std::string& banks, const char* memory) const {
    std::vector<const VerilatedVar*> found;
    const auto find = [&](std::size_t bank) {
      const std::string path = "TOP.mmu_arrays.gen_array[" + std::to_string(array) +
                               "].u_mmu.u_datapath." + banks + "[" + std::to_string(bank) + "].";
      return this->context_.scopeFind((path + memory).c_str());
    };
    while (const VerilatedScope* scope = find(found.size()))
      found.push_back(scope->varFind("memory_q"));
    if (found.empty()) throw std::logic_error("[arrays] the RTL has no such memory");
    const auto rows = static_cast<std::size_t>(found[0]->elements(1));
    const std::size_t bytes = found[0]->totalSize() / rows;
    std::vector<Value> values(rows * found.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i],
                  static_cast<const std::byte*>(found[i % found.size()]->datap()) +
                      i / found.size() * bytes,
                  bytes);
    return values;
  }

  Dram dram_;
  std::array<std::deque<Answers::Answer>, 4> answers_;
};

}  // namespace triptych::mmu
