// Post-training quantisation, from a short training to scores and bits.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>

#include "core/graph/reference.h"
#include "experiments/training/inference_graph.h"
#include "experiments/training/training_run.h"

namespace triptych::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunConfig short_training() {
  RunConfig config;
  config.model = model_preset("unet-s");
  config.data.synthetic_images = 14;
  config.data.validation_fraction = 0.3;
  config.training.batch = 4;
  config.learning_rate = 5e-3F;
  config.epochs = 0;
  config.steps = 80;
  config.steps_per_epoch = 80;
  return config;
}

/// unet-s after a short training on generated images, its weights in float32 and in int8.
class Quantized : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = std::filesystem::path(::testing::TempDir()) / "triptych-quantizer-test";
    std::filesystem::remove_all(folder);
    const DeviceSet machine({});
    const std::atomic<bool> interrupted = false;
    TrainingRun(machine, short_training(), folder).train({}, interrupted);
    floats_ = std::make_unique<SavedRun>(load_run(folder));
    integers_ = std::make_unique<SavedRun>(load_run(folder));
    std::filesystem::remove_all(folder);
    data_ = std::make_unique<TrainingData>(load_data(floats_->config));
    integers_->states = quantize_run(machine, *floats_, spread_samples(data_->train, 8), 100);
    integers_->machine.contract = Contract::Int8;
  }
  static void TearDownTestSuite() {
    floats_.reset();
    integers_.reset();
    data_.reset();
  }

  static std::vector<float> logits(int threads) {
    const DeviceSet machine({.threads = threads, .contract = Contract::Int8});
    Predictor predictor(machine, integers_->config.model, integers_->states);
    const auto& sample = data_->validation.samples[0];
    return predictor.logits(segmentation::normalized(sample, integers_->normalization),
                            {sample.height, sample.width});
  }

  static inline std::unique_ptr<SavedRun> floats_, integers_;
  static inline std::unique_ptr<TrainingData> data_;
};

TEST_F(Quantized, scores_within_one_hundredth_of_float32) {
  const DeviceSet machine({});
  Predictor in_float(machine, floats_->config.model, floats_->states);
  const DeviceSet integer_machine({.contract = Contract::Int8});
  Predictor in_int8(integer_machine, integers_->config.model, integers_->states);
  const auto expected = evaluate(in_float, *floats_, data_->validation).mean_dice.value();
  EXPECT_GT(expected, 0.5) << "too little training to tell anything";
  EXPECT_NEAR(evaluate(in_int8, *integers_, data_->validation).mean_dice.value(), expected, 0.01);
}

TEST_F(Quantized, gives_the_same_bits_at_any_thread_count) {
  const auto one = logits(1);
  EXPECT_EQ(logits(2), one);
  EXPECT_EQ(logits(3), one);
}

TEST_F(Quantized, gives_the_bits_of_the_reference) {
  const auto& sample = data_->validation.samples[0];
  const segmentation::Size size = {sample.height, sample.width};
  const auto graph = frozen_graph(integers_->config.model, size, integers_->states, Contract::Int8);
  const auto x = graph.find("x");
  const auto image = segmentation::normalized(sample, integers_->normalization);
  RefTensor input = {graph.spec(x), {image.begin(), image.end()}};
  const auto values = evaluate_reference(graph, {{x, std::move(input)}});
  const auto& expected = values[graph.outputs()[0].value.index()].values;
  const auto actual = logits(2);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(actual[i], expected[i]) << i;
}

TEST_F(Quantized, weights_are_integers_and_few_scales) {
  std::size_t floats = 0;
  for (const auto& [name, tensor] : integers_->states) {
    if (tensor.dtype() == DType::F32) floats += tensor.spec().bytes();
  }
  EXPECT_EQ(floats, 2 * sizeof(float));  // of the input and of the logits' one channel
}

TEST_F(Quantized, wants_the_contract_of_its_weights) {
  EXPECT_EQ(machine_for(*integers_, "a", {}, false).contract, Contract::Int8);
  EXPECT_EQ(machine_for(*floats_, "a", {.contract = Contract::Bf16}, true).contract,
            Contract::Bf16);
  EXPECT_THAT([] { machine_for(*integers_, "a", {}, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("leave out the option contract")));
  EXPECT_THAT([] { machine_for(*floats_, "a", {.contract = Contract::Int8}, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("those that triptych quantize makes")));
}

TEST_F(Quantized, refuses_weights_of_another_kind) {
  const DeviceSet machine({.contract = Contract::Int8});
  Predictor predictor(machine, floats_->config.model, floats_->states);
  const std::vector<float> image(64 * 64, 0.0F);
  EXPECT_THAT(
      [&] {
        predictor.logits(image, {64, 64});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the weights have no")));
}

TEST(QuantizeRun, refuses_a_model_that_int8_cannot_compute_before_any_work) {
  SavedRun run;
  run.config.model = model_preset("mlp");
  Graph graph = build_inference_graph(run.config.model, 1, 32, 32, 0);
  for (const auto id : graph.values_of(ValueKind::State)) {
    run.states.emplace(graph.value(id).name, graph.value(id).data->clone());
  }
  const DeviceSet machine({});
  EXPECT_THAT([&] { quantize_run(machine, run, {}, 100); },
              ThrowsMessage<UnsupportedError>(HasSubstr("which int8 cannot compute")));
}

TEST(Magnitudes, give_the_largest_exactly_and_percentiles_within_a_bin) {
  Magnitudes magnitudes;
  EXPECT_EQ(magnitudes.percentile(100), 0);
  EXPECT_EQ(magnitudes.percentile(99), 0);
  std::vector<float> values;
  for (int i = -500; i < 500; ++i) values.push_back(static_cast<float>(i));
  magnitudes.add(values);
  EXPECT_EQ(magnitudes.percentile(100), 500);
  for (const double percent : {50.0, 90.0, 99.0, 99.9}) {
    const double exact = 5 * percent;
    EXPECT_GE(magnitudes.percentile(percent), exact - 1);
    EXPECT_LE(magnitudes.percentile(percent), exact * 1.008 + 1);
  }
}

TEST(Magnitudes, count_what_is_not_finite_as_the_largest) {
  Magnitudes magnitudes;
  const std::vector<float> values = {1, 2, std::numeric_limits<float>::quiet_NaN()};
  magnitudes.add(values);
  EXPECT_FALSE(magnitudes.percentile(100) < std::numeric_limits<float>::infinity());
  EXPECT_LE(magnitudes.percentile(60), 2.02F);
}

TEST(SpreadSamples, takes_them_evenly_and_never_twice) {
  segmentation::Dataset dataset;
  dataset.samples.resize(10);
  const auto indices = [&](std::int64_t count) {
    std::vector<std::int64_t> result;
    for (const auto& sample : spread_samples(dataset, count)) {
      result.push_back(sample.get() - dataset.samples.data());
    }
    return result;
  };
  EXPECT_THAT(indices(4), ::testing::ElementsAre(0, 2, 5, 7));
  EXPECT_EQ(indices(100).size(), 10);
}

}  // namespace
}  // namespace triptych::training
