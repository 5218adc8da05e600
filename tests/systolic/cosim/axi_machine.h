// The RTL behind AXI4 masters, mmu_axi, as a machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "systolic/isa/check.h"
#include "systolic/sim/harness.h"
#include "tests/systolic/cosim/axi_memory.h"
#include "tests/systolic/cosim/verilated_bench.h"

namespace triptych::mmu {

/// Model is Verilator's class of mmu_axi. Its parameters are the machine's.
template <class Model>
class AxiMachine : private VerilatedBench<Model>, public Machine {
 public:
  /// All random times follow from the seed.
  AxiMachine(const MachineConfig& config, const AxiTiming& timing, std::uint32_t seed)
      : VerilatedBench<Model>(config), timing_(timing), random_(seed) {}

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }
  /// The memory has reported an error since the start of the program.
  bool error() const { return model_.error_o != 0; }

  /// Bursts that the load unit has read.
  std::uint64_t load_bursts() const { return reads_[0].count(); }

  /// `times` and the DRAM's own counters stay empty.
  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config_);
    TimesRecorder recorder(program);
    begin();
    std::size_t next = 0;
    bool waits = false;
    std::uint64_t stops = kPatience;
    for (std::uint64_t cycle = 0;; ++cycle) {
      waits = waits || random_() % 100 >= timing_.stall_percent;
      model_.instruction_valid_i = next < program.size() && waits;
      if (next < program.size()) std::memcpy(&model_.instruction_i, program[next].words.data(), 32);
      for (AxiReads& port : reads_) port.drive(cycle, random_);
      writes_.drive(cycle, random_);
      settle();
      for (AxiReads& port : reads_) port.sample(cycle, random_);
      writes_.sample(cycle, random_);
      recorder.started(cycle, model_.trace_start_o);
      recorder.ended(cycle + 1, model_.trace_end_o);
      if (model_.instruction_valid_i != 0 && model_.instruction_ready_o != 0) {
        ++next;
        waits = false;
      }
      tick();
      const auto status = static_cast<Status>(model_.status_o);
      if (status == Status::Running) stops = cycle + kPatience;
      if (cycle == stops) throw HardwareFault("[axi] the ports stay busy after the program");
      if (model_.busy_o != 0 && cycle < options.max_cycles) continue;
      if (status != Status::Halted) throw_stopped(status, cycle, program, next, recorder);
      check_idle();
      silence();
      return {read_counters(), {}, {}, {}};
    }
  }

  std::vector<std::uint16_t> read_buffer() override {
    const auto& r = *model_.rootp;
    return rows_of<std::uint16_t>(
        r.mmu_axi__DOT__u_mmu__DOT__u_datapath__DOT__gen_fast_buffer__DOT__u_buffer__DOT__memory_q);
  }
  std::vector<std::uint32_t> read_accumulators() override {
    const auto& r = *model_.rootp;
    // clang-format off
    const auto& sums =
    r.mmu_axi__DOT__u_mmu__DOT__u_datapath__DOT__gen_fast_sums__DOT__u_accumulators__DOT__memory_q;
    // clang-format on
    return rows_of<std::uint32_t>(sums);
  }

 private:
  static constexpr std::uint64_t kPatience = 10'000;  ///< cycles, more than the memory needs

  using Bench = VerilatedBench<Model>;
  using Bench::config_, Bench::memory_, Bench::model_, Bench::settle, Bench::tick;

  template <class Port>
  static std::byte& bytes_of(Port& port) {
    return *Bench::bytes_of(port);
  }
  template <class Value, class Bank, std::size_t width>
  static std::vector<Value> rows_of(const VlUnpacked<Bank, width>& banks) {
    std::vector<Value> values;
    for (std::size_t row = 0; row < sizeof(Bank) / sizeof(banks[0][0]); ++row)
      for (std::size_t bank = 0; bank < width; ++bank) values.push_back(banks[bank][row]);
    return values;
  }

  void silence() {
    for (AxiReads& port : reads_) port.silence();
    writes_.silence();
  }
  void begin() {
    silence();
    this->start();
  }
  void check_idle() const {
    const bool idle = writes_.idle() &&
                      std::ranges::all_of(reads_, [](const AxiReads& port) { return port.idle(); });
    if (!idle) throw HardwareFault("[axi] the machine is idle before the memory is");
  }
  Counters read_counters() {
    std::array<std::uint64_t, kCounters> values{};
    Bench::read_counters(kCounters, [&](std::size_t i) { values[i] = model_.counter_o; });
    return counters_from(values);
  }

  AxiTiming timing_;
  std::mt19937 random_;
  std::array<AxiReads, 3> reads_{
      AxiReads{"load",
               {model_.load_arvalid_o, model_.load_arready_i, model_.load_araddr_o,
                model_.load_arlen_o, model_.load_rvalid_i, model_.load_rready_o,
                bytes_of(model_.load_rdata_i), model_.load_rresp_i},
               memory_.bytes(),
               timing_},
      AxiReads{"weights",
               {model_.weights_arvalid_o, model_.weights_arready_i, model_.weights_araddr_o,
                model_.weights_arlen_o, model_.weights_rvalid_i, model_.weights_rready_o,
                bytes_of(model_.weights_rdata_i), model_.weights_rresp_i},
               memory_.bytes(),
               timing_},
      AxiReads{"store",
               {model_.store_arvalid_o, model_.store_arready_i, model_.store_araddr_o,
                model_.store_arlen_o, model_.store_rvalid_i, model_.store_rready_o,
                bytes_of(model_.store_rdata_i), model_.store_rresp_i},
               memory_.bytes(),
               timing_}};
  AxiWrites writes_{"store",
                    {model_.store_awvalid_o, model_.store_awready_i, model_.store_awaddr_o,
                     model_.store_awlen_o, model_.store_wvalid_o, model_.store_wready_i,
                     bytes_of(model_.store_wdata_o), model_.store_wstrb_o, model_.store_wlast_o,
                     model_.store_bvalid_i, model_.store_bready_o, model_.store_bresp_i},
                    memory_.bytes(),
                    timing_};
};

}  // namespace triptych::mmu
