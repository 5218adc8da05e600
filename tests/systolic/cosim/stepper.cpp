// A machine in one place, a cycle at a time: the four units share the state of one cycle, so one
// file contains them. Array, output and store have files of their own.
// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper.h"

#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "systolic/dram/dram.h"
#include "systolic/dram/memory.h"
#include "systolic/isa/check.h"
#include "tests/systolic/cosim/stepper_array.h"
#include "tests/systolic/cosim/stepper_store.h"

namespace triptych::mmu {
namespace {

constexpr std::size_t kLoad = 0, kWeights = 1, kCompute = 2, kStore = 3;
constexpr std::size_t kOperand = kUnits;  ///< the DRAM port where the store unit reads
constexpr std::uint64_t kTimeout = 65536;

struct InFlight {
  std::uint64_t start = 0, leaves = 0;
  std::uint32_t accumulator = 0, count = 0;
  std::uint32_t drain_slots = 0;  ///< before the first result
};

/// State of a unit that talks to the DRAM, with one request per grant.
struct DramUnit {
  bool busy = false;  ///< requests are still to be granted
  std::size_t instruction = 0;
  std::uint64_t request = 0, requests = 0;  ///< granted, of
  std::uint64_t presented_from = 0;
  std::uint32_t outstanding = 0;
};

/// All state of one program's run. "Shows from cycle X on" is an action scheduled for X.
class Run {
 public:
  Run(const Program& program, const MachineConfig& config, std::span<std::byte> memory,
      StepperArray& array)
      : program_(program),
        config_(config),
        memory_(memory),
        array_(array),
        dram_(config.dram),
        store_(config, array) {
    report_.times.resize(program.size());
  }

  RunReport execute() {
    while (!halted_) step();
    report_.counters.cycles = cycle_;
    report_.counters.accumulator_reads += store_.accumulator_reads;
    report_.counters.dram_bursts = dram_.bursts();
    report_.counters.dram_row_misses = dram_.row_misses();
    return report_;
  }

 private:
  const Instruction& head(std::size_t unit) const { return program_[queues_[unit].front()]; }

  void step() {
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

  void at(std::uint64_t cycle, std::function<void()> action) {
    actions_.emplace(cycle, std::move(action));
  }

  bool dispatch() const {
    if (program_[next_].opcode() == Opcode::Halt) return false;
    const auto unit = static_cast<std::size_t>(find_opcode(program_[next_].opcode())->unit);
    return queues_[unit].size() < config_.queue_depth;
  }

  bool halt() {
    if (program_[next_].opcode() != Opcode::Halt || loader_rows_ > 0 || !in_flight().empty() ||
        reading_registers_)
      return false;
    for (std::size_t unit = 0; unit < kUnits; ++unit)
      if (!queues_[unit].empty() || units_[unit].busy || units_[unit].outstanding > 0) return false;
    report_.times[next_] = {cycle_, cycle_};
    return halted_ = true;
  }

  // --- tokens -------------------------------------------------------------------------------

  bool has_tokens(std::size_t taker, unsigned givers) const {
    for (std::size_t giver = 0; giver < kUnits; ++giver)
      if ((head(taker).wait() & givers) >> giver & 1 && tokens_[giver][taker] == 0) return false;
    return true;
  }

  std::size_t pop(std::size_t unit) {
    const std::size_t index = queues_[unit].front();
    for (std::size_t giver = 0; giver < kUnits; ++giver)
      if (program_[index].wait() >> giver & 1) --tokens_[giver][unit];
    queues_[unit].pop_front();
    ++report_.counters.instructions[unit];
    report_.times[index].start = cycle_;
    moved_in_ = cycle_;
    return index;
  }

  void give(std::size_t unit, std::size_t index, std::uint64_t cycle, unsigned takers) {
    at(cycle, [this, unit, index, takers] {
      for (std::size_t taker = 0; taker < kUnits; ++taker)
        if ((program_[index].signal() & takers) >> taker & 1 && ++tokens_[unit][taker] > 255)
          throw std::runtime_error("[stepper] status token");
    });
  }

  void end(std::size_t unit, std::size_t index, std::uint64_t cycle) {
    give(unit, index, cycle, 15);
    report_.times[index].end = cycle;
  }

  // --- DRAM ---------------------------------------------------------------------------------

  void start_requests(std::size_t unit, std::size_t index, std::uint64_t requests,
                      std::uint64_t from) {
    DramUnit& state = units_[unit];
    state.busy = true;
    state.instruction = index;
    state.request = 0;
    state.requests = requests;
    state.presented_from = from;
  }

  bool presents(std::size_t unit) const {
    const DramUnit& state = units_[unit];
    if (unit == kStore && !store_.shows_position()) return false;
    if (unit == kOperand && !reading_registers_ && !store_.has_room()) return false;
    return state.busy && cycle_ >= state.presented_from && state.outstanding < 128;
  }

  void grant() {
    if (store_.writes_buffer() && presents(kStore) && !load_arrivals_.contains(cycle_))
      fill_buffer();
    for (const std::size_t unit : {kWeights, kStore, kOperand, kLoad}) {
      if (unit == kStore && store_.writes_buffer()) continue;
      if (!presents(unit) || !dram_.ready(cycle_)) continue;
      if (unit == kWeights) grant_weights();
      if (unit == kStore) grant_store();
      if (unit == kOperand) grant_operand();
      if (unit == kLoad) grant_load();
      moved_in_ = cycle_;
    }
  }

  /// Books a grant. A read's `arrived` happens at the end of the cycle in which its data arrive.
  void book(std::size_t port, std::uint32_t address, std::uint32_t bytes, bool write,
            const std::function<void()>& arrived) {
    DramUnit& state = units_[port];
    const std::size_t unit = port == kOperand ? kStore : port;
    const std::uint64_t arrival =
        dram_.request(cycle_, static_cast<Unit>(unit), address, bytes, write);
    report_.counters.dram_bytes[unit] += bytes;
    if (port == kLoad) load_arrivals_.insert(arrival);
    const bool last = leave_port(port);
    const bool ends = last && (port != kOperand || reading_registers_);
    if (ends) end(unit, state.instruction, write ? cycle_ + 1 : arrival + 1);
    if (write) return;
    at(cycle_ + 1, [&state] { ++state.outstanding; });
    at(arrival + 1, [&state, arrived] {
      --state.outstanding;
      arrived();
    });
  }

  /// Grants the request or position at the port. True if it is the instruction's last.
  bool leave_port(std::size_t port) {
    DramUnit& state = units_[port];
    state.presented_from = cycle_ + 1;
    const bool last = ++state.request == state.requests;
    if (last) at(cycle_ + 1, [&state] { state.busy = false; });
    if (last) state.presented_from = ~std::uint64_t{0};
    return last;
  }

  std::vector<std::byte> bytes_at(std::uint32_t address, std::uint32_t bytes) const {
    const auto first = memory_.begin() + address;
    return {first, first + bytes};
  }

  std::uint16_t element(const std::byte* data, std::uint32_t index) const {
    std::uint16_t value = 0;
    std::memcpy(&value, data + index * config_.element_bytes(), config_.element_bytes());
    return value;
  }

  // --- load ---------------------------------------------------------------------------------

  void pop_load() {
    if (queues_[kLoad].empty() || units_[kLoad].busy || !has_tokens(kLoad, 15)) return;
    const std::size_t index = pop(kLoad);
    load_ = decode<Load>(program_[index]);
    start_requests(kLoad, index, std::uint64_t{load_.units} * load_.lines, cycle_ + 1);
  }

  void grant_load() {
    const auto request = static_cast<std::uint32_t>(units_[kLoad].request);
    const std::uint32_t line = request / load_.units;
    const std::uint32_t unit = request % load_.units;
    const std::uint32_t group = config_.group(load_.log2_group);
    const std::uint32_t bytes = group * config_.element_bytes();
    const std::uint32_t address = load_.address + line * load_.pitch + unit * bytes;
    const std::uint32_t row = load_.buffer_row + line * load_.buffer_pitch + unit;
    const auto data = bytes_at(address, bytes);
    report_.counters.buffer_writes += config_.rows;
    book(kLoad, address, bytes, false,
         [this, row, group, data] { write_buffer_row(row, group, data); });
  }

  void write_buffer_row(std::uint32_t row, std::uint32_t group,
                        const std::vector<std::byte>& data) {
    for (std::uint32_t lane = 0; lane < config_.rows; ++lane)
      array_.buffer[std::size_t{row % config_.buffer_rows} * config_.rows + lane] =
          element(data.data(), lane % group);
  }

  // --- weights and loader -------------------------------------------------------------------

  void pop_weights() {
    if (queues_[kWeights].empty() || units_[kWeights].busy || !has_tokens(kWeights, 15) ||
        fifo_used_ == config_.weight_tiles)
      return;
    const std::size_t index = pop(kWeights);
    weight_load_ = decode<WeightLoad>(program_[index]);
    start_requests(kWeights, index, weight_load_.rows, cycle_ + 1);
    ++fifo_used_;
    arriving_ = std::make_shared<StepperTile>();
    arriving_->rows = weight_load_.rows;
    arriving_->columns = weight_load_.columns;
    arriving_->stream = weight_load_.stream;
  }

  void grant_weights() {
    const auto row = static_cast<std::uint32_t>(units_[kWeights].request);
    const std::uint32_t bytes = weight_load_.columns * config_.element_bytes();
    const std::uint32_t address = weight_load_.address + row * weight_load_.pitch;
    const auto data = bytes_at(address, bytes);
    book(kWeights, address, bytes, false, [this, data, tile = arriving_] {
      for (std::uint32_t c = 0; c < tile->columns; ++c)
        tile->weights.push_back(element(data.data(), c));
      if (tile->weights.size() == std::size_t{tile->rows} * tile->columns) fifo_.push_back(tile);
    });
  }

  void start_loader() {
    if (loader_rows_ > 0) --loader_rows_;
    if (streams_) {
      streams_ = false;
      return take_tile();
    }
    if (loader_rows_ > 0 || fifo_.empty() || !shadow_free_ || fifo_.front()->stream) return;
    shadow_free_ = false;
    shadow_ = fifo_.front();
    at(cycle_ + (config_.pe_latency == 1 ? config_.rows : 1), [this] { shadow_full_ = true; });
    take_tile();
  }

  void take_tile() {
    fifo_.pop_front();
    loader_rows_ = config_.rows;
    report_.counters.weight_reads += std::uint64_t{config_.rows} * config_.columns;
    at(cycle_ + config_.rows + config_.columns, [this] { --fifo_used_; });
    moved_in_ = cycle_;
  }

  // --- compute ------------------------------------------------------------------------------

  std::vector<InFlight> in_flight() const {
    std::vector<InFlight> shown;
    for (const InFlight& matmul : matmuls_)
      if (cycle_ < matmul.leaves) shown.push_back(matmul);
    return shown;
  }

  bool hazard(const Matmul& matmul) const {
    if (matmul.output_stationary) return false;
    if (cycle_ < drained_) return true;
    if (!matmul.accumulate) return false;
    for (const InFlight& other : in_flight()) {
      const std::int64_t b = matmul.accumulator, bj = other.accumulator;
      if (b >= bj + other.count || bj >= b + matmul.count) continue;
      const auto earliest = static_cast<std::int64_t>(other.start + other.drain_slots) + (b - bj) +
                            config_.rows * config_.pe_latency + 2;
      if (static_cast<std::int64_t>(cycle_) < earliest) return true;
    }
    return false;
  }

  /// True when the head of the queue starts now. If not, records the reason.
  bool may_compute() {
    auto& stalls = report_.counters.stall_cycles;
    const auto because = [&](Stall reason) {
      ++stalls[static_cast<std::size_t>(reason)];
      return false;
    };
    if (queues_[kCompute].empty()) return because(Stall::Drain);
    if (head(kCompute).opcode() != Opcode::Matmul) {
      because(Stall::Drain);
      return has_tokens(kCompute, 15) && in_flight().empty();
    }
    const auto matmul = decode<Matmul>(head(kCompute));
    if (!has_tokens(kCompute, 1U << kLoad | 1U << kWeights)) return because(Stall::Activations);
    if (!has_tokens(kCompute, 1U << kStore)) return because(Stall::Output);
    if (matmul.output_stationary ? !may_stream() : !matmul.keep && !shadow_full_)
      return because(loader_rows_ > 0 ? Stall::Weights : Stall::Dram);
    if (hazard(matmul)) return because(Stall::Accumulator);
    if (in_flight().size() >= 8) return because(Stall::InFlight);
    return true;
  }

  /// True when the tile is in the FIFO and the loader can begin in the next cycle.
  bool may_stream() const { return !fifo_.empty() && fifo_.front()->stream && loader_rows_ <= 1; }

  void step_compute() {
    slot_.valid = false;
    if (slots_left_ == 0 && may_compute()) {
      const std::size_t index = pop(kCompute);
      if (program_[index].opcode() == Opcode::Matmul)
        start_matmul(index);
      else
        set_registers(index);
    }
    if (slots_left_ > 0) issue_slot();
  }

  void set_registers(std::size_t index) {
    if (program_[index].opcode() == Opcode::SetStream)
      stream_ = decode<SetStream>(program_[index]);
    else
      taps_ = decode<SetTaps>(program_[index]);
    end(kCompute, index, cycle_ + 1);
  }

  void start_matmul(std::size_t index) {
    const auto matmul = decode<Matmul>(program_[index]);
    const std::uint64_t rows = config_.rows, columns = config_.columns;
    const std::uint64_t fill = rows * config_.pe_latency + (config_.pe_latency > 1 ? 1 : 0);
    const std::uint32_t drain_slots = matmul.output_stationary ? config_.rows : 0;
    slot_.tile = tile_of(matmul);
    const std::uint64_t slots = slots_of(matmul);
    slots_left_ = slots;
    slot_.matmul = matmul;
    if (drain_slots > 0) drained_ = cycle_ + slots + drain_slots;
    slot_.index = 0;
    slot_.lane = matmul.transpose ? next_lane_ : 0;
    next_lane_ = matmul.abut ? (next_lane_ + matmul.count) % config_.rows : 0;
    positions_ = std::make_shared<std::vector<StepperPosition>>();
    slot_.positions = positions_;
    give(kCompute, index, cycle_ + slots + rows, 1U << kLoad | 1U << kWeights);
    const std::uint64_t ends = cycle_ + drain_slots + matmul.count + fill + columns + 2;
    give(kCompute, index, ends, 1U << kStore);
    report_.times[index].end = ends;
    std::erase_if(matmuls_, [&](const InFlight& other) { return cycle_ >= other.leaves; });
    matmuls_.push_back({cycle_, cycle_ + slots + drain_slots + fill + columns + 4,
                        matmul.accumulator, matmul.count, drain_slots});
  }

  /// The tile that the matmul takes at its start.
  std::shared_ptr<StepperTile> tile_of(const Matmul& matmul) {
    if (matmul.output_stationary) {
      streams_ = true;
      return fifo_.front();
    }
    if (!matmul.keep) swap_weights();
    return active_;
  }

  /// Unless the next matmul abuts, all lanes are through and all R positions under way at the end.
  std::uint64_t slots_of(const Matmul& matmul) const {
    std::uint64_t slots = matmul.count;
    if (matmul.output_stationary) return config_.rows;
    if (!matmul.transpose || matmul.abut) return slots;
    while ((next_lane_ + slots) % config_.rows != 0) ++slots;
    return std::max<std::uint64_t>(slots, config_.rows);
  }

  void swap_weights() {
    active_ = shadow_;
    shadow_full_ = false;
    const std::uint64_t rows = config_.rows, chain = rows * config_.pe_latency;
    std::uint64_t until = config_.pe_latency == 3 ? rows : 1;
    if (config_.weight_scheme == WeightScheme::PerColumn) until = chain;
    if (config_.weight_scheme == WeightScheme::Drained) until = chain + config_.columns;
    at(cycle_ + until, [this] { shadow_free_ = true; });
  }

  void issue_slot() {
    const Matmul& matmul = slot_.matmul;
    if (slot_.index == 0)
      walk_ = {static_cast<std::uint32_t>(matmul.address), matmul.rows_left, matmul.columns_left,
               static_cast<std::int16_t>(matmul.y), static_cast<std::int16_t>(matmul.x)};
    slot_.valid = true;
    slot_.position = {walk_.y, walk_.x, walk_.address};
    positions_->push_back(slot_.position);
    count_slot();
    walk_.next(stream_);
    --slots_left_;
    moved_in_ = cycle_;
    at(cycle_ + 1, [this] {
      ++slot_.index;
      slot_.lane = (slot_.lane + 1) % config_.rows;
    });
  }

  void count_slot() {
    Counters& counters = report_.counters;
    ++counters.issue_cycles;
    const Matmul& matmul = slot_.matmul;
    const std::uint64_t columns = slot_.tile->columns;
    if (matmul.output_stationary && slot_.index == 0 && matmul.drain)
      counters.accumulator_writes += matmul.count * columns;
    if (slot_.index >= slot_.used()) {
      ++counters.padding_cycles;
      return;
    }
    const std::uint64_t rows = matmul.output_stationary ? matmul.count : slot_.tile->rows;
    counters.macs += rows * columns;
    counters.buffer_reads += rows;
    if (matmul.output_stationary) return;
    counters.accumulator_writes += columns;
    if (matmul.accumulate) counters.accumulator_reads += columns;
  }

  // --- store --------------------------------------------------------------------------------

  void pop_store() {
    if (queues_[kStore].empty() || units_[kStore].busy || reading_registers_ ||
        !has_tokens(kStore, 15))
      return;
    const Opcode opcode = head(kStore).opcode();
    const std::size_t index = pop(kStore);
    if (opcode == Opcode::SetOutput || opcode == Opcode::SetOperand) {
      if (opcode == Opcode::SetOutput) store_.set(decode<SetOutput>(program_[index]));
      if (opcode == Opcode::SetOperand) store_.set(decode<SetOperand>(program_[index]));
      end(kStore, index, cycle_ + 1);
    } else if (opcode == Opcode::LoadRegisters) {
      register_load_ = decode<LoadRegisters>(program_[index]);
      reading_registers_ = true;
      start_requests(kOperand, index, 1 + register_load_.more, cycle_ + 1);
    } else {
      const auto store = decode<Store>(program_[index]);
      store_.start(store);
      start_requests(kStore, index, store.count, cycle_ + 1);
      if (store_.has_operand()) start_requests(kOperand, index, store.count, cycle_ + 1);
    }
  }

  void grant_operand() {
    if (reading_registers_) {
      const auto request = static_cast<std::uint32_t>(units_[kOperand].request);
      const std::uint32_t address = register_load_.address + request * register_load_.pitch;
      const auto data = bytes_at(address, 4 * register_load_.columns);
      book(kOperand, address, 4 * register_load_.columns, false, [this, data, request] {
        const std::uint32_t file = register_load_.file + request;
        std::memcpy(store_.output.registers[file].data(), data.data(), data.size());
        reading_registers_ = request < register_load_.more;
      });
      return;
    }
    const std::uint32_t address = store_.operand_address();
    store_.operand_granted(bytes_at(address, store_.operand_bytes()));
    book(kOperand, address, store_.operand_bytes(), false, [this] { store_.operand_arrived(); });
  }

  void grant_store() {
    const std::uint32_t address = store_.position_address();
    const std::vector<std::byte> bytes = store_.write_position();
    std::ranges::copy(bytes, memory_.begin() + address);
    book(kStore, address, static_cast<std::uint32_t>(bytes.size()), true, {});
  }

  /// A position goes to the unified buffer in this cycle. The values of no column are zero.
  void fill_buffer() {
    const std::uint32_t row = store_.position_address();
    const std::uint32_t group = config_.group(store_.log2_group());
    std::vector<std::byte> bytes = store_.write_position();
    bytes.resize(std::size_t{group} * config_.element_bytes());
    report_.counters.buffer_writes += config_.rows;
    at(cycle_ + 1, [this, row, group, bytes] { write_buffer_row(row, group, bytes); });
    if (leave_port(kStore)) end(kStore, units_[kStore].instruction, cycle_ + 1);
    moved_in_ = cycle_;
  }

  const Program& program_;
  const MachineConfig& config_;
  std::span<std::byte> memory_;
  StepperArray& array_;
  Dram dram_;
  RunReport report_;
  std::uint64_t cycle_ = 0;
  std::uint64_t moved_in_ = 0;  ///< last cycle with any progress
  bool halted_ = false;
  std::multimap<std::uint64_t, std::function<void()>> actions_;

  std::size_t next_ = 0;
  std::array<std::deque<std::size_t>, kUnits> queues_;
  std::array<std::array<int, kUnits>, kUnits> tokens_{};  ///< [giver][taker]
  std::array<DramUnit, kUnits + 1> units_{};              ///< by DRAM port
  std::set<std::uint64_t> load_arrivals_;  ///< cycles with a load on the buffer's write port

  Load load_;
  WeightLoad weight_load_;
  std::uint32_t fifo_used_ = 0;
  std::deque<std::shared_ptr<StepperTile>> fifo_;
  std::shared_ptr<StepperTile> arriving_, shadow_, active_;
  std::uint32_t loader_rows_ = 0;  ///< cycles left, this one included
  bool shadow_free_ = true, shadow_full_ = false;
  bool streams_ = false;  ///< the loader takes a tile for an output-stationary matmul next

  SetStream stream_;
  SetTaps taps_;
  std::vector<InFlight> matmuls_;
  std::uint64_t slots_left_ = 0;
  std::uint64_t drained_ = 0;  ///< first cycle after the last drain slots
  Slot slot_;
  Walk walk_;
  std::shared_ptr<std::vector<StepperPosition>> positions_;  ///< of the matmul that streams
  std::uint32_t next_lane_ = 0;  ///< where the next transposed one begins

  bool reading_registers_ = false;
  LoadRegisters register_load_;
  StepperStore store_;
};

class Stepper : public Machine {
 public:
  explicit Stepper(const MachineConfig& config)
      : config_(config), memory_(config.dram_bytes), array_(config) {}

  const MachineConfig& config() const override { return config_; }
  std::span<std::byte> dram() override { return memory_.bytes(); }
  RunReport run(const Program& program, const RunOptions& options) override {
    check_program(program, config_);
    RunReport report = Run(program, config_, memory_.bytes(), array_).execute();
    if (!options.record_times) report.times.clear();
    return report;
  }
  std::vector<std::uint16_t> read_buffer() override { return array_.buffer; }
  std::vector<std::uint32_t> read_accumulators() override { return array_.accumulators; }

 private:
  MachineConfig config_;
  Memory memory_;
  StepperArray array_;
};

}  // namespace

std::unique_ptr<Machine> open_stepper(const MachineConfig& machine) {
  validate(machine);
  return std::make_unique<Stepper>(machine);
}

}  // namespace triptych::mmu
