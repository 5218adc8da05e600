// A network that leaves as an ONNX file and comes back trains to the bits of the one that stayed.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/imported_network.h"

#include <gmock/gmock.h>

#include "core/graph/passes/passes.h"
#include "core/onnx/export_graph.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/onnx/model_writer.h"
#include "experiments/training/run_export.h"
#include "experiments/training/training_run.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunConfig tiny_run() {
  RunConfig config;
  config.model = model_preset("unet-s");
  config.model.base = 2;
  config.model.depth = 2;
  config.model.size = 16;
  config.data.synthetic_images = 4;
  config.training.batch = 2;
  config.epochs = 1;
  config.steps_per_epoch = 3;
  return config;
}

class Imported : public ::testing::Test {
 protected:
  Imported() : machine_({.threads = 1}) {}

  std::unique_ptr<TrainingRun> trained(RunConfig config, const std::string& name) {
    auto run = std::make_unique<TrainingRun>(machine_, std::move(config), folder_ / name);
    run->train({}, false);
    return run;
  }

  /// The run as a file with the network's own input.
  std::filesystem::path exported(const std::string& run, RunExportOptions options = {}) {
    const auto file = folder_ / (run + ".onnx");
    if (!options.opset) options.pixels = Pixels::Normalized;
    test::put_file(file, encode_run(load_trained(folder_ / run), options));
    return file;
  }

  test::TemporaryFolder folder_;
  DeviceSet machine_;
};

/// Logits of the model for an image of noise.
std::vector<float> logits_of(const DeviceSet& machine, const SavedRun& run) {
  Predictor predictor(machine, run.config.model, run.states, {});
  std::vector<float> image(16 * 16);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 37 % 101) / 101;
  return predictor.logits(image, {16, 16});
}

TEST_F(Imported, trains_to_the_bits_of_the_preset_that_it_was) {
  trained(tiny_run(), "first");
  auto stays = tiny_run(), comes = tiny_run();
  stays.init = (folder_ / "first").string();
  comes.model = imported_model(exported("first"), {.size = 16});
  EXPECT_EQ(comes.model.classes, 1);
  EXPECT_EQ(comes.model.in_channels, 1);
  EXPECT_EQ(comes.model.size_multiple(), 4);
  EXPECT_FALSE(comes.model.fixed_size());
  const auto one = trained(stays, "stays"), other = trained(comes, "comes");
  EXPECT_EQ(one->losses(), other->losses());
  EXPECT_EQ(one->epochs()[0].scores.mean_dice, other->epochs()[0].scores.mean_dice);
  EXPECT_EQ(logits_of(machine_, load_trained(folder_ / "stays")),
            logits_of(machine_, load_trained(folder_ / "comes")));
}

TEST_F(Imported, a_run_goes_on_from_its_folder_alone) {
  trained(tiny_run(), "first");
  auto config = tiny_run();
  config.model =
      imported_model(exported("first"), {.size = 16, .channels = 1, .frozen = {"head*"}});
  config.epochs = 2;
  const auto whole = trained(config, "whole");
  config.epochs = 1;
  trained(config, "half");
  std::filesystem::remove(folder_ / "first.onnx");
  auto saved = load_run(folder_ / "half");
  saved.config.epochs = 2;
  TrainingRun half(machine_, std::move(saved), folder_ / "half");
  half.train({}, false);
  EXPECT_EQ(half.losses(), whole->losses());
  EXPECT_EQ(half.trainer().weights_sha256(), whole->trainer().weights_sha256());
  std::filesystem::rename(folder_ / "half/model.onnx", folder_ / "half/other.onnx");
  EXPECT_THROW(load_run(folder_ / "half"), IoError);
  const auto states = load_trained(folder_ / "whole").states;
  test::put_file(folder_ / "half/model.onnx",
                 onnx::encode_model(imported_network(whole->config().model)->trained(states)));
  EXPECT_THAT([&] { load_run(folder_ / "half"); },
              ThrowsMessage<IoError>(HasSubstr("not the network of this run")));
}

TEST_F(Imported, frozen_weights_stay) {
  trained(tiny_run(), "first");
  auto config = tiny_run();
  config.model = imported_model(exported("first"), {.size = 16, .frozen = {"down*"}});
  trained(config, "fine");
  const auto run = load_trained(folder_ / "fine");
  EXPECT_FALSE(run.states.contains("down1.conv0.weight"));
  EXPECT_TRUE(run.states.contains("head.weight"));
}

TEST_F(Imported, what_is_frozen_is_not_silently_another_than_in_the_weights_to_begin_with) {
  trained(tiny_run(), "first");
  const auto file = exported("first");
  auto second = tiny_run();
  second.model = imported_model(file, {.size = 16});
  trained(second, "second");
  auto third = tiny_run();
  third.model = imported_model(file, {.size = 16, .frozen = {"head.*"}});
  third.init = (folder_ / "second").string();
  EXPECT_THAT([&] { trained(third, "third"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("\"head.bias\" is not trained")));
  third.model = imported_model(exported("second"), {.size = 16, .frozen = {"head.*"}});
  EXPECT_NO_THROW(trained(third, "fourth"));
}

TEST_F(Imported, an_export_takes_raw_pictures_in_any_operator_set) {
  trained(tiny_run(), "first");
  for (std::int64_t opset = onnx::kFirstExportOpset; opset <= onnx::kLastExportOpset; ++opset) {
    const auto model = onnx::load_model(exported("first", {.opset = opset}));
    EXPECT_EQ(model.opset, opset);
    EXPECT_EQ(model.inputs[0].dtype, DType::U8);
    EXPECT_EQ(model.inputs[0].name, "image");
    EXPECT_EQ(model.outputs[0].name, "logits");
  }
  EXPECT_THAT([&] { imported_model(folder_ / "first.onnx"); },
              ThrowsMessage<UnsupportedError>(HasSubstr("u8")));
}

/// Output of a file here, for an image of bytes.
std::vector<float> output_of(const DeviceSet& machine, const onnx::Model& model,
                             const std::vector<std::uint8_t>& bytes) {
  const auto image = std::make_shared<const Tensor>(Shape{1, 1, 16, 16}, bytes);
  auto import = onnx::import_model(model, {.bind = {}, .given = {{"image", image}}});
  StateStore states(machine.device());
  auto plan = make_plan(optimize(std::move(import.graph), {.inference = true}), machine.devices(),
                        machine.plan_options());
  Executor executor(std::move(plan), states);
  executor.set_input("image", *image);
  executor.run();
  const auto logits = executor.output("logits");
  return {logits.as<float>().begin(), logits.as<float>().end()};
}

TEST_F(Imported, an_export_makes_the_logits_of_its_run_from_bytes) {
  std::vector<std::uint8_t> bytes(16 * 16);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 % 201);
  segmentation::Sample sample;
  sample.height = sample.width = 16;
  for (const auto byte : bytes) sample.image.push_back(static_cast<float>(byte) / 255);
  for (const auto by : {segmentation::NormalizeBy::Dataset, segmentation::NormalizeBy::Image}) {
    auto config = tiny_run();
    config.data.normalize = by;
    const auto name = std::string(name_of(by));
    trained(config, name);
    const auto run = load_trained(folder_ / name);
    auto own = sample;
    if (by == segmentation::NormalizeBy::Image) segmentation::normalize_by_itself(own);
    Predictor predictor(machine_, run.config.model, run.states, {});
    const auto expected =
        predictor.logits(segmentation::normalized(own, run.normalization), {16, 16});
    for (const std::int64_t opset : {13, 18}) {
      const auto model = onnx::load_model(exported(name, {.opset = opset}));
      EXPECT_THAT(output_of(machine_, model, bytes),
                  ::testing::Pointwise(::testing::FloatNear(1e-5F), expected))
          << name << ", operator set " << opset;
    }
  }
}

/// A file with fixed sizes.
TEST_F(Imported, a_fixed_batch_is_taken_one_at_a_time) {
  trained(tiny_run(), "first");
  const auto path = exported("first");
  auto model = onnx::load_model(path);
  model.inputs[0].shape = {{1, ""}, {1, ""}, {16, ""}, {16, ""}};
  test::put_file(path, onnx::encode_model(model));
  auto config = tiny_run();
  config.model = imported_model(path);
  EXPECT_TRUE(config.model.fixed_size());
  EXPECT_EQ(config.model.size, 16);
  EXPECT_THAT([&] { trained(config, "two"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("accumulate")));
  config.accumulate = 2;
  EXPECT_EQ(trained(config, "each")->losses().size(), 3u);
  EXPECT_THROW(imported_model(path, {.size = 32}), InvalidArgument);
  model.inputs[0].shape = {{1, ""}, {1, ""}, {16, ""}, {32, ""}};
  test::put_file(path, onnx::encode_model(model));
  EXPECT_THROW(imported_model(path), UnsupportedError);
}

TEST_F(Imported, what_makes_neither_maps_nor_rows_is_refused) {
  trained(tiny_run(), "first");
  auto model = onnx::load_model(exported("first"));
  const auto pool = [&](const std::string& op, std::vector<onnx::NodeAttribute> attributes) {
    model.nodes.push_back({.name = "pool",
                           .op = op,
                           .domain = {},
                           .inputs = {"logits"},
                           .outputs = {"pooled"},
                           .attributes = std::move(attributes)});
    model.outputs[0].name = "pooled";
  };
  pool("GlobalAveragePool", {});
  EXPECT_FALSE(imported_model("m.onnx", model, {.size = 16}).maps) << "a class of each image";
  model.nodes.pop_back();
  const std::vector<std::int64_t> two = {2, 2};
  pool("MaxPool", {{"kernel_shape", two}, {"strides", two}});
  EXPECT_THAT([&] { imported_model("m.onnx", model, {.size = 16}); },
              ThrowsMessage<UnsupportedError>(HasSubstr("one map per class")));
  model.inputs.push_back({.name = "more"});
  EXPECT_THAT([&] { imported_model("m.onnx", model, {.size = 16}); },
              ThrowsMessage<UnsupportedError>(HasSubstr("2 inputs")));
}

}  // namespace
}  // namespace triptych::training
