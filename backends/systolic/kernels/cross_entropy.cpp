// The cross-entropy of several classes and its gradient on the vector unit. Labels are numbers in
// the lanes, which the program compares with each class.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_softmax.h"
#include "backends/systolic/lowering/vector_tree.h"
#include "core/base/reduction.h"
#include "core/ops/losses.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

/// Labels and classes that float32 numbers exactly.
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 24;

Verdict accepts_classes(const KernelQuery& query) {
  const Shape& x = query.inputs[0].spec.shape;
  const std::int64_t labels = query.inputs[1].spec.shape.elements();
  if (x.elements() == 0) return Verdict::no("the vector unit reduces no empty tensors");
  if (std::max(labels, x[1]) > kMostNumbers)
    return Verdict::no("the vector unit counts at most 2^24 labels and classes");
  return accepts_converted(query);
}

/// The lines of classes, and the rules of the labels.
class LabelledLines : public VectorLines {
 public:
  template <class LossOp>
  LabelledLines(const LossOp& op, const Shape& x, const mmu::MachineConfig& machine)
      : VectorLines(AxisLines::along(x, 1), machine),
        ignored_(op.ignore_index),
        mean_(op.reduction == "mean"),
        each_(op.reduction == "none") {}

  bool mean() const { return mean_; }
  bool each() const { return each_; }  ///< every label has a loss of its own

  void load_labels(VectorProgram& program, const LineTile& tile, std::uint64_t labels,
                   VectorBlock to) const {
    program.load(tile.line_address(labels), tile.lines, program.lanes(), to);
  }
  /// result: all bits 1 where a label counts.
  void find_counted(VectorProgram& program, VectorBlock labels, VectorBlock result) const {
    const VectorBlock scratch = program.allocate();
    program.apply(VectorOperation::Greater, result, labels, -1.0F);
    program.apply(VectorOperation::Greater, scratch, labels, static_cast<float>(elements() - 1));
    reject(program, result, scratch);
    if (is_class(ignored_)) {
      program.apply(VectorOperation::Equal, scratch, labels, static_cast<float>(ignored_));
      reject(program, result, scratch);
    }
    program.release(scratch);
  }
  /// Calls body(mask) where labels may be `number`, with all bits 1 where they are.
  template <class Body>
  void with_label(VectorProgram& program, VectorBlock labels, std::int64_t number,
                  const Body& body) const {
    if (number == ignored_) return;
    const VectorBlock mask = program.allocate();
    program.apply(VectorOperation::Equal, mask, labels, static_cast<float>(number));
    body(mask);
    program.release(mask);
  }
  /// term = 1 where a label counts, else 0.
  void count(VectorProgram& program, VectorBlock labels, VectorBlock term) const {
    find_counted(program, labels, term);
    program.apply(VectorOperation::And, term, term, 1.0F);
  }
  std::vector<TreeBlock> label_blocks() const {
    std::vector<TreeBlock> blocks;
    append_blocks(0, lines(), blocks);
    return blocks;
  }

 private:
  bool is_class(std::int64_t number) const { return number >= 0 && number < elements(); }
  static void reject(VectorProgram& program, VectorBlock mask, VectorBlock where) {
    program.apply(VectorOperation::Xor, where, where, VectorOperand::bits(~0U));
    program.apply(VectorOperation::And, mask, mask, where);
  }

  std::int64_t ignored_;
  bool mean_, each_;
};

/// Lane 0 of row `y`: the row's number over the number of labels that count, at least 1.
void divide_by_count(VectorProgram& program, VectorBlock row, VectorBlock count, VectorBlock y) {
  const std::uint32_t rows = program.block_rows();
  program.resize_blocks(1);
  program.apply(VectorOperation::Larger, count, count, 1.0F);
  const VectorDivisor divisor = program.prepare(count);
  program.divide(row, divisor, y);
  program.release(divisor);
  program.resize_blocks(rows);
}

VectorTask labelled_task(const LabelledLines& lines, std::uint32_t blocks,
                         const mmu::MachineConfig& machine) {
  return {.blocks = std::max(blocks, 2 + softmax_blocks(lines.elements())),
          .single_rows = 80,
          .least_rows = VectorTree::least_rows(machine.columns),
          .rows = vector_rows_of(lines.lines(), machine) * kReductionLanes,
          .converts = true};
}

struct CrossEntropyPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_classes(query); }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const LabelledLines lines(query.as<SoftmaxCrossEntropyLoss>(), query.inputs[0].spec.shape,
                              machine);
    VectorTask task = labelled_task(lines, 8, machine);
    const std::int64_t losses_bytes = lines.each() ? 0 : 4 * lines.lines();
    task.scratch_bytes = lines.scratch_bytes() + losses_bytes + 4 * machine.columns;
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const std::uint64_t x = lines.gather(program, at.inputs[0], at.scratch);
      const auto own = at.scratch + static_cast<std::uint64_t>(lines.scratch_bytes());
      const std::uint64_t losses = lines.each() ? at.outputs[0] : own;
      write_losses(program, at, lines, x, losses);
      if (lines.each()) return;
      reduce(program, at, lines, losses, own + static_cast<std::uint64_t>(losses_bytes));
    };
    return task;
  }

 private:
  /// (largest - x of the label) + log(sum), 0 where the label does not count.
  static void write_losses(VectorProgram& program, const VectorAddresses& at,
                           const LabelledLines& lines, std::uint64_t x, std::uint64_t losses) {
    const VectorBlock labels = program.allocate(), loss = program.allocate();
    const VectorBlock largest = program.allocate(), sum = program.allocate();
    lines.for_each_tile(program, [&](const LineTile& tile) {
      lines.load_labels(program, tile, at.inputs[1], labels);
      program.apply(VectorOperation::Fill, loss, {}, 0.0F);
      find_largest(program, lines, tile, x, largest);
      ExponentialVisitor visitor;
      visitor.loaded = [&](std::int64_t element, VectorBlock value) {
        lines.with_label(program, labels, element, [&](VectorBlock mask) {
          program.apply(VectorOperation::Select, loss, value, loss, mask);
        });
      };
      sum_exponentials(program, lines, tile, x, largest, sum, visitor);
      program.apply(VectorOperation::Subtract, loss, largest, loss);
      program.log(sum, largest);
      program.apply(VectorOperation::Add, loss, loss, largest);
      lines.find_counted(program, labels, sum);
      program.apply(VectorOperation::Select, loss, loss, 0.0F, sum);
      program.store(loss, tile.lines, program.lanes(), tile.line_address(losses));
    });
    for (const VectorBlock block : {labels, loss, largest, sum}) program.release(block);
  }

  static void reduce(VectorProgram& program, const VectorAddresses& at, const LabelledLines& lines,
                     std::uint64_t losses, std::uint64_t scratch) {
    const std::array totals{program.allocate(1), program.allocate(1)};
    {
      VectorTree tree(program, {losses, at.inputs[1]}, 2, scratch);
      tree.sum(
          lines.label_blocks(),
          [&](std::span<const VectorBlock> operands, std::span<const VectorBlock> terms) {
            program.apply(VectorOperation::Move, terms[0], operands[0]);
            lines.count(program, operands[1], terms[1]);
          },
          totals);
    }
    const VectorBlock mean = program.allocate(1);
    if (lines.mean()) divide_by_count(program, totals[0], totals[1], mean);
    program.store(lines.mean() ? mean : totals[0], 1, 1, at.outputs[0]);
  }
};

/// dx = scale (share of the sum - one where the class is the label). scale = dloss / count, 0 where
/// the label does not count.
struct CrossEntropyGradientPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_classes(query); }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const LabelledLines lines(query.as<SoftmaxCrossEntropyLossGradient>(),
                              query.inputs[0].spec.shape, machine);
    VectorTask task = labelled_task(lines, 12, machine);
    task.scratch_bytes = lines.scratch_bytes() + 4 * machine.columns;
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const std::uint64_t x = lines.gather(program, at.inputs[0], at.scratch);
      const std::uint64_t dx = lines.target(at.outputs[0], at.scratch);
      const VectorBlock scale = lines.each() ? VectorBlock{} : find_scale(program, at, lines);
      const VectorBlock labels = program.allocate(), scales = program.allocate();
      lines.for_each_tile(program, [&](const LineTile& tile) {
        lines.load_labels(program, tile, at.inputs[1], labels);
        find_scales(program, at, lines, tile, labels, scale, scales);
        write_tile(program, lines, tile, x, dx, labels, scales);
      });
      lines.scatter(program, at.scratch, at.outputs[0]);
    };
    return task;
  }

 private:
  /// A row with dloss / count in every lane.
  static VectorBlock find_scale(VectorProgram& program, const VectorAddresses& at,
                                const LabelledLines& lines) {
    const VectorBlock scale = program.allocate(1), dloss = program.allocate(1);
    const VectorBlock count = program.allocate(1);
    if (lines.mean()) {
      const auto own = at.scratch + static_cast<std::uint64_t>(lines.scratch_bytes());
      VectorTree tree(program, {at.inputs[1]}, 1, own);
      tree.sum(lines.label_blocks(),
               [&](std::span<const VectorBlock> operands, std::span<const VectorBlock> terms) {
                 lines.count(program, operands[0], terms[0]);
               },
               {&count, 1});
    }
    program.use_rows(1);
    program.load(at.inputs[2], 1, 1, dloss);
    program.apply(VectorOperation::Multiply, scale, dloss, 1.0F);
    if (lines.mean()) divide_by_count(program, dloss, count, scale);
    program.use_rows(1);
    program.broadcast(scale, scale);
    return scale.repeat();
  }

  static void find_scales(VectorProgram& program, const VectorAddresses& at,
                          const LabelledLines& lines, const LineTile& tile, VectorBlock labels,
                          VectorBlock scale, VectorBlock scales) {
    const VectorBlock counted = program.allocate();
    lines.find_counted(program, labels, counted);
    if (lines.each()) {
      program.load(tile.line_address(at.inputs[2]), tile.lines, program.lanes(), scales);
      program.apply(VectorOperation::Multiply, scales, scales, 1.0F);
    } else {
      program.apply(VectorOperation::Move, scales, scale);
    }
    program.apply(VectorOperation::Select, scales, scales, 0.0F, counted);
    program.release(counted);
  }

  static void write_tile(VectorProgram& program, const LabelledLines& lines, const LineTile& tile,
                         std::uint64_t x, std::uint64_t dx, VectorBlock labels,
                         VectorBlock scales) {
    const VectorBlock largest = program.allocate(), sum = program.allocate();
    find_largest(program, lines, tile, x, largest);
    ExponentialVisitor visitor;
    visitor.computed = [&](std::int64_t i, VectorBlock e) {
      program.store(e, tile.lines, program.lanes(), tile.address(dx, i));
    };
    sum_exponentials(program, lines, tile, x, largest, sum, visitor);
    const VectorDivisor divisor = program.prepare(sum);
    program.release(largest);
    program.release(sum);
    write_gradients(program, lines, tile, dx, labels, scales, divisor);
    program.release(divisor);
  }

  /// dx has the exponentials and becomes the gradients.
  static void write_gradients(VectorProgram& program, const LabelledLines& lines,
                              const LineTile& tile, std::uint64_t dx, VectorBlock labels,
                              VectorBlock scales, const VectorDivisor& divisor) {
    const VectorBlock has_scale = program.allocate();
    const VectorBlock value = program.allocate(), share = program.allocate();
    program.apply(VectorOperation::Equal, has_scale, scales, 0.0F);
    program.apply(VectorOperation::Xor, has_scale, has_scale, VectorOperand::bits(~0U));
    for (std::int64_t i = 0; i < lines.elements(); ++i) {
      program.load(tile.address(dx, i), tile.lines, program.lanes(), value);
      program.divide(value, divisor, share);
      program.apply(VectorOperation::Multiply, value, scales, share);
      program.apply(VectorOperation::And, value, value, has_scale);
      lines.with_label(program, labels, i, [&](VectorBlock mask) {
        program.apply(VectorOperation::Subtract, share, share, 1.0F);
        program.apply(VectorOperation::Multiply, share, scales, share);
        program.apply(VectorOperation::Select, value, share, value, mask);
      });
      program.store(value, tile.lines, program.lanes(), tile.address(dx, i));
    }
    for (const VectorBlock block : {has_scale, value, share}) program.release(block);
  }
};

}  // namespace

void add_cross_entropy_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<CrossEntropyPlanner>(SoftmaxCrossEntropyLoss::kName));
  lists.vector.push_back(
      vector_entry<CrossEntropyGradientPlanner>(SoftmaxCrossEntropyLossGradient::kName));
}

}  // namespace triptych::systolic
