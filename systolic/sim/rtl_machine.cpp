// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/rtl_machine.h"

#include <fmt/core.h>

#include <cstring>
#include <stdexcept>

#include "systolic/dram/dram.h"
#include "systolic/dram/memory.h"
#include "systolic/isa/check.h"
#include "systolic/sim/harness.h"
#include "systolic/sim/save_file.h"
#include "systolic/sim/wave_files.h"

namespace triptych::mmu {
namespace {

/// Picoseconds of the waves: a viewer's nanosecond is a cycle.
constexpr std::uint64_t kWaveCycle = 1000;

/// The harness around one model of mmu_top: clock, program, DRAM, waves.
class RtlMachine : public Machine {
 public:
  RtlMachine(std::unique_ptr<RtlModel> model, const MachineConfig& config)
      : config_(config), memory_(config.dram_bytes), dram_(config.dram), model_(std::move(model)) {
    std::vector<const char*> plusargs;
    for (const std::string& argument : config.plusargs) plusargs.push_back(argument.c_str());
    model_->plusargs(plusargs);
    model_->weight_scheme_i = static_cast<std::uint8_t>(config.weight_scheme);
    model_->rst_ni = 0;
    model_->load_ready_i = model_->weights_ready_i = 0;
    model_->store_ready_i = model_->operand_ready_i = 0;
    tick();
    model_->rst_ni = 1;
  }

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }

  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config_);
    TimesRecorder recorder(program);
    std::unique_ptr<RtlWaves> waves;
    begin();
    std::vector<CellState> cells;
    std::size_t next = 0;
    for (std::uint64_t cycle = 0;; ++cycle) {
      if (!options.waves.empty()) step_waves(waves, options, cycle);
      present(program, next, cycle);
      settle(waves.get(), cycle);
      const bool accepted = model_->instruction_valid_i != 0 && model_->instruction_ready_o != 0;
      recorder.started(cycle, model_->trace_start_o);
      recorder.ended(cycle + 1, model_->trace_end_o);
      tick(waves.get(), cycle);
      if (cycle >= options.cells_begin && cycle < options.cells_end) add_cells(cells);
      next += accepted ? 1 : 0;
      const auto status = static_cast<Status>(model_->status_o);
      if (status == Status::Running && cycle < options.max_cycles) continue;
      if (waves) close_waves(waves, options);
      if (status != Status::Halted) throw_stopped(status, cycle, program, next, recorder);
      recorder.halted(cycle);
      phase_ = Phase::After;
      halted_ = cycle;
      RunReport report{read_counters(), recorder.take(), {}, std::move(cells)};
      if (!options.record_times) report.times.clear();
      return report;
    }
  }

  std::vector<std::uint16_t> read_buffer() override {
    std::vector<std::uint16_t> values(std::size_t{config_.rows} * config_.buffer_rows);
    model_->read_buffer(values.data());
    return values;
  }
  std::vector<std::uint32_t> read_accumulators() override {
    std::vector<std::uint32_t> values(std::size_t{config_.columns} * config_.accumulator_rows);
    model_->read_accumulators(values.data());
    return values;
  }

 private:
  void eval(std::uint64_t cycle) {
    try {
      model_->eval();
    } catch (const std::runtime_error& stopped) {
      std::string when = fmt::format("cycle {}", cycle);
      if (phase_ == Phase::Before) when = "before cycle 0";
      if (phase_ == Phase::After) when = fmt::format("after the halt of cycle {}", halted_);
      throw HardwareFault(fmt::format(
          "[mmu] {}: {}; the RTL breaks a rule of its own: waveforms up to this cycle show how "
          "(triptych mmu run or trace, the options simulate and waves)",
          when, stopped.what()));
    }
  }
  void tick(RtlWaves* waves = nullptr, std::uint64_t cycle = 0) {
    model_->clk_i = 1;
    eval(cycle);
    if (waves != nullptr) waves->dump(kWaveCycle * cycle + kWaveCycle / 2);
  }
  void settle(RtlWaves* waves = nullptr, std::uint64_t cycle = 0) {
    model_->clk_i = 0;
    eval(cycle);
    if (waves != nullptr) waves->dump(kWaveCycle * cycle);
  }

  /// The cycle before cycle 0.
  void begin() {
    phase_ = Phase::Before;
    dram_.reset();
    for (Answers& answers : answers_) answers.clear();
    model_->instruction_valid_i = 0;
    model_->load_valid_i = model_->weights_valid_i = model_->operand_valid_i = 0;
    model_->start_i = 1;
    settle();
    tick();
    model_->start_i = 0;
    presented_ = ~std::size_t{0};
    phase_ = Phase::Runs;
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
    model_->operand_valid_i =
        answer(Unit::Store, cycle, model_->operand_data_i, config_.columns * 4);
  }

  /// Ports of any width are stored as little-endian bytes. Contents beyond the request are made
  /// meaningless, so that no earlier answer shows through.
  bool answer(Unit unit, std::uint64_t cycle, std::byte& port, std::uint32_t width) {
    const Answers::Answer* answer = answers_[static_cast<std::size_t>(unit)].take(cycle);
    if (answer == nullptr) return false;
    std::memcpy(&port, memory_.bytes().data() + answer->address, answer->bytes);
    std::memset(&port + answer->bytes, 0xA5, width - answer->bytes);
    return true;
  }

  /// Requests of the units are in their registers since the last edge: the DRAM, like a memory
  /// controller, looks at all of them and then says which of them it takes.
  void serve_requests(std::uint64_t cycle) {
    const std::uint32_t element = config_.element_bytes();
    model_->weights_ready_i =
        model_->weights_request_o != 0 &&
        serve({cycle, Unit::Weights, model_->weights_address_o, model_->weights_bytes_o},
              config_.columns * element, nullptr);
    model_->store_ready_i =
        model_->store_request_o != 0 &&
        serve({cycle, Unit::Store, model_->store_address_o, model_->store_bytes_o},
              config_.columns * 4, &model_->store_data_o);
    model_->operand_ready_i =
        model_->operand_request_o != 0 &&
        serve({cycle, Unit::Store, model_->operand_address_o, model_->operand_bytes_o},
              config_.columns * 4, nullptr);
    model_->load_ready_i = model_->load_request_o != 0 &&
                           serve({cycle, Unit::Load, model_->load_address_o, model_->load_bytes_o},
                                 config_.rows * element, nullptr);
  }

  struct Request {
    std::uint64_t cycle = 0;
    Unit unit = Unit::Load;
    std::uint32_t address = 0, bytes = 0;
  };
  /// A request of a cycle at a port of so many bytes: a write of data, or a read. False if the DRAM
  /// does not take it.
  bool serve(const Request& request, std::uint32_t width, const void* data) {
    const auto& [cycle, unit, address, bytes] = request;
    if (!dram_.ready(cycle)) return false;
    check_request(request, width);
    Answers& answers = answers_[static_cast<std::size_t>(unit)];
    if (data == nullptr && !answers.has_room())
      reject(request, "while 128 reads of it are on their way, the most that the DRAM allows");
    const std::uint64_t arrival = dram_.request(cycle, unit, address, bytes, data != nullptr);
    if (data != nullptr)
      std::memcpy(memory_.bytes().data() + address, data, bytes);
    else
      answers.push({arrival, address, bytes});
    return true;
  }
  void check_request(const Request& request, std::uint32_t width) const {
    if (request.bytes == 0 || request.bytes > width)
      reject(request, fmt::format("at a port of {} bytes", width));
    if (request.address + std::uint64_t{request.bytes} > config_.dram_bytes)
      reject(request, fmt::format("of a DRAM of {} bytes", config_.dram_bytes));
  }
  [[noreturn]] static void reject(const Request& request, std::string_view problem) {
    throw HardwareFault(fmt::format(
        "[mmu] cycle {}: the unit {} asks for {} bytes from address {} on, "
        "{}",
        request.cycle, to_string(request.unit), request.bytes, request.address, problem));
  }

  void step_waves(std::unique_ptr<RtlWaves>& waves, const RunOptions& options,
                  std::uint64_t cycle) {
    if (cycle == options.waves_begin) {
      waves = model_->open_waves(fst_of(options.waves).c_str());
      if (!waves) throw std::runtime_error("[mmu] cannot write waves to '" + options.waves + "'");
    }
    if (waves && cycle == options.waves_end) close_waves(waves, options);
  }
  void close_waves(std::unique_ptr<RtlWaves>& waves, const RunOptions& options) {
    waves.reset();
    const auto& name = options.waves_name;
    write_save_file(*model_, fst_of(options.waves).string(),
                    name.empty() ? name : fst_of(name).string(), config_.pe);
    write_vcd(options.waves);
  }

  void add_cells(std::vector<CellState>& cells) const {
    std::vector<RtlCell> now(std::size_t{config_.rows} * config_.columns);
    if (!model_->read_cells(now.data())) return;
    const auto bits = 8 * config_.element_bytes();
    for (const RtlCell& cell : now)
      cells.push_back({.activation = cell.activation,
                       .weight = static_cast<std::uint16_t>(cell.weight & ((1U << bits) - 1)),
                       .enabled = (cell.weight >> bits & 1) != 0,
                       .sum = cell.sum,
                       .waiting = cell.waiting,
                       .passing = cell.passing});
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
  std::unique_ptr<RtlModel> model_;
  std::array<Answers, kUnits> answers_;
  std::size_t presented_ = 0;
  enum class Phase { Before, Runs, After };
  Phase phase_ = Phase::Before;  ///< of a program. Without one, the reset is before it, too
  std::uint64_t halted_ = 0;     ///< the cycle, after a program
};

}  // namespace

std::unique_ptr<Machine> make_rtl_machine(std::unique_ptr<RtlModel> model,
                                          const MachineConfig& config) {
  return std::make_unique<RtlMachine>(std::move(model), config);
}

}  // namespace triptych::mmu
