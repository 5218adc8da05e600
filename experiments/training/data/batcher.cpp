// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/batcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "experiments/training/data/sample_reader.h"

namespace triptych::segmentation {
namespace {

// Streams of one seed: sample k has stream k, the other uses count down from the top.
constexpr std::uint64_t kOrderStreams = std::uint64_t{1} << 63;
constexpr std::uint64_t kChoiceStreams = std::uint64_t{1} << 62;

/// The order of `size` samples in one epoch (Fisher and Yates).
std::vector<std::size_t> order_of_epoch(std::uint64_t seed, std::int64_t epoch, std::size_t size) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream random(seed, kOrderStreams + static_cast<std::uint64_t>(epoch));
  for (std::size_t i = size; i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  return order;
}

/// Whether the sample fills its rows of a batch, and names no class that the data set has not.
void require_whole(const Dataset& dataset, const Sample& sample) {
  if (dataset.arrays) return;  // which have a row for each
  const auto pixels = sample.pixels();
  if (sample.channels != dataset.channels || std::ssize(sample.image) != pixels * sample.channels ||
      std::ssize(sample.labels) != pixels) {
    throw_invalid("batcher",
                  fmt::format("\"{}\" has {} values and {} labels; {} x {} pixels of {} channels "
                              "need {} and {}",
                              sample.name, sample.image.size(), sample.labels.size(), sample.height,
                              sample.width, dataset.channels, pixels * dataset.channels, pixels));
  }
  const auto classes = std::max<std::int64_t>(2, dataset.classes);
  if (sample.weights.empty() != dataset.samples[0].weights.empty() ||
      (!sample.weights.empty() && sample.weights.size() != sample.labels.size())) {
    throw_invalid("batcher", fmt::format("\"{}\" has {} weights of {} labels; all samples have "
                                         "weights or none",
                                         sample.name, sample.weights.size(), sample.labels.size()));
  }
  int most = 0;
  for (const auto label : sample.labels)
    if (label != kIgnored || sample.weights.empty()) most = std::max(most, int{label});
  if (most >= classes) {
    throw_invalid("batcher", fmt::format("\"{}\" has a pixel of class {}; there are {} classes",
                                         sample.name, most, classes));
  }
}

/// A tensor of so many rows of `array`.
Tensor rows_like(const Tensor& array, std::int64_t count) {
  auto dims = array.shape().dims();
  dims.front() = count;
  return Tensor(TensorSpec{array.dtype(), Shape(std::move(dims))});
}

/// Copies row `from` of `array` to row `to`.
void copy_row(const Tensor& array, std::size_t from, Tensor& rows, std::int64_t to) {
  const auto bytes = array.bytes().size() / static_cast<std::size_t>(array.shape()[0]);
  const auto source = array.bytes().subspan(from * bytes, bytes);
  std::ranges::copy(source, rows.bytes().begin() + to * static_cast<std::ptrdiff_t>(bytes));
}

/// The arrays' rows of samples.
Batch gather(const Dataset& dataset, const std::vector<std::size_t>& elements) {
  const auto& arrays = *dataset.arrays;
  const auto count = std::ssize(elements);
  Batch batch;
  batch.y = rows_like(arrays.target, count);
  std::vector<Tensor> inputs;
  for (const auto& array : arrays.inputs) inputs.push_back(rows_like(array, count));
  for (std::int64_t b = 0; b < count; ++b) {
    const auto place = dataset.samples[elements[static_cast<std::size_t>(b)]].place;
    copy_row(arrays.target, place, batch.y, b);
    for (std::size_t i = 0; i < inputs.size(); ++i) copy_row(arrays.inputs[i], place, inputs[i], b);
  }
  if (inputs.empty()) return batch;
  batch.x = std::move(inputs.front());
  inputs.erase(inputs.begin());
  batch.others = std::move(inputs);
  return batch;
}

}  // namespace

void require_batch(const Batch& batch, std::int64_t classes) {
  require_intensities(batch.x.as<float>());
  const auto most = std::max<std::int64_t>(2, classes) - 1;
  const auto refuse = [&](const auto& value) {
    throw InvalidArgument(
        fmt::format("its target has the value {}, which is no class: they are 0 to {}{}", value,
                    most, classes > 1 ? fmt::format(", and {} where none counts", kNoClass) : ""));
  };
  if (batch.y.dtype() == DType::F32) {
    for (const auto value : batch.y.as<float>())
      if (!(value >= 0 && value <= static_cast<float>(most) && value == std::floor(value)))
        refuse(value);
    return;
  }
  for (const auto value : batch.y.as<std::int64_t>())
    if (value != kNoClass && (value < 0 || value > most)) refuse(value);
}

Tensor middle_of(const Sample& picture, const Normalization& normalization, std::int64_t side) {
  AugmentOptions middle = {.height = side, .width = side};
  middle.random_crop = middle.flip_x = middle.flip_y = middle.transpose = false;
  RandomStream unused(0, 0);
  const auto values = normalized(augment(picture, middle, unused), normalization);
  return {Shape{1, picture.channels, side, side}, values};
}

Batch batch_of(const Dataset& dataset, std::size_t i, const Normalization& normalization,
               std::int64_t side) {
  auto batch = gather(dataset, {i});
  if (dataset.arrays->inputs.empty()) batch.x = middle_of(*dataset.whole(i), normalization, side);
  return batch;
}

Batcher::Batcher(const Dataset& dataset, const Normalization& normalization, BatcherOptions options)
    : dataset_(dataset), normalization_(normalization), options_(std::move(options)) {
  options_.augment.intensity.deviation = normalization.deviation;
  validate(options_.augment);
  if (dataset.samples.empty()) throw_invalid("batcher", "the data set is empty");
  // Those that a cache reads are whole as they come.
  if (!dataset.cache)
    for (const auto& sample : dataset.samples) require_whole(dataset, sample);
  weighted_ = !dataset.arrays && !dataset.whole(0)->weights.empty();
}

std::size_t Batcher::element(std::int64_t k) const {
  const auto size = std::ssize(dataset_.samples);
  if (options_.drawing == Drawing::WithReplacement) {
    RandomStream random(options_.seed, kChoiceStreams + static_cast<std::uint64_t>(k));
    return static_cast<std::size_t>(random.below(size));
  }
  const auto order = order_of_epoch(options_.seed, k / size, static_cast<std::size_t>(size));
  return order[static_cast<std::size_t>(k % size)];
}

Sample Batcher::patch(std::int64_t k) const {
  RandomStream random(options_.seed, static_cast<std::uint64_t>(k));
  return augment(*dataset_.whole(element(k)), options_.augment, random);
}

Batch Batcher::draw_arrays(std::int64_t first, std::int64_t count) const {
  std::vector<std::size_t> elements;
  for (std::int64_t b = 0; b < count; ++b) elements.push_back(element(first + b));
  auto batch = gather(dataset_, elements);
  if (!dataset_.arrays->inputs.empty()) return batch;
  batch.x = blank_images(count);
  for (std::int64_t b = 0; b < count; ++b) set_image(batch, b, patch(first + b));
  return batch;
}

Tensor Batcher::blank_images(std::int64_t count) const {
  const auto& augment = options_.augment;
  return Tensor(TensorSpec{DType::F32, {count, dataset_.channels, augment.height, augment.width}});
}

void Batcher::set_image(Batch& batch, std::int64_t b, const Sample& patch) const {
  const auto values = normalized(patch, normalization_);
  std::ranges::copy(values, batch.x.as<float>().begin() + b * std::ssize(values));
}

Batch Batcher::draw(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 1) throw_invalid("batcher", "needs first >= 0 and count >= 1");
  if (dataset_.arrays) return draw_arrays(first, count);
  const auto height = options_.augment.height, width = options_.augment.width;
  const bool binary = dataset_.classes == 1;
  Batch batch;
  batch.x = blank_images(count);
  batch.y = weighted_ ? Tensor(TensorSpec{DType::F32, {count, 2, height, width}})
            : binary  ? Tensor(TensorSpec{DType::F32, {count, 1, height, width}})
                      : Tensor(TensorSpec{DType::I64, {count, height, width}});
  for (std::int64_t b = 0; b < count; ++b) {
    const auto patch = this->patch(first + b);
    set_image(batch, b, patch);
    const auto offset = b * patch.pixels();
    if (weighted_) {
      const auto y = batch.y.as<float>().subspan(static_cast<std::size_t>(2 * offset));
      std::ranges::copy(patch.labels, y.begin());
      std::ranges::copy(patch.weights, y.begin() + patch.pixels());
    } else if (binary) {
      std::ranges::copy(patch.labels, batch.y.as<float>().begin() + offset);
    } else {
      std::ranges::copy(patch.labels, batch.y.as<std::int64_t>().begin() + offset);
    }
  }
  return batch;
}

}  // namespace triptych::segmentation
