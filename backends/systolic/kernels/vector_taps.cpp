// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/vector_taps.h"

#include "backends/systolic/lowering/vector_copy.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

/// Terms of all outputs, beyond which a program would be too long.
constexpr double kMostTerms = 1 << 20;

/// Output i is input i.
bool keeps(const AxisTaps& taps, std::int64_t size) {
  if (taps.size() != size || std::ssize(taps.index) != size) return false;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (taps.begin[at] != i || taps.index[at] != i || taps.weight[at] != 1) return false;
  }
  return true;
}

std::vector<std::int64_t> axes_where(const std::vector<AxisTaps>& taps, const Shape& x, bool kept) {
  std::vector<std::int64_t> axes;
  for (std::int64_t a = 0; a < x.rank(); ++a)
    if (keeps(taps[static_cast<std::size_t>(a)], x[a]) == kept) axes.push_back(a);
  return axes;
}

class TapProgram {
 public:
  TapProgram(const std::vector<AxisTaps>& taps, const Shape& x, const Shape& y, bool copies)
      : copies_(copies), values_(1) {
    std::vector<std::int64_t> order = axes_where(taps, x, false);
    for (const std::int64_t axis : order) {
      moved_.push_back({taps[static_cast<std::size_t>(axis)], x[axis]});
      outputs_ *= y[axis];
    }
    for (const std::int64_t axis : axes_where(taps, x, true)) {
      order.push_back(axis);
      values_ *= x[axis];
    }
    x_ = transposed_view(dense_view(x), order);
    y_ = transposed_view(dense_view(y), order);
  }

  std::int64_t values() const { return values_; }
  std::int64_t scratch_bytes() const { return 4 * (x_.shape.elements() + y_.shape.elements()); }

  void emit(VectorProgram& program, const VectorAddresses& at) const {
    const auto results = at.scratch + static_cast<std::uint64_t>(4 * x_.shape.elements());
    copy_view(program, x_, at.inputs[0], dense_view(x_.shape), at.scratch);
    const VectorBlock sum = program.allocate(), term = program.allocate();
    for (std::int64_t position = 0; position < outputs_; ++position)
      for_each_tile(program, values_, [&](std::int64_t first, std::int64_t count) {
        const auto run = [&](std::uint64_t tensor, std::int64_t number) {
          return tensor + static_cast<std::uint64_t>(4 * (number * values_ + first));
        };
        if (!copies_) program.apply(VectorOperation::Fill, sum, {}, 0.0F);
        for_each_tap(position, [&](std::int64_t input, float weight) {
          program.load(run(at.scratch, input), count, program.lanes(), copies_ ? sum : term);
          if (copies_) return;
          program.apply(VectorOperation::Multiply, term, term, weight);
          program.apply(VectorOperation::Add, sum, sum, term);
        });
        program.store(sum, count, program.lanes(), run(results, position));
      });
    for (const VectorBlock block : {sum, term}) program.release(block);
    copy_view(program, dense_view(y_.shape), results, y_, at.outputs[0]);
  }

 private:
  struct MovedAxis {
    AxisTaps taps;
    std::int64_t inputs;
  };

  /// Calls body(input position, weight) for the taps of an output position, the last axis fastest.
  template <class Body>
  void for_each_tap(std::int64_t position, const Body& body) const {
    std::vector<std::size_t> index(moved_.size());
    for (std::size_t a = moved_.size(); a-- > 0; position /= moved_[a].taps.size())
      index[a] = static_cast<std::size_t>(position % moved_[a].taps.size());
    visit(index, 0, 0, 1, body);
  }
  template <class Body>
  void visit(const std::vector<std::size_t>& index, std::size_t a, std::int64_t input, float weight,
             const Body& body) const {
    if (a == moved_.size()) return body(input, weight);
    const auto& [taps, inputs] = moved_[a];
    for (auto t = taps.begin[index[a]]; t < taps.begin[index[a] + 1]; ++t) {
      const auto tap = static_cast<std::size_t>(t);
      visit(index, a + 1, input * inputs + taps.index[tap], weight * taps.weight[tap], body);
    }
  }

  bool copies_;
  std::int64_t values_;  ///< of a position
  std::int64_t outputs_ = 1;
  std::vector<MovedAxis> moved_;
  StridedView x_, y_;  ///< with the moved axes first
};

}  // namespace

Verdict accepts_taps(const KernelQuery& query, const std::vector<AxisTaps>& taps) {
  if (query.inputs[0].spec.shape.elements() == 0 || query.outputs[0].spec.shape.elements() == 0)
    return Verdict::no("the vector unit resamples no empty tensors");
  double terms = 1;
  const Shape& x = query.inputs[0].spec.shape;
  for (const std::int64_t axis : axes_where(taps, x, false))
    terms *= static_cast<double>(taps[static_cast<std::size_t>(axis)].index.size());
  if (terms > kMostTerms)
    return Verdict::no("the vector unit adds at most 2^20 terms of such a map");
  return accepts_vectors(query);
}

VectorTask tap_task(const std::vector<AxisTaps>& taps, const Shape& x, const Shape& y, bool copies,
                    const mmu::MachineConfig& machine) {
  const TapProgram map(taps, x, y, copies);
  VectorTask task = {.blocks = 2,
                     .rows = vector_rows_of(std::max(map.values(), x.elements()), machine),
                     .scratch_bytes = map.scratch_bytes()};
  task.emit = [=](VectorProgram& program, const VectorAddresses& at) { map.emit(program, at); };
  return task;
}

}  // namespace triptych::systolic
