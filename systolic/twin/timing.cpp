// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/timing.h"

#include <fmt/core.h>

#include <bit>
#include <stdexcept>

#include "systolic/isa/vector_operations.h"
#include "systolic/twin/timing_model.h"

namespace triptych::mmu {
namespace {

bool is_vector_instruction(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  return opcode == Opcode::VectorLoad || opcode == Opcode::VectorStore ||
         opcode == Opcode::VectorOp;
}

/// Actions of the vector unit, its cycles aside.
VectorCounts actions_of(const VectorOp& op, std::uint64_t columns) {
  const VectorOperationInfo& info = vector_operation(op.operation);
  unsigned from_memory = info.reads;
  if (op.accumulators) from_memory &= ~kReadsA;
  if (op.constant) from_memory &= ~kReadsB;
  const std::uint64_t values = op.count * columns;
  VectorCounts counts;
  counts.reads = values * static_cast<unsigned>(std::popcount(from_memory));
  counts.writes = values;
  if (info.work == VectorWork::Add) counts.adds = values;
  if (info.work == VectorWork::Multiply) counts.multiplies = values;
  if (info.work == VectorWork::Fma) counts.fmas = values;
  if (info.work == VectorWork::Other) counts.others = values;
  return counts;
}

}  // namespace

Timing::Timing(const Program& program, const MachineConfig& machine, Dram& dram, bool record_times)
    : program_(program),
      machine_(machine),
      dram_(dram),
      record_times_(record_times),
      chain_(machine.chain_cycles()),
      tiles_(machine),
      queues_{Queue(machine.queue_depth), Queue(machine.queue_depth), Queue(machine.queue_depth),
              Queue(machine.queue_depth)} {
  if (record_times) report_.times.resize(program.size());
}

RunReport Timing::run() {
  do settle();
  while (grant_until_something_ends());
  return finish();
}

bool Timing::step_units() {
  dispatch();
  const bool load = pop_load();
  const bool weights = pop_weights();
  const bool loader = move_tile();
  const bool compute = pop_compute();
  const bool store = pop_store();
  return load || weights || loader || compute || store;
}

void Timing::dispatch() {
  for (; next_ < program_.size() && program_[next_].opcode() != Opcode::Halt; ++next_) {
    Queue& queue = queues_[static_cast<std::size_t>(find_opcode(program_[next_].opcode())->unit)];
    const Cycle room = queue.room(offered_);
    if (room == kUnknown) return;
    queue.accept(next_, room);
    offered_ = room + 1;
  }
}

Cycle Timing::wait_for_tokens(std::size_t unit, std::size_t index, unsigned givers) const {
  Cycle cycle = 0;
  for (std::size_t giver = 0; giver < kUnits; ++giver)
    if ((program_[index].wait() & givers) >> giver & 1)
      cycle = std::max(cycle, tokens_[giver][unit].next());
  return cycle;
}

void Timing::pop(std::size_t unit, Cycle cycle) {
  Queue& queue = queues_[unit];
  const std::size_t index = queue.head();
  for (std::size_t giver = 0; giver < kUnits; ++giver)
    if (program_[index].wait() >> giver & 1) tokens_[giver][unit].taken.push_back(cycle);
  queue.pop(cycle);
  ++report_.counters.instructions[unit];
  if (record_times_) report_.times[index].start = cycle;
}

void Timing::end(std::size_t unit, std::size_t index, Cycle cycle, unsigned takers) {
  for (std::size_t taker = 0; taker < kUnits; ++taker)
    if ((program_[index].signal() & takers) >> taker & 1)
      tokens_[unit][taker].given.push_back(cycle);
  if (record_times_) report_.times[index].end = cycle;
  if (is_vector_instruction(program_[index])) count_vector(program_[index], cycle - store_begin_);
}

bool Timing::pop_load() {
  Queue& queue = queues_[kLoad];
  if (!queue.waiting() || idle_[kLoad] == kUnknown) return false;
  const std::size_t index = queue.head();
  const Cycle tokens = wait_for_tokens(kLoad, index, 15);
  if (tokens == kUnknown) return false;
  const Cycle cycle = std::max({queue.head_seen(), idle_[kLoad], tokens});
  pop(kLoad, cycle);
  const auto load = decode<Load>(program_[index]);
  const std::uint32_t bytes = machine_.element_bytes() * machine_.group(load.log2_group);
  RequestStream& stream = requests_[kLoad];
  stream.start(index, std::uint64_t{load.units} * load.lines, bytes, load.address,
               std::max(cycle + 1, outstanding_[kLoad].room()));
  stream.per_line = stream.left_in_line = load.units;
  stream.pitch = load.pitch;
  idle_[kLoad] = kUnknown;
  report_.counters.buffer_writes += stream.remaining * machine_.rows;
  return true;
}

bool Timing::pop_weights() {
  Queue& queue = queues_[kWeights];
  if (!queue.waiting() || idle_[kWeights] == kUnknown) return false;
  const std::size_t index = queue.head();
  Cycle cycle = std::max(wait_for_tokens(kWeights, index, 15), tiles_.room());
  if (cycle == kUnknown) return false;
  cycle = std::max({cycle, queue.head_seen(), idle_[kWeights]});
  pop(kWeights, cycle);
  const auto load = decode<WeightLoad>(program_[index]);
  tiles_.load(load);
  RequestStream& stream = requests_[kWeights];
  stream.start(index, load.rows, load.columns * machine_.element_bytes(), load.address,
               std::max(cycle + 1, outstanding_[kWeights].room()));
  stream.pitch = load.pitch;
  idle_[kWeights] = kUnknown;
  return true;
}

bool Timing::move_tile() {
  if (!tiles_.move()) return false;
  report_.counters.weight_reads += std::uint64_t{machine_.rows} * machine_.columns;
  return true;
}

/// Cycles up to `until`, but before `limit`, that no slot took.
void Timing::stall(Stall reason, Cycle until, Cycle limit) {
  until = std::min(until, limit);
  if (until <= slots_over_) return;
  report_.counters.stall_cycles[static_cast<std::size_t>(reason)] += until - slots_over_;
  if (record_times_) report_.stalls.push_back({reason, slots_over_, until});
  slots_over_ = until;
}

Cycle Timing::hazard(const Matmul& matmul) const {
  Cycle cycle = 0;
  for (std::size_t i = 0; i < std::min(matmul_count_, kInFlight); ++i) {
    const MatmulTimes& other = matmuls_[i];
    const bool overlap = matmul.accumulator < other.accumulator + other.count &&
                         other.accumulator < matmul.accumulator + matmul.count;
    if (!overlap) continue;
    // Where this chain starts depends on the other's result of the same row.
    const Cycle ready = other.start + other.drain_slots + chain_ + 2 + matmul.accumulator;
    cycle = std::max(cycle, ready - std::min<Cycle>(ready, other.accumulator));
  }
  return cycle;
}

bool Timing::pop_compute() {
  Queue& queue = queues_[kCompute];
  if (!queue.waiting()) return false;
  const std::size_t index = queue.head();
  const Cycle tokens = wait_for_tokens(kCompute, index, 15);
  if (tokens == kUnknown) return false;
  if (program_[index].opcode() == Opcode::Matmul)
    return pop_matmul(index, std::max(queue.head_seen(), idle_[kCompute]), tokens);
  const Cycle cycle = std::max({queue.head_seen(), idle_[kCompute], tokens, last_left_});
  pop(kCompute, cycle);
  end(kCompute, index, cycle + 1);
  idle_[kCompute] = cycle + 1;
  stall(Stall::Drain, cycle + 1, kUnknown);
  return true;
}

/// Advances the lane of the next transposed stream.
std::uint64_t Timing::slots_of(const Matmul& matmul) {
  const std::uint64_t rows = machine_.rows;
  if (matmul.output_stationary) return rows;
  if (!matmul.transpose) return matmul.count;
  const std::uint64_t end = next_lane_ + matmul.count;
  const std::uint64_t through = (end + rows - 1) / rows * rows - next_lane_;
  next_lane_ = matmul.abut ? end % rows : 0;
  if (matmul.abut) return matmul.count;
  return std::max(rows, through);
}

bool Timing::pop_matmul(std::size_t index, Cycle seen, Cycle tokens) {
  const auto matmul = decode<Matmul>(program_[index]);
  const bool stays = matmul.output_stationary, takes = !matmul.keep;
  if (takes && !tiles_.is_known(stays)) return false;
  const WeightTiles::Next tile = takes ? tiles_.next(stays) : WeightTiles::Next{};
  Cycle chained = stays ? 0 : drained_;
  if (reads_accumulators(matmul)) chained = std::max(chained, hazard(matmul));
  MatmulTimes& slot = matmuls_[matmul_count_ % kInFlight];
  const Cycle start = std::max({seen, tokens, slots_over_, tile.ready, chained, slot.left});
  constexpr unsigned fillers = 1U << kLoad | 1U << kWeights;
  stall(Stall::Drain, seen, start);
  stall(Stall::Activations, wait_for_tokens(kCompute, index, fillers), start);
  stall(Stall::Output, wait_for_tokens(kCompute, index, 1U << kStore), start);
  stall(Stall::Weights, tile.busy, std::min(start, tile.begins));
  stall(Stall::Dram, tile.begins, start);
  stall(Stall::Weights, tile.ready, start);
  stall(Stall::Accumulator, chained, start);
  stall(Stall::InFlight, slot.left, start);

  pop(kCompute, start);
  const std::uint64_t array = chain_ + machine_.product_cycles() + machine_.columns;
  const std::uint64_t slots = slots_of(matmul);
  const std::uint32_t drain_slots = stays ? machine_.rows : 0;
  if (stays)
    count(matmul, tiles_.stream(start), slots);
  else
    count(matmul, takes ? tiles_.swap(start) : tiles_.active(), slots);
  slots_over_ = idle_[kCompute] = start + slots;
  if (stays) drained_ = slots_over_ + drain_slots;
  last_left_ = slots_over_ + drain_slots + array + 4;
  slot = {start, last_left_, matmul.accumulator, matmul.count, drain_slots};
  ++matmul_count_;
  end(kCompute, index, slots_over_ + machine_.rows, fillers);
  end(kCompute, index, start + drain_slots + matmul.count + array + 2, 1U << kStore);
  return true;
}

void Timing::count(const Matmul& matmul, const TileTimes& tile, std::uint64_t slots) {
  const bool stays = matmul.output_stationary;
  const std::uint64_t used = stays ? tile.rows : matmul.count;
  const std::uint64_t rows = stays ? matmul.count : tile.rows;  // of PEs that multiply
  Counters& counters = report_.counters;
  counters.issue_cycles += slots;
  counters.padding_cycles += slots - used;
  counters.macs += used * rows * tile.columns;
  counters.buffer_reads += used * rows;
  counters.accumulator_writes += std::uint64_t{rows_written(matmul)} * tile.columns;
  if (reads_accumulators(matmul)) counters.accumulator_reads += used * tile.columns;
  if (stays) counters.weight_reads += std::uint64_t{machine_.rows} * machine_.columns;
}

void Timing::count_vector(const Instruction& instruction, std::uint64_t cycles) {
  VectorCounts& counts = report_.counters.vector;
  const std::uint64_t columns = machine_.columns;
  counts.cycles += cycles;
  if (instruction.opcode() == Opcode::VectorLoad) {
    counts.writes += decode<VectorLoad>(instruction).count * columns;
  } else if (instruction.opcode() == Opcode::VectorStore) {
    counts.reads += decode<VectorStore>(instruction).count * columns;
  } else {
    const auto op = decode<VectorOp>(instruction);
    counts += actions_of(op, columns);
    if (op.accumulators) report_.counters.accumulator_reads += op.count * columns;
  }
}

bool Timing::pop_store() {
  Queue& queue = queues_[kStore];
  if (!queue.waiting() || idle_[kStore] == kUnknown) return false;
  const std::size_t index = queue.head();
  const Cycle tokens = wait_for_tokens(kStore, index, 15);
  if (tokens == kUnknown) return false;
  const Cycle cycle = std::max({queue.head_seen(), idle_[kStore], tokens});
  pop(kStore, cycle);
  store_begin_ = cycle;
  const Opcode opcode = program_[index].opcode();
  if (opcode == Opcode::SetOutput || opcode == Opcode::SetOperand) {
    geometry_.set(program_[index]);
    end(kStore, index, cycle + 1);
    idle_[kStore] = cycle + 1;
    return true;
  }
  to_buffer_ = false;
  cycles_per_position_ = 1;
  whole_rows_ = opcode != Opcode::Store;
  idle_[kStore] = kUnknown;
  if (opcode == Opcode::Store)
    start_store(decode<Store>(program_[index]), index, cycle);
  else if (opcode == Opcode::VectorOp)
    end(kStore, index, idle_[kStore] = cycle + cycles_of(decode<VectorOp>(program_[index])));
  else if (opcode == Opcode::VectorStore)
    start_rows(kStore, index, cycle + 2);
  else
    start_rows(kOperand, index, cycle + 1);
  return true;
}

void Timing::start_rows(std::size_t port, std::size_t index, Cycle first) {
  const DramRows rows = rows_of(program_[index]);
  requests_[port].start(index, rows.count, rows.bytes, rows.address, first);
  requests_[port].pitch = rows.pitch;
}

void Timing::start_store(const Store& store, std::size_t index, Cycle cycle) {
  cycles_per_position_ = rows_of_position(store);
  to_buffer_ = store.buffer;
  if (to_buffer_) report_.counters.buffer_writes += std::uint64_t{store.count} * machine_.rows;
  output_walk_.emplace(geometry_, store);
  requests_[kStore].start(index, store.count, position_bytes(store, machine_), store.address,
                          cycle + 1 + machine_.output_cycles() + cycles_per_position_);
  if (has_operand(store)) {
    operand_walk_.emplace(OutputWalk::operand(geometry_, store));
    requests_[kOperand].start(index, store.count, operand_bytes(store, machine_), store.operand,
                              cycle + 1);
    operand_pipe_ = {store.count, cycles_per_position_, machine_.output_cycles(), cycle};
    present_store();
  }
  report_.counters.accumulator_reads +=
      std::uint64_t{store.count} * store.columns * cycles_per_position_;
}

bool Timing::grant_until_something_ends() {
  constexpr std::array priority = kPriority;
  while (true) {
    std::array<Cycle, priority.size()> presented;
    for (std::size_t i = 0; i < priority.size(); ++i) presented[i] = requests_from(priority[i]);
    const Cycle buffer_write = next_buffer_write();
    const Cycle first = std::ranges::min(presented);
    if (std::min(first, buffer_write) == kUnknown) return false;
    Cycle cycle = first == kUnknown ? kUnknown : dram_.next_ready(std::max(first, last_grant_));
    if (buffer_write <= cycle) {
      if (write_position(buffer_write)) return true;
      continue;
    }
    std::size_t winner = 0;
    while (presented[winner] > cycle) ++winner;
    // Before this cycle nobody else asks. (A store's writes and the reads of its operand let each
    // other ask.)
    Cycle alone = operand_pipe_.is_idle() ? kUnknown : 0;
    if (to_buffer_) alone = std::min(alone, requests_[kStore].presented);
    for (std::size_t other = 0; other < priority.size(); ++other)
      if (other != winner) alone = std::min(alone, presented[other]);
    const RequestStream& stream = requests_[priority[winner]];
    do {
      if (grant(priority[winner], cycle)) return true;
      cycle = dram_.next_ready(std::max(stream.presented, last_grant_));
    } while (cycle < alone);
  }
}

/// A row that a load brings keeps the store's position from the buffer's one write port.
Cycle Timing::next_buffer_write() {
  const Cycle presented = requests_[kStore].presented;
  if (!to_buffer_ || presented == kUnknown) return kUnknown;
  return outstanding_[kLoad].first_without(std::max(presented, last_grant_));
}

bool Timing::write_position(Cycle cycle) {
  RequestStream& stream = requests_[kStore];
  --stream.remaining;
  if (!operand_pipe_.is_idle()) operand_pipe_.write_granted(cycle);
  if (stream.remaining == 0) {
    stream.presented = kUnknown;
    end_requests(kStore, cycle, cycle);
    return true;
  }
  if (whole_rows_) {
    stream.next_address();
  } else {
    output_walk_->next();
    stream.address = output_walk_->address();
  }
  stream.presented = std::max(stream.presented + cycles_per_position_, cycle + 1);
  if (!operand_pipe_.is_idle()) present_store();
  return false;
}

bool Timing::grant(std::size_t port, Cycle cycle) {
  RequestStream& stream = requests_[port];
  const std::size_t unit = port == kOperand ? kStore : port;
  const bool write = port == kStore;
  const auto answer =
      dram_.grant(cycle, static_cast<Unit>(unit), stream.address, stream.bytes, write);
  const Cycle arrival = answer.arrival;
  report_.counters.dram_bytes[unit] += stream.bytes;
  report_.counters.dram_bursts += answer.bursts;
  report_.counters.dram_row_misses += answer.row_misses;
  last_grant_ = cycle;
  if (write) return write_position(cycle);
  outstanding_[port].add(arrival);
  answered_[port] = arrival + 1;
  --stream.remaining;
  if (port == kOperand && !whole_rows_) {
    operand_walk_->next();
    stream.address = operand_walk_->address();
    operand_pipe_.read_granted(cycle, arrival);
    present_store();
    return false;
  }
  if (stream.remaining == 0) {
    stream.presented = kUnknown;
    end_requests(port, cycle, arrival);
    return true;
  }
  stream.next_address();
  stream.presented = std::max(cycle + 1, outstanding_[port].room());
  return false;
}

void Timing::present_store() {
  requests_[kStore].presented = operand_pipe_.next_write();
  requests_[kOperand].presented = operand_pipe_.next_read();
}

void Timing::end_requests(std::size_t port, Cycle granted, Cycle arrival) {
  const std::size_t index = requests_[port].instruction;
  if (port == kStore || port == kOperand) {
    idle_[kStore] = (port == kOperand ? arrival : granted) + 1;
    end(kStore, index, idle_[kStore]);
    return;
  }
  idle_[port] = granted + 1;
  if (port == kWeights) tiles_.arrive(arrival + 1);
  end(port, index, arrival + 1);
}

RunReport Timing::finish() {
  Cycle halt = offered_;
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    const Queue& queue = queues_[unit];
    if (queue.waiting() || next_ + 1 < program_.size())
      throw std::runtime_error(fmt::format(
          "[mmu] status timeout: units wait for each other; first stuck is instruction {} ({})",
          queue.waiting() ? queue.head() : next_,
          disassemble(program_[queue.waiting() ? queue.head() : next_])));
    if (queue.popped() > 0) halt = std::max(halt, queue.last_pop() + 1);
    halt = std::max({halt, idle_[unit], answered_[unit]});
    for (const TokenQueue& tokens : tokens_[unit])
      if (tokens.overflowed())
        throw std::runtime_error(fmt::format(
            "[mmu] status token: more than 255 tokens of the {} unit wait for one taker",
            to_string(static_cast<Unit>(unit))));
  }
  halt = std::max({halt, last_left_, tiles_.idle()});
  stall(Stall::Drain, halt, kUnknown);
  report_.counters.cycles = halt;
  if (record_times_) report_.times.back() = {halt, halt};
  return std::move(report_);
}

RunReport simulate_timing(const Program& program, const MachineConfig& machine, bool record_times) {
  Dram dram(machine.dram);
  return Timing(program, machine, dram, record_times).run();
}

}  // namespace triptych::mmu
