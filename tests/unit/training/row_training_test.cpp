// Networks that make one row of each example, in training: classifiers of pictures, encoders of
// tokens, values.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>

#include "core/base/random.h"
#include "core/io/image.h"
#include "core/io/npy.h"
#include "core/onnx/model_writer.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/row_evaluation.h"
#include "experiments/training/run_arrays.h"
#include "experiments/training/training_run.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kRows = 10, kTokens = 3, kWords = 7, kWidth = 4, kClasses = 3;

onnx::TensorPtr weights(Shape shape, std::uint64_t seed) {
  Tensor tensor(TensorSpec{DType::F32, std::move(shape)});
  RandomStream random(seed, 0);
  for (auto& value : tensor.as<float>()) value = static_cast<float>(random.normal()) / 2;
  return std::make_shared<const Tensor>(std::move(tensor));
}

onnx::ModelNode node(const std::string& op, std::vector<std::string> inputs, std::string output) {
  return {.name = output,
          .op = op,
          .domain = {},
          .inputs = std::move(inputs),
          .outputs = {output},
          .attributes = {}};
}

/// Classes of pictures of two channels: a convolution, batch normalisation, the mean over pixels.
onnx::Model classifier() {
  onnx::Model model;
  model.opset = 17;
  model.inputs = {{.name = "image", .shape = {{-1, "n"}, {1, ""}, {-1, "h"}, {-1, "w"}}}};
  model.outputs = {{.name = "p"}};
  model.nodes = {node("Conv", {"image", "w"}, "c"),
                 node("BatchNormalization", {"c", "scale", "bias", "mean", "variance"}, "b"),
                 node("Relu", {"b"}, "r"),
                 node("GlobalAveragePool", {"r"}, "g"),
                 node("Flatten", {"g"}, "f"),
                 node("Gemm", {"f", "head", "head.bias"}, "logits"),
                 node("Softmax", {"logits"}, "p")};
  const auto ones = std::make_shared<const Tensor>(Shape{kWidth}, std::vector<float>(4, 1.0F));
  const auto zeros = std::make_shared<const Tensor>(Shape{kWidth}, std::vector<float>(4, 0.0F));
  model.initializers = {{"w", weights({kWidth, 1, 3, 3}, 1)},
                        {"scale", ones},
                        {"bias", zeros},
                        {"mean", zeros},
                        {"variance", ones},
                        {"head", weights({kWidth, kClasses}, 2)},
                        {"head.bias", weights({kClasses}, 3)}};
  return model;
}

/// A class of each token. Its mask scales its vector.
onnx::Model encoder() {
  onnx::Model model;
  model.opset = 17;
  model.inputs = {{.name = "ids", .dtype = DType::I64, .shape = {{-1, "n"}, {-1, "tokens"}}},
                  {.name = "mask", .shape = {{-1, "n"}, {-1, "tokens"}, {1, ""}}}};
  model.outputs = {{.name = "logits"}};
  model.nodes = {node("Gather", {"words", "ids"}, "e"), node("Mul", {"e", "mask"}, "m"),
                 node("MatMul", {"m", "head"}, "logits")};
  model.initializers = {{"words", weights({kWords, kWidth}, 1)},
                        {"head", weights({kWidth, kClasses}, 2)}};
  return model;
}

class RowTraining : public ::testing::Test {
 protected:
  RowTraining() : machine_({.threads = 1, .contract = Contract::Bf16Exact}) {
    for (int i = 0; i < kRows; ++i) {
      Image image;
      image.width = image.height = 6;
      RandomStream random(static_cast<std::uint64_t>(i), 0);
      for (int pixel = 0; pixel < 36; ++pixel)
        image.samples.push_back(static_cast<std::uint16_t>(80 * (i % 3) + random.below(80)));
      const auto folder = folder_ / "pictures" / std::string(1, static_cast<char>('a' + i % 3));
      std::filesystem::create_directories(folder);
      test::put_file(folder / (std::to_string(i) + ".png"), encode_png(image));
    }
  }

  RunConfig of_pictures() {
    RunConfig config;
    config.model = imported_model("classifier.onnx", classifier(), {.size = 6});
    config.data.source = (folder_ / "pictures").string();
    return shortened(config);
  }

  RunConfig of_arrays() {
    std::vector<std::int64_t> ids, target;
    for (std::int64_t i = 0; i < kRows * kTokens; ++i) {
      ids.push_back(i * 5 % kWords);
      target.push_back(i % 4 == 0 ? segmentation::kNoClass : ids.back() % kClasses);
    }
    save("ids", Tensor(Shape{kRows, kTokens}, ids));
    save("mask", Tensor(Shape{kRows, kTokens, 1}, std::vector<float>(kRows * kTokens, 1.0F)));
    save("target", Tensor(Shape{kRows, kTokens}, target));
    RunConfig config;
    config.data.inputs = files_of_inputs(encoder(), {"mask=" + file("mask"), file("ids")});
    config.data.target = file("target");
    config.model =
        imported_model("encoder.onnx", encoder(), {.rows = row_sizes(config.data.inputs)});
    return shortened(config);
  }

  static RunConfig shortened(RunConfig config) {
    config.training.batch = 4;
    config.epochs = 2;
    config.augmentation = {};
    return config;
  }

  std::string file(const std::string& name) const { return (folder_ / (name + ".npy")).string(); }
  void save(const std::string& name, const Tensor& tensor) { save_npy(file(name), tensor); }

  std::unique_ptr<TrainingRun> trained(const DeviceSet& machine, RunConfig config,
                                       const std::string& name) {
    auto run = std::make_unique<TrainingRun>(machine, std::move(config), folder_ / name);
    run->train({}, false);
    return run;
  }

  /// A run that is interrupted after an epoch resumes to the bits of an uninterrupted one.
  void resumes(RunConfig config) {
    const auto whole = trained(machine_, config, "whole");
    config.epochs = 1;
    trained(machine_, config, "half");
    auto saved = load_run(folder_ / "half");
    saved.config.epochs = 2;
    TrainingRun half(machine_, std::move(saved), folder_ / "half");
    half.train({}, false);
    EXPECT_EQ(half.losses(), whole->losses());
    EXPECT_EQ(half.trainer().weights_sha256(), whole->trainer().weights_sha256());
    EXPECT_EQ(half.epochs().back().scores.pixel_accuracy,
              whole->epochs().back().scores.pixel_accuracy);
  }

  /// One rank and two, on one machine and another, give the same bits.
  void spreads(const RunConfig& config) {
    std::vector<std::string> weights;
    for (const int ranks : {1, 2}) {
      for (const auto* backend : {"cpu", "cuda-emulated"}) {
        ExecutionConfig options = {
            .backend = backend, .threads = 1, .contract = Contract::Bf16Exact};
        options.parallel.ranks = ranks;
        options.parallel.order = ReductionOrder::ShardTree;
        options.parallel.shards = 2;
        const DeviceSet machine(options);
        const auto run = trained(machine, config, fmt_name(ranks, backend));
        weights.push_back(run->trainer().weights_sha256());
      }
    }
    for (const auto& hash : weights) EXPECT_EQ(hash, weights.front());
  }
  static std::string fmt_name(int ranks, const std::string& backend) {
    return backend + std::to_string(ranks);
  }

  test::TemporaryFolder folder_;
  DeviceSet machine_;
};

TEST_F(RowTraining, a_classifier_learns_the_class_of_a_folder) {
  auto config = of_pictures();
  EXPECT_FALSE(config.model.maps);
  EXPECT_EQ(config.model.classes, kClasses);
  config.epochs = 40;
  config.learning_rate = 0.02F;
  const auto run = trained(machine_, config, "run");
  EXPECT_LT(run->losses().back(), run->losses().front() * 0.7F);
  EXPECT_EQ(run->config().data.labels, "a,b,c");
  const auto& last = run->epochs().back();
  EXPECT_EQ(last.scores.images, 2);
  EXPECT_EQ(last.scores.pixel_accuracy, 1);
  EXPECT_EQ(load_run(folder_ / "run").config.data.labels, "a,b,c");
  EXPECT_THAT(test::get_file(folder_ / "run/metrics.csv"),
              ::testing::StartsWith("step,epoch,loss,validation_loss,accuracy,learning_rate,"));
}

TEST_F(RowTraining, logits_may_have_the_axes_of_a_picture_of_one_pixel) {
  auto model = classifier();
  model.nodes.back() = node("Unsqueeze", {"logits", "axes"}, "p");
  model.initializers.emplace(
      "axes", std::make_shared<const Tensor>(Shape{2}, std::vector<std::int64_t>{2, 3}));
  auto flat = of_pictures(), image = flat;
  image.model = imported_model("four.onnx", model, {.size = 6});
  EXPECT_EQ(trained(machine_, image, "image")->losses(), trained(machine_, flat, "flat")->losses());
}

TEST_F(RowTraining, a_classifier_goes_on_to_the_same_bits) { resumes(of_pictures()); }
TEST_F(RowTraining, an_encoder_goes_on_to_the_same_bits) { resumes(of_arrays()); }
TEST_F(RowTraining, a_classifier_is_spread_over_ranks_and_machines) { spreads(of_pictures()); }
TEST_F(RowTraining, an_encoder_is_spread_over_ranks_and_machines) { spreads(of_arrays()); }

TEST_F(RowTraining, data_of_another_run_is_refused) {
  trained(machine_, of_arrays(), "arrays");
  save("mask", Tensor(Shape{kRows, kTokens, 1}, std::vector<float>(kRows * kTokens, 2.0F)));
  EXPECT_THAT([&] { TrainingRun(machine_, load_run(folder_ / "arrays"), folder_ / "arrays"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not those of the run")));
  trained(machine_, of_pictures(), "classes");
  std::filesystem::rename(folder_ / "pictures/a", folder_ / "pictures/other");
  EXPECT_THAT([&] { TrainingRun(machine_, load_run(folder_ / "classes"), folder_ / "classes"); },
              ThrowsMessage<IoError>(HasSubstr("other\" is no class of the model")));
}

TEST_F(RowTraining, arrays_that_do_not_fit_are_refused) {
  auto config = of_arrays();
  const auto refused = [&](const std::string& name, const Tensor& tensor, const char* says) {
    const auto before = test::get_file(file(name));
    save(name, tensor);
    EXPECT_THAT([&] { load_arrays(config); }, ThrowsMessage<IoError>(HasSubstr(says)));
    test::put_file(file(name), before);
  };
  const std::vector<std::int64_t> rows(kRows * kTokens, 1), few(kTokens, 1);
  auto beyond = rows;
  beyond[4] = kClasses;
  refused("target", Tensor(Shape{kRows, kTokens}, beyond), "row 1 has class 3");
  refused("target", Tensor(Shape{kRows * kTokens}, rows), "classes of these examples");
  refused("target", Tensor(Shape{kRows, kTokens}, std::vector<float>(rows.size())),
          "whole numbers");
  refused("ids", Tensor(Shape{1, kTokens}, few), "it has 1 rows");
  refused("ids", Tensor(Shape{kTokens, kRows}, rows), "the network takes");
  refused("mask", Tensor(Shape{kRows, kTokens, 1}, std::vector<float>(rows.size(), NAN)),
          "not finite");
  EXPECT_THAT(
      [&] {
        imported_model("m.onnx", encoder(), {.rows = {{kTokens}, {kTokens, 2}}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("\"mask\"")));
  EXPECT_THROW(files_of_inputs(encoder(), {"a.npy"}), InvalidArgument);
  EXPECT_THROW(files_of_inputs(encoder(), {"ids=a.npy", "ids=b.npy"}), InvalidArgument);
  EXPECT_THROW(files_of_inputs(encoder(), {"a.npy", "b.npy", "c.npy"}), InvalidArgument);
}

TEST_F(RowTraining, options_of_maps_are_refused) {
  const auto refused = [&](const auto& change, const char* says) {
    auto config = of_pictures();
    change(config);
    EXPECT_THAT([&] { validate(config); }, ThrowsMessage<InvalidArgument>(HasSubstr(says)));
  };
  refused([](auto& config) { config.training.loss = LossKind::Dice; }, "loss");
  refused([](auto& config) { config.training.loss = LossKind::MeanSquaredError; }, "values");
  refused([](auto& config) { config.keep = Keep::Dice; }, "keep loss");
  refused([](auto& config) { config.weights.classes = "1,1,1"; }, "class-weights");
  refused([](auto& config) { config.data.source = "synthetic"; }, "one folder of pictures");
  refused([](auto& config) { config.data.list = "list.csv"; }, "list");
  refused([](auto& config) { config.data.target = "y.npy"; }, "go together");
  RunConfig maps;
  maps.training.loss = LossKind::MeanSquaredError;
  EXPECT_THAT([&] { validate(maps); }, ThrowsMessage<InvalidArgument>(HasSubstr("one map")));
}

TEST_F(RowTraining, has_no_maps_to_predict) {
  const auto run = trained(machine_, of_pictures(), "run");
  segmentation::Sample sample{"x", "", 1, 6, 6, std::vector<float>(36), {}};
  EXPECT_THAT([&] { run->predict(sample); },
              ThrowsMessage<UnsupportedError>(HasSubstr("no map of classes")));
}

TEST(RowEvaluation, counts_what_has_a_class) {
  RunConfig config;
  config.model.maps = false;
  RowEvaluation rows(config);
  const Tensor logits(Shape{1, 3, 2}, std::vector<float>{0, 1, 3, 1, 5, 5});
  rows.add("a", logits, Tensor(Shape{1, 3}, std::vector<std::int64_t>{1, 1, -100}));
  EXPECT_EQ(rows.accuracy(), 0.5);
  EXPECT_NEAR(rows.loss(), (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(2.0))) / 2, 1e-12);
  EXPECT_EQ(rows.confusion().at({1, 0}), 1);
  EXPECT_EQ(rows.confusion().size(), 2U);
  rows.add("b", Tensor(Shape{1, 2}, std::vector<float>{0, 0}),
           Tensor(Shape{1}, std::vector<std::int64_t>{0}));
  EXPECT_EQ(rows.rows()[1].predicted, 0) << "of equals the first";
  EXPECT_NEAR(rows.rows()[1].probability, 0.5, 1e-12);
  EXPECT_EQ(rows.accuracy(), 2.0 / 3);
  EXPECT_NEAR(rows.loss(),
              (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(2.0)) + std::log(2.0)) / 3, 1e-12)
      << "each element counts the same, as for the accuracy";
}

}  // namespace
}  // namespace triptych::training
