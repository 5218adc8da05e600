// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/graph/passes/passes.h"
#include "core/ops/formula.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

/// The parts of a Gelu, as exporters write them.
struct GeluParts {
  double divisor = 1.41421354, factor = 0.70710678, one = 1, half = 0.5;
  bool divides = true, halves_first = false, shows_product = false;
};

Graph written_out(const GeluParts& parts) {
  Graph graph;
  const Formula f(graph);
  const auto x = graph.add_input("x", {DType::F32, {3, 4}});
  const auto scaled = parts.divides ? f.div(x, parts.divisor) : f.mul(parts.factor, x);
  const auto sum = f.add(parts.one, f.apply(UnaryKind::Erf, scaled));
  const auto product = f.mul(parts.halves_first ? f.mul(x, parts.half) : x, sum);
  if (parts.shows_product) graph.mark_output("product", product);
  graph.mark_output("y", parts.halves_first ? product : f.mul(product, parts.half));
  return graph;
}

std::vector<std::string> operators(const Graph& graph) {
  verify(graph);
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.emplace_back(node.op->name());
  return names;
}

TEST(FuseGelu, makes_one_node_of_each_form) {
  for (const bool divides : {true, false}) {
    for (const bool halves_first : {true, false}) {
      const GeluParts parts = {.divides = divides, .halves_first = halves_first};
      const auto fused = fuse_gelu(written_out(parts));
      EXPECT_THAT(operators(fused), ElementsAre("Gelu"));
      expect_same_outputs(written_out(parts), fused, 1e-6);
    }
  }
}

TEST(FuseGelu, leaves_other_formulas_alone) {
  for (const auto& parts : {GeluParts{.divisor = 1.4},
                            {.factor = 0.7, .divides = false},
                            {.one = 2},
                            {.half = 0.25},
                            {.half = 0.25, .halves_first = true},
                            {.shows_product = true}}) {
    EXPECT_THAT(operators(fuse_gelu(written_out(parts))), Contains("Erf"));
  }
}

TEST(FuseGelu, is_a_pass_of_inference) {
  EXPECT_THAT(operators(optimize(written_out({}), {.inference = true})), ElementsAre("Gelu"));
  EXPECT_THAT(operators(optimize(written_out({}), {})), Contains("Erf"));
}

}  // namespace
}  // namespace triptych::testing
