// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_all_reduce.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "systolic/isa/vector_operations.h"
#include "systolic/twin/arrays.h"

namespace triptych::measure {
namespace {

using parallel::BufferRange;
using parallel::ScheduleStep;
using Kind = ScheduleStep::Kind;

constexpr std::uint64_t kValue = sizeof(float);

/// Instructions that move or add values from one place of the DRAM to another, tile by tile.
class Mover {
 public:
  explicit Mover(const mmu::MachineConfig& machine)
      : lanes_(machine.columns), tile_rows_(machine.vector_rows / 2) {}

  /// target = source, or target + source.
  mmu::Program program(std::uint64_t target, std::uint64_t source, std::int64_t values, bool adds) {
    program_.clear();
    const std::int64_t tile = std::int64_t{tile_rows_} * lanes_;
    for (std::int64_t done = 0; done < values; done += tile) {
      const auto here = std::min(tile, values - done);
      const auto offset = static_cast<std::uint64_t>(done) * kValue;
      move<mmu::VectorLoad>(source + offset, here, 0);
      if (adds) {
        move<mmu::VectorLoad>(target + offset, here, tile_rows_);
        add(static_cast<std::uint32_t>((here + lanes_ - 1) / lanes_));
      }
      move<mmu::VectorStore>(target + offset, here, 0);
    }
    program_.push_back(mmu::encode_halt());
    return program_;
  }

 private:
  template <class Move>
  void move(std::uint64_t address, std::int64_t values, std::uint32_t row) {
    Move move;
    move.row = row;
    move.pitch = lanes_ * kValue;
    move.address = static_cast<std::uint32_t>(address);
    move.count = static_cast<std::uint32_t>(values / lanes_);
    move.columns = lanes_;
    if (move.count > 0) program_.push_back(mmu::encode(move));
    const auto rest = static_cast<std::uint32_t>(values % lanes_);
    if (rest == 0) return;
    move.row += move.count;
    move.address += move.count * move.pitch;
    move.count = 1;
    move.columns = rest;
    program_.push_back(mmu::encode(move));
  }
  /// The target's rows, behind the message's, plus those of the message.
  void add(std::uint32_t rows) {
    mmu::VectorOp op;
    op.operation = static_cast<std::uint32_t>(mmu::VectorOperation::Add);
    op.count = rows;
    op.a = tile_rows_;
    op.step = op.a_step = op.b_step = 1;
    program_.push_back(mmu::encode(op));
  }

  std::uint32_t lanes_, tile_rows_;
  mmu::Program program_;
};

/// The ranks' schedules on the arrays: in each round every rank executes its next step that moves
/// data, if the data are there.
class Rounds {
 public:
  Rounds(const mmu::MachineConfig& machine, parallel::Algorithm algorithm, int ranks,
         std::int64_t elements)
      : mover_(machine), ranks_(static_cast<std::size_t>(ranks)) {
    std::int64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      auto& own = ranks_[static_cast<std::size_t>(rank)];
      own.schedule =
          parallel::make_schedule(parallel::Collective::AllReduce, algorithm,
                                  {.world_size = ranks, .rank = rank, .elements = elements});
      own.received.resize(own.schedule.steps.size());
      most = std::max(most, own.schedule.scratch_elements);
    }
    data_bytes_ = aligned(static_cast<std::uint64_t>(elements) * kValue);
    rank_bytes_ = data_bytes_ + aligned(static_cast<std::uint64_t>(most) * kValue);
    if (rank_bytes_ * ranks_.size() > machine.dram_bytes)
      throw InvalidArgument(fmt::format(
          "{} buffers of {} bytes do not fit the DRAM of the machine {}, {} bytes; give "
          "smaller sizes, or its file more dram_bytes",
          ranks, rank_bytes_, machine.name, machine.dram_bytes));
  }

  std::uint64_t buffer(std::size_t rank) const { return rank_bytes_ * rank; }

  /// The programs of the next round, one for each rank. Empty: all are done.
  std::vector<mmu::Program> next() {
    std::vector<mmu::Program> programs(ranks_.size(), mmu::Program{mmu::encode_halt()});
    for (Rank& rank : ranks_) offer(rank);
    bool moves = false;
    std::vector<std::pair<Rank*, std::size_t>> received;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (rank.next == rank.schedule.steps.size()) continue;
      const ScheduleStep& step = rank.schedule.steps[rank.next];
      const auto source = source_of(r, step, received);
      if (!source) continue;
      const bool adds = step.kind == Kind::ReceiveAdd || step.kind == Kind::Add;
      programs[r] = mover_.program(place(r, step.place), *source, step.place.range.size(), adds);
      ++rank.next;
      moves = true;
    }
    for (const auto& [sender, send] : received) sender->received[send] = true;
    if (moves) return programs;
    for (const Rank& rank : ranks_)
      TRIPTYCH_ASSERT(rank.next == rank.schedule.steps.size());  // else all wait for ever
    return {};
  }

 private:
  struct Rank {
    parallel::Schedule schedule;
    std::size_t next = 0;        ///< step
    std::vector<bool> received;  ///< by step that sends
  };

  static std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::uint64_t place(std::size_t rank, const BufferRange& range) const {
    const std::uint64_t begin = range.memory == parallel::Memory::Data ? 0 : data_bytes_;
    return buffer(rank) + begin + static_cast<std::uint64_t>(range.range.begin) * kValue;
  }
  /// Passes sends, which leave the data where they are, and waits that are over.
  static void offer(Rank& rank) {
    const auto& steps = rank.schedule.steps;
    while (rank.next < steps.size() &&
           (steps[rank.next].kind == Kind::Send ||
            (steps[rank.next].kind == Kind::Wait &&
             rank.received[static_cast<std::size_t>(steps[rank.next].send)])))
      ++rank.next;
  }
  /// Where the data of a step are. Nothing while they are not.
  std::optional<std::uint64_t> source_of(std::size_t r, const ScheduleStep& step,
                                         std::vector<std::pair<Rank*, std::size_t>>& received) {
    if (step.kind == Kind::Copy || step.kind == Kind::Add) return place(r, step.source);
    if (step.kind == Kind::Wait) return std::nullopt;
    const auto peer = static_cast<std::size_t>(step.peer);
    Rank& sender = ranks_[peer];
    for (std::size_t i = 0; i < sender.next; ++i) {
      const ScheduleStep& send = sender.schedule.steps[i];
      if (send.kind != Kind::Send || send.peer != static_cast<int>(r) || sender.received[i])
        continue;
      received.emplace_back(&sender, i);
      return place(peer, send.place);
    }
    return std::nullopt;
  }

  Mover mover_;
  std::vector<Rank> ranks_;
  std::uint64_t data_bytes_ = 0, rank_bytes_ = 0;
};

}  // namespace

void check_arrays(const mmu::MachineConfig& machine, std::size_t ranks) {
  if (!machine.has_vector_unit())
    throw InvalidArgument(fmt::format(
        "the machine {} has no vector unit, which adds; give its file \"vector_rows\": 1024",
        machine.name));
  if (ranks > machine.arrays)
    throw InvalidArgument(
        fmt::format("{} ranks on a machine with {} array(s); give its file \"arrays\": {} (2 to 8)",
                    ranks, machine.arrays, ranks));
}

ArrayAllReduce all_reduce_on_arrays(const mmu::MachineConfig& machine,
                                    parallel::Algorithm algorithm,
                                    const std::vector<std::vector<float>>& buffers) {
  check_arrays(machine, buffers.size());
  mmu::MachineConfig used = machine;
  used.arrays = static_cast<std::uint32_t>(buffers.size());
  const auto arrays = mmu::open_twin_arrays(used);
  const std::size_t bytes = buffers[0].size() * kValue;
  Rounds rounds(used, algorithm, static_cast<int>(buffers.size()), std::ssize(buffers[0]));
  for (std::size_t r = 0; r < buffers.size(); ++r)
    std::memcpy(arrays->dram().data() + rounds.buffer(r), buffers[r].data(), bytes);
  ArrayAllReduce result;
  for (auto programs = rounds.next(); !programs.empty(); programs = rounds.next()) {
    std::uint64_t slowest = 0;
    for (const auto& report : arrays->run(programs)) {
      slowest = std::max(slowest, report.counters.cycles);
      result.waits += report.counters.arbiter_wait_cycles;
    }
    result.cycles += slowest;
    ++result.rounds;
  }
  result.sums = buffers;
  for (std::size_t r = 0; r < buffers.size(); ++r)
    std::memcpy(result.sums[r].data(), arrays->dram().data() + rounds.buffer(r), bytes);
  return result;
}

AllReduceRow simulate_all_reduce(const mmu::MachineConfig& machine, parallel::Algorithm algorithm,
                                 int ranks, std::int64_t bytes) {
  const auto elements = static_cast<std::size_t>(bytes) / kValue;
  const auto value = [](int rank, std::size_t i) {  // exact in any order
    return static_cast<float>(rank) * static_cast<float>(i % 7);
  };
  std::vector<std::vector<float>> buffers;
  for (int rank = 1; rank <= ranks; ++rank) {
    auto& own = buffers.emplace_back(elements);
    for (std::size_t i = 0; i < elements; ++i) own[i] = value(rank, i);
  }
  const auto result = all_reduce_on_arrays(machine, algorithm, buffers);
  std::vector<float> sum(elements);
  for (std::size_t i = 0; i < elements; ++i) sum[i] = value(ranks * (ranks + 1) / 2, i);
  const auto cycles = static_cast<double>(result.cycles);
  return {.transport = "arrays",
          .algorithm = std::string(to_string(algorithm)),
          .ranks = ranks,
          .bytes = bytes,
          .time = statistics_of({cycles / (machine.clock_mhz * 1e6)}),
          .kind = TimeKind::Simulated,
          .cycles = result.cycles,
          .arbiter_wait_cycles = result.waits,
          .right = std::ranges::all_of(result.sums, [&](const auto& own) { return own == sum; })};
}

}  // namespace triptych::measure
