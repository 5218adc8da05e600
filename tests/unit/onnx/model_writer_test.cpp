// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/model_writer.h"

#include <gmock/gmock.h>

#include "core/graph/reference.h"
#include "core/onnx/export_graph.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/ops/conv.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/unary.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::onnx {
namespace {

using ::testing::HasSubstr;

Model read_again(const std::string& content) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "m.onnx", content);
  return load_model(folder / "m.onnx");
}

TEST(ModelWriter, what_is_written_is_read) {
  for (const auto& sample : {test::dense_sample(), test::image_sample()}) {
    const test::TemporaryFolder folder;
    const auto model = load_model(sample.save(folder / "m.onnx"));
    const auto content = encode_model(model, {{"author", "nobody"}});
    EXPECT_THAT(content, HasSubstr("nobody"));
    const auto again = read_again(content);
    EXPECT_EQ(encode_model(again), encode_model(model));
  }
}

/// Exporters write the bounds of a clamp so.
TEST(ModelWriter, float64_is_written_as_the_float32_that_it_is_computed_in) {
  test::Sample sample;
  sample.input("x", {2}).node("Cast", {"x"}, {"d"}).integer("to", test::kDouble);
  sample.node("Max", {"d", "low"}, {"m"}).node("Cast", {"m"}, {"y"}).integer("to", test::kFloat);
  sample.output("y").initializer("low", {}, test::kDouble).add_double_data(0.25);
  const test::TemporaryFolder folder;
  const auto again = read_again(encode_model(load_model(sample.save(folder / "m.onnx"))));
  EXPECT_FALSE(again.has_doubles);
  const auto graph = import_model(again).graph;
  const TensorSpec x{DType::F32, {2}};
  const auto values = evaluate_reference(graph, {{graph.find("x"), {x, {-1, 0.5}}}});
  EXPECT_THAT(values[graph.outputs().front().value.index()].values,
              ::testing::ElementsAre(0.25, 0.5));
}

TEST(ModelWriter, every_kind_of_attribute_comes_back) {
  Model model;
  model.opset = 13;
  model.inputs.push_back({.name = "x", .shape = {{2, ""}, {-1, "n"}}});
  model.outputs.push_back({.name = "y", .has_shape = false});
  const auto tensor = std::make_shared<const Tensor>(Shape{2}, std::vector<float>{1, 2});
  model.nodes.push_back({.name = "n",
                         .op = "Any",
                         .domain = "some.where",
                         .inputs = {"x", ""},
                         .outputs = {"", "y"},
                         .attributes = {{"i", std::int64_t{-3}},
                                        {"f", 1.5F},
                                        {"s", std::string("text")},
                                        {"t", tensor},
                                        {"is", std::vector<std::int64_t>{1, -2}},
                                        {"fs", std::vector<float>{0.5F}},
                                        {"ss", std::vector<std::string>{"a", "b"}}}});
  const auto again = read_again(encode_model(model));
  EXPECT_EQ(encode_model(again), encode_model(model));
  EXPECT_EQ(again.nodes[0].attributes.size(), 7u);
  EXPECT_EQ(again.inputs[0].shape[1].symbol, "n");
  model.nodes[0].attributes.push_back({"g", Unread{"a graph"}});
  EXPECT_THROW(encode_model(model), UnsupportedError);
}

/// y = reshape(conv(x, w)) for x: [1, 1, 3, 3], to rows.
Graph rows_graph() {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, Shape{1, 1, 3, 3}});
  const std::vector<float> weights = {1, 2, 3, 4};
  const auto w = graph.add_state("w", Tensor(Shape{1, 1, 2, 2}, weights), StateRole::Parameter);
  Conv conv;
  conv.kernel_shape = {2, 2};
  const auto y = graph.add_node(make_op(conv), std::vector{x, w}, "conv").front();
  Reshape rows;
  rows.shape = {1, 4};
  graph.mark_output("y", graph.add_node(make_op(rows), std::vector{y}, "rows").front());
  return graph;
}

TEST(ExportGraph, the_export_computes_the_same_at_any_batch) {
  const auto model = read_again(encode_model(export_graph(rows_graph(), {})));
  const auto import = import_model(model, {.bind = {{"batch", 2}}, .given = {}});
  RefTensor x{{DType::F32, Shape{2, 1, 3, 3}}, {}};
  for (int i = 0; i < 18; ++i) x.values.push_back(i);
  const auto values = evaluate_reference(import.graph, {{import.graph.find("x"), x}});
  EXPECT_THAT(values[import.graph.outputs().front().value.index()].values,
              ::testing::ElementsAre(27, 37, 57, 67, 117, 127, 147, 157));
}

TEST(ExportGraph, a_value_may_have_the_name_of_an_output) {
  auto graph = rows_graph();
  graph.mark_output("rows", graph.find("rows"));
  const auto model = read_again(encode_model(export_graph(graph, {})));
  EXPECT_EQ(model.outputs[1].name, "rows");
}

TEST(ExportGraph, what_is_not_onnx_is_refused_by_its_name) {
  auto graph = rows_graph();
  graph.add_node(make_op(Reduce(ReduceKind::Sum, {0})), std::vector{graph.find("conv")}, "total");
  EXPECT_THAT([&] { export_graph(graph, {}); },
              ::testing::ThrowsMessage<UnsupportedError>(HasSubstr("node \"total\"")));
  EXPECT_THROW(export_graph(rows_graph(), {.opset = 12}), InvalidArgument);
  EXPECT_THROW(export_graph(rows_graph(), {.opset = 23}), InvalidArgument);
}

}  // namespace
}  // namespace triptych::onnx
