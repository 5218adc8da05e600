// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/batcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"

namespace triptych::segmentation {
namespace {

using ::testing::Each;

/// Sample i is constant: value i, label i % 2.
Dataset constants(int count) {
  Dataset dataset;
  for (int i = 0; i < count; ++i) {
    Sample sample{std::to_string(i), "", 1, 4, 6, {}, {}};
    sample.image.assign(24, static_cast<float>(i));
    sample.labels.assign(24, static_cast<std::uint8_t>(i % 2));
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

BatcherOptions options_of(Drawing drawing, std::uint64_t seed = 0) {
  return {.augment = {.height = 2, .width = 3}, .drawing = drawing, .seed = seed};
}

TEST(Batcher, binary_batches_hold_normalised_images_and_float_targets) {
  const auto dataset = constants(5);
  const Batcher batcher(dataset, {{2}, {0.5F}}, options_of(Drawing::Epochs));
  const auto batch = batcher.draw(0, 5);
  EXPECT_EQ(batch.x.spec(), (TensorSpec{DType::F32, {5, 1, 2, 3}}));
  EXPECT_EQ(batch.y.spec(), (TensorSpec{DType::F32, {5, 1, 2, 3}}));
  for (std::int64_t b = 0; b < 5; ++b) {
    const auto i = batcher.element(b);
    EXPECT_THAT(batch.x.as<float>().subspan(static_cast<std::size_t>(6 * b), 6),
                Each((static_cast<float>(i) - 2) / 0.5F));
    EXPECT_THAT(batch.y.as<float>().subspan(static_cast<std::size_t>(6 * b), 6), Each(i % 2));
  }
}

TEST(Batcher, many_classes_give_integer_labels) {
  auto dataset = constants(2);
  dataset.classes = 3;
  const auto batch = Batcher(dataset, {}, options_of(Drawing::Epochs)).draw(0, 2);
  EXPECT_EQ(batch.y.spec(), (TensorSpec{DType::I64, {2, 2, 3}}));
}

TEST(Batcher, samples_that_do_not_fill_their_rows_are_refused) {
  const auto refused = [](const auto& change) {
    auto dataset = constants(2);
    change(dataset, dataset.samples[1]);
    EXPECT_THROW(Batcher(dataset, {}, options_of(Drawing::Epochs)), InvalidArgument);
  };
  refused([](Dataset&, Sample& sample) { sample.image.pop_back(); });
  refused([](Dataset&, Sample& sample) { sample.labels.clear(); });
  refused([](Dataset& dataset, Sample&) { dataset.channels = 3; });
  refused([](Dataset& dataset, Sample& sample) {
    dataset.classes = 3;
    sample.labels.back() = 3;
  });
}

TEST(Batcher, an_epoch_draws_every_sample_once_in_its_own_order) {
  const auto dataset = constants(20);
  const Batcher batcher(dataset, {}, options_of(Drawing::Epochs));
  std::set<std::vector<std::size_t>> orders;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::size_t> order;
    for (std::int64_t k = 0; k < 20; ++k) order.push_back(batcher.element(20 * epoch + k));
    orders.insert(order);
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), 20u);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(Batcher, drawing_with_replacement_is_uniform) {
  const auto dataset = constants(10);
  const Batcher batcher(dataset, {}, options_of(Drawing::WithReplacement));
  std::vector<int> counts(10);
  for (std::int64_t k = 0; k < 10000; ++k) ++counts[batcher.element(k)];
  // Six standard deviations of a binomial count.
  EXPECT_THAT(counts, Each(::testing::AllOf(::testing::Gt(820), ::testing::Lt(1180))));
}

TEST(Batcher, samples_do_not_depend_on_how_they_are_batched) {
  Dataset dataset = constants(7);
  for (auto& sample : dataset.samples) {
    for (std::size_t i = 0; i < 24; ++i) sample.image[i] += 0.01F * static_cast<float>(i);
  }
  for (const auto drawing : {Drawing::Epochs, Drawing::WithReplacement}) {
    auto options = options_of(drawing, 3);
    options.augment.elastic_sigma = 1;
    const Batcher batcher(dataset, {}, options);
    const auto whole = batcher.draw(8, 8);
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      const auto part = Batcher(dataset, {}, options).draw(8 + 2 * rank, 2);
      const auto expected = whole.x.as<float>().subspan(static_cast<std::size_t>(12 * rank), 12);
      EXPECT_TRUE(std::ranges::equal(part.x.as<float>(), expected));
    }
    const Batcher other(dataset, {}, options_of(drawing, 4));
    EXPECT_FALSE(std::ranges::equal(other.draw(8, 8).x.as<float>(), whole.x.as<float>()));
  }
}

TEST(Batcher, refuses_an_empty_data_set_and_empty_batches) {
  const Dataset empty;
  EXPECT_THROW(Batcher(empty, {}, {}), InvalidArgument);
  const auto dataset = constants(1);
  EXPECT_THROW(Batcher(dataset, {}, {}).draw(0, 0), InvalidArgument);
  EXPECT_THROW(Batcher(dataset, {}, {}).draw(-1, 1), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation
