// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/model_reader.h"

#include <gmock/gmock.h>

#include <bit>

#include "tests/unit/memory_limit.h"
#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::loaded;
using test::Sample;
using ::testing::ElementsAre;

TEST(OnnxReader, nodes_values_and_initialisers_come_as_they_stand) {
  const auto model = loaded(test::dense_sample());
  EXPECT_EQ(model.opset, 13);
  ASSERT_EQ(model.nodes.size(), 3u);
  EXPECT_EQ(model.nodes[1].op, "Add");
  EXPECT_EQ(model.nodes[1].name, "#1");
  EXPECT_THAT(model.nodes[1].inputs, ElementsAre("h", "b"));
  ASSERT_EQ(model.inputs.size(), 1u);
  EXPECT_EQ(model.inputs[0].shape[0].symbol, "batch");
  EXPECT_EQ(model.inputs[0].shape[1].size, 2);
  EXPECT_THAT(model.initializers.at("b")->as<float>(), ElementsAre(-10, 0, 10));
  EXPECT_EQ(model.outputs[0].name, "y");
}

TEST(OnnxReader, an_input_that_an_initialiser_gives_is_none) {
  auto sample = test::dense_sample();
  sample.input("b", {3});
  EXPECT_EQ(loaded(sample).inputs.size(), 1u);
}

TEST(OnnxReader, raw_data_of_every_type) {
  auto sample = test::dense_sample();
  const auto raw = [&](const char* name, int type, const std::string& bytes) {
    sample.initializer(name, {2}, type).set_raw_data(bytes);
  };
  raw("u8", 2, "\x01\xFF");
  raw("i32", 6, std::string("\x01\0\0\0\xFF\xFF\xFF\xFF", 8));
  raw("bool", 9, std::string("\x01\0", 2));
  raw("f16", 10, std::string("\0\x3C\0\xC0", 4));
  raw("bf16", 16, std::string("\x80\x3F\0\xC0", 4));
  raw("f64", 11, std::string("\0\0\0\0\0\0\xF0\x3F\0\0\0\0\0\0\0\xC0", 16));
  const auto model = loaded(sample);
  const auto values = [&](const char* name) { return to_doubles(*model.initializers.at(name)); };
  EXPECT_THAT(values("u8"), ElementsAre(1, 255));
  EXPECT_THAT(values("i32"), ElementsAre(1, -1));
  EXPECT_THAT(values("bool"), ElementsAre(1, 0));
  for (const auto* name : {"f16", "bf16", "f64"}) EXPECT_THAT(values(name), ElementsAre(1, -2));
  EXPECT_EQ(model.initializers.at("f16")->dtype(), DType::F16);
  EXPECT_EQ(model.initializers.at("f64")->dtype(), DType::F32);
  EXPECT_TRUE(model.has_doubles);
}

TEST(OnnxReader, numbers_of_small_types_come_from_the_field_of_int32) {
  auto sample = test::dense_sample();
  auto& tensor = sample.initializer("i8", {2}, 3);
  tensor.add_int32_data(-128);
  tensor.add_int32_data(127);
  EXPECT_THAT(to_doubles(*loaded(sample).initializers.at("i8")), ElementsAre(-128, 127));
}

TEST(OnnxReader, a_double_without_a_place_in_float32_is_not_supported) {
  for (const double value : {1e300, -1e-300}) {
    auto sample = test::dense_sample();
    sample.initializer("d", {1}, test::kDouble).add_double_data(value);
    EXPECT_THROW(loaded(sample), UnsupportedError);
  }
}

TEST(OnnxReader, external_data_is_read_from_beneath_the_folder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inner");
  const float values[] = {9, 8, 7};
  test::put_file(folder / "inner/w.bin",
                 "xxxx" + std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  auto sample = test::dense_sample();
  auto& tensor = sample.initializer("e", {3}, test::kFloat);
  tensor.set_data_location(1);
  const auto entry = [&](const char* key, const char* value) {
    auto& added = *tensor.add_external_data();
    added.set_key(key);
    added.set_value(value);
  };
  entry("location", "inner/w.bin");
  entry("offset", "4");
  entry("length", "12");
  const auto model = load_model(sample.save(folder / "m.onnx"));
  EXPECT_THAT(model.initializers.at("e")->as<float>(), ElementsAre(9, 8, 7));
}

TEST(OnnxReader, operator_sets_from_6_to_21_are_read) {
  EXPECT_EQ(loaded(Sample(6).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y")).opset, 6);
  EXPECT_EQ(loaded(Sample(22).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y")).opset, 22);
  for (const int opset : {5, 23}) {
    const auto sample = Sample(opset).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_THROW(loaded(sample), UnsupportedError) << opset;
  }
}

TEST(OnnxReader, messages_name_the_file_the_node_and_the_reason) {
  auto sample = test::dense_sample();
  sample.graph().mutable_node(1)->set_input(0, "nowhere");
  try {
    loaded(sample);
    FAIL() << "it was read";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("m.onnx\": node \"#1\" (Add) reads \"nowhere\""));
  }
}

TEST(OnnxReader, a_limit_of_memory_holds_before_it_is_taken) {
  const test::TemporaryFolder folder;
  auto sample = test::dense_sample();
  sample.floats("many", {600}, std::vector<float>(600, 0));
  const auto path = sample.save(folder / "m.onnx");
  {
    const test::MemoryLimit limit(20000);
    EXPECT_NO_THROW(load_model(path));
  }
  const test::MemoryLimit limit(2420);
  EXPECT_THROW(load_model(path), Error);
}

/// PyTorch's optimizer makes initialisers of the code's numbers, and says which are parameters.
TEST(OnnxReader, numbers_of_the_code_are_nodes_where_the_file_states_the_kinds) {
  Sample sample;
  sample.input("x", {1}).node("Mul", {"x", "scale"}, {"h"}).node("Add", {"h", "shift"}, {"s"});
  sample.node("Mul", {"s", "half"}, {"y"}).output("y");
  for (const auto* name : {"scale", "shift", "half"}) sample.floats(name, {1}, {0.5F});
  EXPECT_EQ(loaded(sample).initializers.size(), 3u);
  for (const auto& [name, kind] : {std::pair("scale", "PARAMETER"), std::pair("shift", "BUFFER")}) {
    onnx_format::ValueInfo info;
    info.set_name(name);
    auto& entry = *info.add_metadata_props();
    entry.set_key("pkg.torch.export.graph_signature.InputSpec.kind");
    entry.set_value(kind);
    sample.graph().add_value_info(info.SerializeAsString());
  }
  const auto model = loaded(sample);
  EXPECT_TRUE(model.initializers.contains("scale") && model.initializers.contains("shift"));
  EXPECT_FALSE(model.initializers.contains("half"));
  EXPECT_EQ(model.nodes.front().op, "Constant");
  sample.graph().add_value_info("\xFF");
  EXPECT_THROW(loaded(sample), IoError);
}

}  // namespace
}  // namespace triptych::onnx
