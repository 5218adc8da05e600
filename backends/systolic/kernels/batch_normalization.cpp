// Batch normalisation on the vector unit. Groups of channels have their statistics in lane 0 of a
// row per channel, planes pass through the vector memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/batch_normalization.h"

#include <algorithm>
#include <array>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "backends/systolic/lowering/vector_tree.h"
#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

/// Tensors [N, C, ...] as planes.
struct ChannelPlanes {
  std::int64_t batch, channels, plane;
  std::uint32_t group;    ///< channels whose statistics are in the vector memory at once
  std::uint32_t at_once;  ///< channels whose values are

  ChannelPlanes(const Shape& x, const mmu::MachineConfig& machine)
      : batch(x[0]), channels(x[1]), plane(x.elements_between(2, x.rank())) {
    const auto most = std::max<std::int64_t>(1, machine.vector_rows / 64);
    group = static_cast<std::uint32_t>(std::min(channels, most));
    const std::int64_t part = machine.vector_rows / (4 * vector_rows_of(plane, machine));
    at_once = static_cast<std::uint32_t>(std::clamp<std::int64_t>(part, 1, group));
  }

  std::int64_t first(std::int64_t image, std::int64_t channel) const {
    return (image * channels + channel) * plane;
  }
  float elements() const { return static_cast<float>(batch * plane); }
  std::vector<TreeBlock> blocks(std::int64_t channel) const {
    std::vector<TreeBlock> blocks;
    for (std::int64_t n = 0; n < batch; ++n) append_blocks(first(n, channel), plane, blocks);
    return blocks;
  }
};

/// Blocks of a row per channel that the statistics take at most, those of functions included.
constexpr std::uint32_t kStatistics = 18;

/// `terms`: sums of a channel that are computed side by side.
VectorTask channel_task(const ChannelPlanes& planes, std::uint32_t blocks, std::size_t terms,
                        const mmu::MachineConfig& machine) {
  const std::int64_t most = kReductionBlock * planes.batch;
  const std::int64_t tree_blocks = planes.batch * reduction_blocks(planes.plane);
  return {.blocks = blocks,
          .single_rows = kStatistics * planes.group + 64 +
                         VectorTree::pending_rows(tree_blocks, terms, planes.at_once),
          .least_rows = VectorTree::least_rows(machine.columns),
          .rows = std::max(planes.at_once * vector_rows_of(planes.plane, machine), most),
          .scratch_bytes = 4 * machine.columns};
}

/// Planes of neighbouring channels of one image. Each has the same rows.
struct ChannelTile {
  SequenceRows channels;
  std::uint64_t offset;  ///< in bytes
  std::int64_t values;
  std::uint32_t lanes;  ///< of a row
};

/// A group of channels of one program: their rows, and the walk over their planes.
class ChannelGroup {
 public:
  ChannelGroup(VectorProgram& program, const ChannelPlanes& planes, std::int64_t first,
               std::uint32_t count)
      : program_(program), planes_(planes), first_(first), count_(count) {}

  VectorProgram& program() const { return program_; }
  std::uint32_t count() const { return count_; }

  /// Runs `body` with blocks of a row per channel.
  template <class Body>
  void with_statistics(const Body& body) const {
    const std::uint32_t rows = program_.block_rows();
    program_.resize_blocks(count_);
    body();
    program_.resize_blocks(rows);
  }
  /// Lane 0 of each row becomes the channel's value of a vector in DRAM.
  void load(std::uint64_t vector, VectorBlock rows) const {
    program_.load_rows(at(vector), 4, count_, 1, rows);
  }
  void load_everywhere(std::uint64_t vector, VectorBlock rows) const {
    load(vector, rows);
    program_.broadcast(rows, rows);
  }
  void store(VectorBlock rows, std::uint64_t vector) const {
    program_.store_rows(rows, count_, 1, at(vector), 4);
  }

  /// Sums over each channel, into a row of each of `totals`.
  void sum(VectorTree& tree, std::span<const VectorBlock> totals,
           const VectorTree::SequenceTerms& terms) const {
    tree.sum(planes_.blocks(first_), {count_, planes_.plane, planes_.at_once}, terms, totals);
  }

  /// Calls body(tile) for all planes, many channels at once where a plane fills whole rows.
  template <class Body>
  void for_each_tile(const Body& body) const {
    const std::uint32_t rows = rows_of_plane();
    if (rows == 0 || rows > program_.block_rows()) return for_each_part(body);
    const std::uint32_t most = program_.block_rows() / rows;
    for (std::int64_t n = 0; n < planes_.batch; ++n)
      for (std::uint32_t c = 0; c < count_; c += most) {
        const std::uint32_t channels = std::min(most, count_ - c);
        program_.use_rows(channels * rows);
        body(ChannelTile{{c, rows},
                         offset(n, c, 0),
                         channels * planes_.plane,
                         static_cast<std::uint32_t>(planes_.plane / rows)});
      }
  }

 private:
  /// Few rows of equal length. 0: there are none.
  std::uint32_t rows_of_plane() const {
    const std::int64_t least = (planes_.plane + program_.lanes() - 1) / program_.lanes();
    for (std::int64_t rows = least; rows <= 2 * least; ++rows)
      if (planes_.plane % rows == 0) return static_cast<std::uint32_t>(rows);
    return 0;
  }
  std::uint64_t offset(std::int64_t image, std::uint32_t channel, std::int64_t value) const {
    return static_cast<std::uint64_t>(4 * (planes_.first(image, first_ + channel) + value));
  }

  /// Parts of one plane after the other.
  template <class Body>
  void for_each_part(const Body& body) const {
    for (std::uint32_t c = 0; c < count_; ++c)
      for (std::int64_t n = 0; n < planes_.batch; ++n)
        systolic::for_each_tile(program_, planes_.plane, [&](auto first, auto count) {
          const auto rows =
              static_cast<std::uint32_t>((count + program_.lanes() - 1) / program_.lanes());
          body(ChannelTile{{c, rows}, offset(n, c, first), count, program_.lanes()});
        });
  }

  std::uint64_t at(std::uint64_t vector) const {
    return vector + static_cast<std::uint64_t>(4 * first_);
  }

  VectorProgram& program_;
  const ChannelPlanes& planes_;
  std::int64_t first_;
  std::uint32_t count_;
};

template <class Body>
void for_each_group(VectorProgram& program, const ChannelPlanes& planes, const Body& body) {
  for (std::int64_t first = 0; first < planes.channels; first += planes.group) {
    const auto count = std::min<std::int64_t>(planes.group, planes.channels - first);
    body(ChannelGroup(program, planes, first, static_cast<std::uint32_t>(count)));
  }
}

/// Rows of a group, as many vectors as are asked for.
std::vector<VectorBlock> rows_of_group(const ChannelGroup& group, std::size_t count) {
  std::vector<VectorBlock> rows;
  rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) rows.push_back(group.program().allocate(group.count()));
  return rows;
}

void release(VectorProgram& program, std::span<const VectorBlock> blocks) {
  for (const VectorBlock block : blocks) program.release(block);
}

/// y = (x - mean) factor + bias. x and y may be one block.
void normalize(VectorProgram& program, VectorBlock x, VectorBlock mean, VectorBlock factor,
               VectorBlock bias, VectorBlock y) {
  program.apply(VectorOperation::Subtract, y, x, mean);
  program.fma(y, y, factor, bias);
}

class Normalization {
 public:
  Normalization(const KernelQuery& query, const mmu::MachineConfig& machine)
      : op_(query.as<BatchNormalization>()), planes_(query.inputs[0].spec.shape, machine) {}

  const ChannelPlanes& planes() const { return planes_; }

  void emit(VectorProgram& program, const VectorAddresses& at) const {
    for_each_group(program, planes_, [&](const ChannelGroup& group) {
      const auto rows = rows_of_group(group, 4);
      op_.training_mode ? measure(group, at, rows) : read(group, at, rows);
      write(group, at, rows);
      release(program, rows);
    });
  }

 private:
  // Rows: mean, factor, bias, and one that only the statistics need.

  /// deviation = 1 / sqrt(variance + epsilon).
  void invert_deviation(VectorProgram& program, VectorBlock variance, VectorBlock deviation) const {
    const VectorBlock root = program.allocate();
    program.apply(VectorOperation::Add, deviation, variance, op_.epsilon);
    program.square_root(deviation, root);
    program.reciprocal(root, deviation);
    program.release(root);
  }

  void read(const ChannelGroup& group, const VectorAddresses& at,
            const std::vector<VectorBlock>& rows) const {
    VectorProgram& program = group.program();
    group.with_statistics([&] {
      group.load_everywhere(at.inputs[3], rows[0]);
      group.load(at.inputs[4], rows[3]);
      invert_deviation(program, rows[3], rows[1]);
      scale(group, at, rows);
    });
  }

  /// factor, which is the deviation before, and bias.
  static void scale(const ChannelGroup& group, const VectorAddresses& at,
                    const std::vector<VectorBlock>& rows) {
    VectorProgram& program = group.program();
    group.load(at.inputs[1], rows[3]);
    program.apply(VectorOperation::Multiply, rows[1], rows[3], rows[1]);
    program.broadcast(rows[1], rows[1]);
    group.load_everywhere(at.inputs[2], rows[2]);
  }

  void measure(const ChannelGroup& group, const VectorAddresses& at,
               const std::vector<VectorBlock>& rows) const {
    VectorProgram& program = group.program();
    const VectorBlock mean = rows[0], deviation = rows[1], variance = rows[2], sum = rows[3];
    VectorTree tree(program, {at.inputs[0]}, 1, at.scratch);
    group.sum(tree, {&sum, 1}, [&](auto, auto x, auto terms) {
      program.apply(VectorOperation::Move, terms[0], x[0]);
    });
    group.with_statistics([&] {
      program.divide(sum, planes_.elements(), mean);
      group.store(mean, at.outputs[3]);
      average(group, at.inputs[3], mean, at.outputs[1]);
      program.broadcast(mean, mean);
    });
    group.sum(tree, {&sum, 1}, [&](const SequenceRows& channels, auto x, auto terms) {
      program.apply(VectorOperation::Subtract, terms[0], x[0], channels.of(mean));
      program.apply(VectorOperation::Multiply, terms[0], terms[0], terms[0]);
    });
    group.with_statistics([&] {
      program.divide(sum, planes_.elements(), variance);
      average(group, at.inputs[4], variance, at.outputs[2]);
      invert_deviation(program, variance, deviation);
      group.store(deviation, at.outputs[4]);
      scale(group, at, rows);
    });
  }

  /// new = momentum old + (1 - momentum) batch.
  void average(const ChannelGroup& group, std::uint64_t old, VectorBlock batch,
               std::uint64_t next) const {
    VectorProgram& program = group.program();
    const VectorBlock before = program.allocate(), share = program.allocate();
    group.load(old, before);
    program.apply(VectorOperation::Multiply, share, batch, 1.0F - op_.momentum);
    program.fma(before, before, op_.momentum, share);
    group.store(before, next);
    program.release(share);
    program.release(before);
  }

  void write(const ChannelGroup& group, const VectorAddresses& at,
             const std::vector<VectorBlock>& rows) const {
    VectorProgram& program = group.program();
    const VectorBlock x = program.allocate(), y = program.allocate();
    const bool relu = !op_.activation.empty();
    group.for_each_tile([&](const ChannelTile& tile) {
      const auto of = [&](VectorBlock block) { return tile.channels.of(block); };
      program.load(at.inputs[0] + tile.offset, tile.values, tile.lanes, x);
      normalize(program, x, of(rows[0]), of(rows[1]), of(rows[2]), relu ? x : y);
      if (relu) program.relu(x, y);
      program.store(y, tile.values, tile.lanes, at.outputs[0] + tile.offset);
    });
    program.release(y);
    program.release(x);
  }

  BatchNormalization op_;
  ChannelPlanes planes_;
};

struct NormalizationPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[0].spec.shape.elements() == 0)
      return Verdict::no("the vector unit reduces no empty tensors");
    return accepts_vectors(query);
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Normalization normalization(query, machine);
    VectorTask task = channel_task(normalization.planes(), 5, 1, machine);
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      normalization.emit(program, at);
    };
    return task;
  }
};

/// Inputs x, dy, scale, mean, deviation and, behind a Relu, bias.
class NormalizationGradient {
 public:
  NormalizationGradient(const KernelQuery& query, const mmu::MachineConfig& machine)
      : planes_(query.inputs[0].spec.shape, machine), relu_(query.inputs.size() > 5) {}

  const ChannelPlanes& planes() const { return planes_; }

  void emit(VectorProgram& program, const VectorAddresses& at) const {
    for_each_group(program, planes_, [&](const ChannelGroup& group) {
      const auto all = rows_of_group(group, 6);
      const Rows rows{all[0], all[1], all[2], all[3], all[4], all[5]};
      read(group, at, rows);
      sum(group, at, rows);
      write(group, at, rows);
      release(program, all);
    });
  }

 private:
  /// The sums of dy and of dy xhat become their means over the channel, the second one negated.
  struct Rows {
    VectorBlock mean, deviation, factor, bias, dy, dy_xhat;
  };

  void read(const ChannelGroup& group, const VectorAddresses& at, const Rows& rows) const {
    VectorProgram& program = group.program();
    group.with_statistics([&] {
      group.load_everywhere(at.inputs[3], rows.mean);
      group.load_everywhere(at.inputs[4], rows.deviation);
      group.load_everywhere(at.inputs[2], rows.factor);
      program.apply(VectorOperation::Multiply, rows.factor, rows.factor, rows.deviation);
      if (relu_) group.load_everywhere(at.inputs[5], rows.bias);
    });
  }

  /// The gradient that arrives: dy, or +0 where the Relu's argument is not above 0.
  void arrive(VectorProgram& program, const Rows& rows, const SequenceRows& channels, VectorBlock x,
              VectorBlock dy, VectorBlock result) const {
    if (!relu_) return program.apply(VectorOperation::Move, result, dy);
    normalize(program, x, channels.of(rows.mean), channels.of(rows.factor), channels.of(rows.bias),
              result);
    program.apply(VectorOperation::Greater, result, result, 0.0F);
    program.apply(VectorOperation::Select, result, dy, 0.0F, result);
  }
  static void standardize(VectorProgram& program, const Rows& rows, const SequenceRows& channels,
                          VectorBlock x, VectorBlock result) {
    program.apply(VectorOperation::Subtract, result, x, channels.of(rows.mean));
    program.apply(VectorOperation::Multiply, result, result, channels.of(rows.deviation));
  }

  void sum(const ChannelGroup& group, const VectorAddresses& at, const Rows& rows) const {
    VectorProgram& program = group.program();
    {
      VectorTree tree(program, {at.inputs[0], at.inputs[1]}, 2, at.scratch);
      group.sum(tree, std::array{rows.dy, rows.dy_xhat},
                [&](const SequenceRows& channels, auto operands, auto terms) {
                  arrive(program, rows, channels, operands[0], operands[1], terms[0]);
                  standardize(program, rows, channels, operands[0], terms[1]);
                  program.apply(VectorOperation::Multiply, terms[1], terms[0], terms[1]);
                });
    }
    group.with_statistics([&] {
      group.store(rows.dy_xhat, at.outputs[1]);
      group.store(rows.dy, at.outputs[2]);
      for (const VectorBlock total : {rows.dy, rows.dy_xhat}) {
        const VectorBlock mean = program.allocate();
        program.divide(total, planes_.elements(), mean);
        program.broadcast(mean, total);
        program.release(mean);
      }
      program.negate(rows.dy_xhat, rows.dy_xhat);
    });
  }

  /// dx = factor (dy - mean(dy) - xhat mean(dy xhat)).
  void write(const ChannelGroup& group, const VectorAddresses& at, const Rows& rows) const {
    VectorProgram& program = group.program();
    const VectorBlock x = program.allocate(), dy = program.allocate(), dx = program.allocate();
    group.for_each_tile([&](const ChannelTile& tile) {
      const auto of = [&](VectorBlock block) { return tile.channels.of(block); };
      program.load(at.inputs[0] + tile.offset, tile.values, tile.lanes, x);
      program.load(at.inputs[1] + tile.offset, tile.values, tile.lanes, dy);
      arrive(program, rows, tile.channels, x, dy, dx);
      program.apply(VectorOperation::Subtract, dx, dx, of(rows.dy));
      standardize(program, rows, tile.channels, x, x);
      program.fma(dx, x, of(rows.dy_xhat), dx);
      program.apply(VectorOperation::Multiply, dx, dx, of(rows.factor));
      program.store(dx, tile.values, tile.lanes, at.outputs[0] + tile.offset);
    });
    release(program, std::array{x, dy, dx});
  }

  ChannelPlanes planes_;
  bool relu_;
};

struct NormalizationGradientPlanner {
  static Verdict accepts(const KernelQuery& query) { return NormalizationPlanner::accepts(query); }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const NormalizationGradient gradient(query, machine);
    VectorTask task = channel_task(gradient.planes(), 6, 2, machine);
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      gradient.emit(program, at);
    };
    return task;
  }
};

}  // namespace

void add_batch_normalization_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<NormalizationPlanner>(BatchNormalization::kName));
  lists.vector.push_back(
      vector_entry<NormalizationGradientPlanner>(BatchNormalizationGradient::kName));
}

}  // namespace triptych::systolic
