// Values of operators on images and volumes: pooling, padding and resizing.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::close_to;
using test::Integers;
using test::kInt64;
using test::one_node;
using test::output_of;
using test::outputs_of;
using test::Sample;
using ::testing::ElementsAre;

TEST(Translations, places_count_height_or_width_first) {
  const auto places = [](std::int64_t order) {
    Sample sample(12);
    sample.input("x", {1, 1, 2, 3}).node("MaxPool", {"x"}, {"m", "y"}).output("y", kInt64);
    sample.integers("kernel_shape", {2, 2}).integer("storage_order", order);
    return output_of(sample, {{"x", {0, 1, 2, 9, 3, 4}}});
  };
  EXPECT_THAT(places(0), ElementsAre(3, 5));
  EXPECT_THAT(places(1), ElementsAre(1, 5));
}

TEST(Translations, values_return_to_their_places) {
  const auto unpooled = [](bool shape) {
    Sample sample;
    sample.input("x", {1, 1, 1, 2}).input("i", {1, 1, 1, 2}, kInt64);
    sample.node("MaxUnpool", {"x", "i", shape ? "shape" : ""}, {"y"}).output("y");
    sample.integers("kernel_shape", {1, 2}).integers("strides", {1, 2});
    if (shape) sample.constants("shape", {1, 1, 2, 4});
    return output_of(sample, {{"x", {5, 6}}, {"i", {1, 2}}});
  };
  EXPECT_THAT(unpooled(false), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(unpooled(true), ElementsAre(0, 5, 6, 0, 0, 0, 0, 0));
}

TEST(Translations, volumes_are_padded_as_images_are) {
  const auto convolved = [](const char* mode) {
    Sample sample;
    sample.input("x", {1, 1, 3, 1, 1}).node("Conv", {"x", "w"}, {"y"}).output("y");
    sample.text("auto_pad", mode).floats("w", {1, 1, 2, 1, 1}, {10, 1});
    return output_of(sample, {{"x", {1, 2, 3}}});
  };
  EXPECT_THAT(convolved("NOTSET"), ElementsAre(12, 23));
  EXPECT_THAT(convolved("VALID"), ElementsAre(12, 23));
  EXPECT_THAT(convolved("SAME_UPPER"), ElementsAre(12, 23, 30));
  EXPECT_THAT(convolved("SAME_LOWER"), ElementsAre(1, 12, 23));
}

TEST(Translations, an_output_shape_may_have_batch_and_channels) {
  const auto shape_of = [](const Integers& wanted) {
    Sample sample;
    sample.input("x", {1, 1, 2, 2}).node("ConvTranspose", {"x", "w"}, {"y"}).output("y");
    sample.integers("output_shape", wanted).integers("strides", {2, 2});
    sample.floats("w", {1, 1, 2, 2}, {1, 2, 3, 4});
    return outputs_of(sample, {{"x", {1, 2, 3, 4}}}).front().spec.shape;
  };
  EXPECT_EQ(shape_of({4, 4}), (Shape{1, 1, 4, 4}));
  EXPECT_EQ(shape_of({1, 1, 4, 4}), (Shape{1, 1, 4, 4}));
}

TEST(Translations, resizes_of_every_operator_set) {
  const std::map<std::string, std::vector<double>> x = {{"x", {1, 3}}};
  auto oldest = one_node("Upsample", {1, 1, 1, 2}, 7);
  auto& scales = oldest.text("mode", "bilinear").attribute("scales", 6);
  for (const float scale : {1.0F, 1.0F, 1.0F, 2.0F}) scales.add_floats(scale);
  EXPECT_THAT(output_of(oldest, x), ElementsAre(1, 2, 3, 3));
  auto without = one_node("Upsample", {1, 1, 1, 2}, 7);
  without.text("mode", "nearest");
  EXPECT_THROW(output_of(without, x), Error);
  const auto resized = [&](std::int64_t opset, const std::string& op, const std::string& mode) {
    Sample sample(opset);
    sample.input("x", {1, 1, 1, 2});
    const bool has_region = op == "Resize" && opset > 10;
    sample.node(op, has_region ? test::Names{"x", "", "s"} : test::Names{"x", "s"}, {"y"});
    sample.text("mode", mode).output("y").floats("s", {4}, {1, 1, 1, 2});
    return output_of(sample, x);
  };
  EXPECT_THAT(resized(9, "Upsample", "trilinear"), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(resized(9, "Upsample", "nearest"), ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(resized(9, "Upsample", "bicubic"), resized(10, "Resize", "cubic"));
  EXPECT_THAT(resized(10, "Resize", "linear"), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(resized(11, "Resize", "linear"), ElementsAre(1, 1.5, 2.5, 3));
}

TEST(Translations, a_resize_of_some_axes_keeps_the_others) {
  const auto shape_of = [](bool sizes) {
    Sample sample(18);
    sample.input("x", {1, 1, 2, 3});
    sample.node("Resize", {"x", "", sizes ? "" : "v", sizes ? "v" : ""}, {"y"}).output("y");
    sample.integers("axes", {-1});
    if (sizes) sample.constants("v", {6});
    if (!sizes) sample.floats("v", {1}, {2});
    return outputs_of(sample, {{"x", {1, 2, 3, 4, 5, 6}}}).front().spec.shape;
  };
  EXPECT_EQ(shape_of(true), (Shape{1, 1, 2, 6}));
  EXPECT_EQ(shape_of(false), (Shape{1, 1, 2, 6}));
}

TEST(Translations, pixels_outside_have_no_weight_where_the_model_says_so) {
  const auto cubic = [](std::int64_t exclude) {
    Sample sample;
    sample.input("x", {1, 1, 1, 4}).node("Resize", {"x", "", "s"}, {"y"}).output("y");
    sample.text("mode", "cubic").integer("exclude_outside", exclude);
    sample.floats("s", {4}, {1, 1, 1, 2});
    return output_of(sample, {{"x", {1, 2, 3, 9}}}).front();
  };
  EXPECT_GT(std::abs(cubic(0) - cubic(1)), 1e-3);
}

}  // namespace
}  // namespace triptych::onnx
