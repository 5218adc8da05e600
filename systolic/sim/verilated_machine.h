// The harness around one verilated mmu_top: clock, program, DRAM, waves. Compiled once per machine,
// over Verilator's class for it; ports are named alike in all of them and differ only in width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "systolic/dram/dram.h"
#include "systolic/dram/memory.h"
#include "systolic/isa/check.h"
#include "systolic/sim/harness.h"
#include "systolic/sim/save_file.h"

namespace triptych::mmu {

/// Model is Verilator's class of the machine.
template <class Model>
class VerilatedMachine : public Machine {
 public:
  explicit VerilatedMachine(const MachineConfig& config)
      : config_(config), memory_(config.dram_bytes), dram_(config.dram) {
    context_.traceEverOn(true);
    context_.assertOn(true);
    model_ = std::make_unique<Model>(&context_);
    model_->weight_scheme_i = static_cast<std::uint8_t>(config.weight_scheme);
    model_->rst_ni = 0;
    model_->load_ready_i = model_->weights_ready_i = model_->store_ready_i = 0;
    tick();
    model_->rst_ni = 1;
  }
  ~VerilatedMachine() override { model_->final(); }

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }

  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config_);
    TimesRecorder recorder(options.record_times ? program : Program{});
    std::unique_ptr<VerilatedFstC> waves;
    begin();
    std::size_t next = 0;
    for (std::uint64_t cycle = 0;; ++cycle) {
      if (!options.waves.empty()) step_waves(waves, options, cycle);
      present(program, next, cycle);
      settle(waves.get(), cycle);
      const bool accepted = model_->instruction_valid_i != 0 && model_->instruction_ready_o != 0;
      if (options.record_times) {
        recorder.started(cycle, model_->trace_start_o);
        recorder.ended(cycle + 1, model_->trace_end_o);
      }
      tick(waves.get(), cycle);
      next += accepted ? 1 : 0;
      const auto status = static_cast<Status>(model_->status_o);
      if (status == Status::Running) continue;
      if (waves) close_waves(waves, options);
      if (status != Status::Halted) throw_stopped(status, cycle, program, next);
      if (options.record_times) recorder.halted(cycle);
      return {read_counters(), recorder.take()};
    }
  }

  std::vector<std::uint16_t> read_buffer() override {
    const auto& banks = model_->rootp->mmu_top__DOT__u_datapath__DOT__u_buffer__DOT__memory_q;
    return by_rows<std::uint16_t>(banks, config_.rows, config_.buffer_rows);
  }
  std::vector<std::uint32_t> read_accumulators() override {
    const auto& banks = model_->rootp->mmu_top__DOT__u_datapath__DOT__u_accumulators__DOT__memory_q;
    return by_rows<std::uint32_t>(banks, config_.columns, config_.accumulator_rows);
  }

 private:
  template <class Value, class Banks>
  static std::vector<Value> by_rows(const Banks& banks, std::size_t width, std::size_t rows) {
    std::vector<Value> values;
    values.reserve(width * rows);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t bank = 0; bank < width; ++bank) values.push_back(banks[bank][row]);
    return values;
  }

  void tick(VerilatedFstC* waves = nullptr, std::uint64_t cycle = 0) {
    model_->clk_i = 1;
    model_->eval();
    if (waves != nullptr) waves->dump(2 * cycle + 1);
  }
  void settle(VerilatedFstC* waves = nullptr, std::uint64_t cycle = 0) {
    model_->clk_i = 0;
    model_->eval();
    if (waves != nullptr) waves->dump(2 * cycle);
  }

  /// The cycle before cycle 0.
  void begin() {
    dram_.reset();
    for (Answers& answers : answers_) answers.clear();
    model_->instruction_valid_i = 0;
    model_->load_valid_i = model_->weights_valid_i = model_->bias_valid_i = 0;
    model_->start_i = 1;
    settle();
    tick();
    model_->start_i = 0;
    presented_ = ~std::size_t{0};
  }

  /// The inputs of a cycle.
  void present(const Program& program, std::size_t next, std::uint64_t cycle) {
    if (next != presented_) {
      presented_ = next;
      model_->instruction_valid_i = next < program.size();
      if (next < program.size())
        std::memcpy(&model_->instruction_i, program[next].words.data(), 32);
    }
    serve_requests(cycle);
    const std::uint32_t element = config_.element_bytes();
    model_->load_valid_i = answer(Unit::Load, cycle, model_->load_data_i, config_.rows * element);
    model_->weights_valid_i =
        answer(Unit::Weights, cycle, model_->weights_data_i, config_.columns * element);
    model_->bias_valid_i = answer(Unit::Store, cycle, model_->bias_data_i, config_.columns * 4);
  }

  /// Ports of any width are stored as little-endian bytes. Those beyond what was asked for are made
  /// meaningless, lest the answer before show through.
  template <class Port>
  bool answer(Unit unit, std::uint64_t cycle, Port& port, std::uint32_t width) {
    const Answers::Answer* answer = answers_[static_cast<std::size_t>(unit)].take(cycle);
    if (answer == nullptr) return false;
    std::memcpy(&port, memory_.bytes().data() + answer->address, answer->bytes);
    std::memset(reinterpret_cast<std::byte*>(&port) + answer->bytes, 0xA5, width - answer->bytes);
    return true;
  }

  /// What the units request is in their registers since the last edge: the DRAM, like a memory
  /// controller, looks at all three and then says which of them it takes.
  void serve_requests(std::uint64_t cycle) {
    model_->weights_ready_i =
        model_->weights_request_o != 0 &&
        serve(cycle, Unit::Weights, model_->weights_address_o, model_->weights_bytes_o, nullptr);
    model_->store_ready_i =
        model_->store_request_o != 0 &&
        serve(cycle, Unit::Store, model_->store_address_o, model_->store_bytes_o,
              model_->store_write_o != 0 ? &model_->store_data_o : nullptr);
    model_->load_ready_i =
        model_->load_request_o != 0 &&
        serve(cycle, Unit::Load, model_->load_address_o, model_->load_bytes_o, nullptr);
  }
  /// A request of a cycle: a write of data, or a read. False if the DRAM does not take it.
  bool serve(std::uint64_t cycle, Unit unit, std::uint32_t address, std::uint32_t bytes,
             const void* data) {
    if (!dram_.ready(cycle)) return false;
    check_range(address, bytes);
    const std::uint64_t arrival = dram_.request(cycle, unit, address, bytes, data != nullptr);
    if (data != nullptr)
      std::memcpy(memory_.bytes().data() + address, data, bytes);
    else
      answers_[static_cast<std::size_t>(unit)].push({arrival, address, bytes});
    return true;
  }
  void check_range(std::uint32_t address, std::uint32_t bytes) {
    if (address + std::uint64_t{bytes} > memory_.bytes().size())
      throw std::runtime_error("[mmu] the machine asks for DRAM beyond its end");
  }

  void step_waves(std::unique_ptr<VerilatedFstC>& waves, const RunOptions& options,
                  std::uint64_t cycle) {
    if (cycle == options.waves_begin) {
      waves = std::make_unique<VerilatedFstC>();
      model_->trace(waves.get(), 99);
      waves->open(options.waves.c_str());
      if (!waves->isOpen())
        throw std::runtime_error("[mmu] cannot write waves to '" + options.waves + "'");
    }
    if (waves && cycle == options.waves_end) close_waves(waves, options);
  }
  static void close_waves(std::unique_ptr<VerilatedFstC>& waves, const RunOptions& options) {
    waves->close();
    waves.reset();
    write_save_file(options.waves);
  }

  Counters read_counters() {
    std::array<std::uint64_t, kCounters> values{};
    for (int i = 0; i < kCounters; ++i) {
      model_->counter_i = static_cast<std::uint8_t>(i);
      settle();
      tick();
      values[static_cast<std::size_t>(i)] = model_->counter_o;
    }
    Counters counters = counters_from(values);
    counters.dram_bursts = dram_.bursts();
    counters.dram_row_misses = dram_.row_misses();
    return counters;
  }

  MachineConfig config_;
  Memory memory_;
  Dram dram_;
  VerilatedContext context_;
  std::unique_ptr<Model> model_;
  std::array<Answers, kUnits> answers_;
  std::size_t presented_ = 0;
};

}  // namespace triptych::mmu
