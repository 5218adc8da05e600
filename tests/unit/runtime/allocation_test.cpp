// In an executable of its own, as it counts every call of operator new.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ops/unary.h"
#include "core/runtime/executor.h"
#include "tests/count_allocations.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using namespace testing_device;

/// Negates, without allocating.
class Negate : public Kernel {
 public:
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }
  Negate(const KernelQuery& query, Device&) : elements_(query.inputs[0].spec.shape.elements()) {}
  void run(const KernelArgs& args) override {
    for (std::int64_t i = 0; i < elements_; ++i) args.out<float>(0)[i] = -args.in<float>(0)[i];
  }

 private:
  std::int64_t elements_;
};

TEST(Allocation, a_run_does_not_allocate_even_when_values_cross) {
  ReferenceDevice toy("toy", {kernel_entry<Negate>("Neg", "negate")});
  ReferenceDevice cpu("cpu", {kernel_entry<Negate>("Abs", "negate")});
  Graph graph;
  auto y = graph.add_input("x", {DType::F32, {64}});
  for (int i = 0; i < 6; ++i) {
    y = graph.emit_one(make_op(Unary(i % 3 == 2 ? UnaryKind::Abs : UnaryKind::Neg)), {y});
  }
  graph.mark_output("y", y);
  StateStore states(toy);
  Executor executor(make_plan(std::move(graph), {&toy, &cpu}), states);
  executor.set_input("x", filled({64}, 3));
  executor.run();  // the test device notes each segment when it first sees it
  const int before = allocations;
  executor.run();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(executor.output("y").as<float>()[63], 3);
}

}  // namespace
}  // namespace triptych
