// Random small graphs agree between the CPU's kernels and the float64 reference, however they are
// planned, and their gradients agree with finite differences. TRIPTYCH_RANDOM_GRAPHS sets how many.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/autodiff/autodiff.h"
#include "core/graph/reference.h"
#include "core/ops/all_ops.h"
#include "tests/conformance/random/judge.h"
#include "tests/conformance/random_graph.h"

namespace triptych::conformance {
namespace {

constexpr std::uint64_t kDefaultCount = 1000;
constexpr double kStep = 1e-6;    ///< of finite differences
constexpr int kMostFailures = 3;  ///< then the rest is not worth the time

std::uint64_t graph_count() {
  const char* wanted = std::getenv("TRIPTYCH_RANDOM_GRAPHS");
  return wanted == nullptr ? kDefaultCount : std::strtoull(wanted, nullptr, 10);
}

constexpr Contract kContracts[] = {Contract::F32, Contract::Bf16, Contract::Bf16Exact};

/// Message of `check`, or of its exception.
std::string message_of(const Check& check, const RandomGraph& graph) {
  try {
    return check(graph);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void report(std::uint64_t seed, RandomGraph graph, const Check& check) {
  const auto small = shrink(std::move(graph), check);
  ADD_FAILURE() << "seed " << seed << ": " << check(small) << "\nshrunk to\n"
                << to_text(small.graph);
}

/// Runs the checks one after another. False when one failed, after reporting it.
bool passes(std::uint64_t seed, const RandomGraph& graph, std::span<const Check> checks) {
  for (const auto& check : checks) {
    const Check caught = [&](const RandomGraph& test) { return message_of(check, test); };
    if (caught(graph).empty()) continue;
    report(seed, {graph.graph.clone(), graph.inputs}, caught);
    return false;
  }
  return true;
}

TEST(RandomGraph, agrees_with_the_reference_however_it_is_planned) {
  Judge judge;
  int failures = 0;
  for (std::uint64_t seed = 0; seed < graph_count() && failures < kMostFailures; ++seed) {
    SCOPED_TRACE(seed);
    const auto contract = kContracts[seed % std::size(kContracts)];
    const auto graph = seed % 5 == 0 ? make_training_graph(seed) : make_random_graph(seed);
    const Check checks[] = {
        [&](const auto& test) { return judge.every_node_is_within_its_bound(test, contract); },
        [&](const auto& test) { return judge.every_plan_gives_the_same_bits(test, contract); },
        [&](const auto& test) { return judge.training_passes_change_nothing(test, contract); },
        [&](const auto& test) { return Judge::inference_passes_change_little(test); }};
    if (!passes(seed, graph, checks)) ++failures;
  }
  if (failures > 0 || graph_count() < kDefaultCount) return;
  const auto& coverage = judge.coverage();
  for (const auto& op : all_ops()) {
    if (op->collective()) continue;
    EXPECT_TRUE(coverage.ops.contains(op->name())) << op->name() << " is in no graph: add a maker";
  }
  EXPECT_GE(coverage.concats_in_place, 20);
  EXPECT_GE(coverage.overwritten, 100);
  EXPECT_GE(coverage.updates, 100);
  EXPECT_GE(coverage.folded, 20);
  EXPECT_GE(coverage.recomputed, 20);
}

TEST(RandomGraph, gives_the_same_bits_at_any_thread_count) {
  Judge judge;
  int failures = 0;
  const auto count = std::max<std::uint64_t>(graph_count() / 10, 1);
  for (std::uint64_t seed = 0; seed < count && failures < kMostFailures; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = make_random_graph(seed, {.large = true});
    const Check checks[] = {[&](const auto& test) { return judge.threads_do_not_matter(test); },
                            [&](const auto& test) {
                              return judge.every_node_is_within_its_bound(test,
                                                                          Contract::Bf16Exact);
                            }};
    if (!passes(seed, graph, checks)) ++failures;
  }
}

TEST(RandomGraph, stays_within_its_bound_where_one_was_too_narrow) {
  Judge judge;
  for (const std::uint64_t seed : {1549}) {
    const auto graph = make_random_graph(seed, {.large = true});
    EXPECT_EQ(judge.every_node_is_within_its_bound(graph, Contract::Bf16Exact), "") << seed;
  }
}

/// The loss with `leaf` moved by `step` along `direction`.
double moved_loss(const Graph& graph, std::unordered_map<ValueId, RefTensor> given, ValueId loss,
                  ValueId leaf, const std::vector<double>& direction, double step) {
  auto& values = given.at(leaf).values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
  return evaluate_reference(graph, std::move(given))[loss.index()].values[0];
}

struct Slopes {
  int compared = 0;
  int kinks = 0;
};

std::string compare_gradients(const RandomGraph& test, Slopes& slopes) {
  RandomStream random(5, 0);
  Graph forward = test.graph.clone();
  const auto loss = add_loss(forward);
  if (!loss.valid()) return {};
  const auto leaves = differentiable_leaves(forward);
  Graph graph = forward.clone();
  const auto loss_name = graph.value(loss).name;
  const auto gradients = add_gradients(graph, loss, leaves);
  verify(graph);
  auto given = test.inputs;
  for (const auto leaf : leaves) {
    if (!given.contains(leaf)) given[leaf] = to_reference(*forward.value(leaf).data);
  }
  const auto values = evaluate_reference(graph, given);
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const auto& gradient = values[gradients[k].index()].values;
    std::vector<double> direction(gradient.size());
    double expected = 0, scale = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      direction[i] = double{random.uniform(-1, 1)};
      expected += gradient[i] * direction[i];
      scale += std::fabs(gradient[i] * direction[i]);
    }
    const auto at = [&](double step) {
      return moved_loss(forward, given, loss, leaves[k], direction, step);
    };
    const double above = at(kStep), here = at(0), below = at(-kStep);
    const double tolerance = 1e-4 * scale + 1e-6 * (1 + std::fabs(here));
    ++slopes.compared;
    if (std::fabs((above - here) - (here - below)) / kStep > 2 * tolerance) {
      ++slopes.kinks;
      continue;
    }
    const double slope = (above - below) / (2 * kStep);
    if (std::fabs(slope - expected) > tolerance) {
      return fmt::format("gradient of {} along a direction is {}, finite differences give {}",
                         forward.value(leaves[k]).name, expected, slope);
    }
  }
  return {};
}

TEST(RandomGraph, has_the_gradients_of_finite_differences) {
  Slopes slopes;
  int failures = 0;
  const auto count = std::max<std::uint64_t>(graph_count() / 10, 1);
  for (std::uint64_t seed = 0; seed < count && failures < kMostFailures; ++seed) {
    SCOPED_TRACE(seed);
    const Check check = [&](const RandomGraph& test) {
      return message_of([&](const auto& graph) { return compare_gradients(graph, slopes); }, test);
    };
    auto graph = make_random_graph(seed, {.smooth = true});
    if (check(graph).empty()) continue;
    report(seed, std::move(graph), check);
    ++failures;
  }
  EXPECT_LE(slopes.kinks, slopes.compared / 10) << "too many directions cross a kink";
}

}  // namespace
}  // namespace triptych::conformance
