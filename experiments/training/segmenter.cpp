// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/segmenter.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "experiments/training/data/calibration.h"
#include "experiments/training/data/metrics.h"

namespace triptych::training {
namespace {

constexpr int kOrientations = 8;
constexpr int kTransposed = 4, kUpsideDown = 2, kMirrored = 1;

/// Calls `move(there, here)` with the place of each pixel in a plane of `size` and in its
/// orientation.
template <class Move>
void visit_oriented(segmentation::Size size, int index, const Move& move) {
  const auto to = oriented(size, index);
  for (std::int64_t y = 0; y < to.height; ++y) {
    for (std::int64_t x = 0; x < to.width; ++x) {
      const auto from_y = (index & kUpsideDown) != 0 ? to.height - 1 - y : y;
      const auto from_x = (index & kMirrored) != 0 ? to.width - 1 - x : x;
      const auto there =
          (index & kTransposed) != 0 ? from_x * size.width + from_y : from_y * size.width + from_x;
      move(static_cast<std::size_t>(there), static_cast<std::size_t>(y * to.width + x));
    }
  }
}

template <class Move>
std::vector<float> rearranged(std::span<const float> planes, segmentation::Size size, int index,
                              const Move& move) {
  std::vector<float> result(planes.size());
  const auto pixels = static_cast<std::size_t>(size.pixels());
  for (std::size_t plane = 0; plane < planes.size(); plane += pixels) {
    visit_oriented(size, index, [&](std::size_t there, std::size_t here) {
      move(result, plane + there, plane + here);
    });
  }
  return result;
}

std::vector<std::uint8_t> classes_from_probabilities(std::span<const float> probabilities,
                                                     std::int64_t channels) {
  if (channels > 1) return segmentation::classes_from_logits(probabilities, channels);
  std::vector<std::uint8_t> classes(probabilities.size());
  std::ranges::transform(probabilities, classes.begin(), [](float p) { return p > 0.5F; });
  return classes;
}

}  // namespace

segmentation::Size oriented(segmentation::Size size, int index) {
  if ((index & kTransposed) != 0) std::swap(size.height, size.width);
  return size;
}

std::vector<float> oriented(std::span<const float> planes, segmentation::Size size, int index) {
  return rearranged(planes, size, index, [&](auto& result, std::size_t there, std::size_t here) {
    result[here] = planes[there];
  });
}

std::vector<float> turned_back(std::span<const float> planes, segmentation::Size size, int index) {
  return rearranged(planes, size, index, [&](auto& result, std::size_t there, std::size_t here) {
    result[there] = planes[here];
  });
}

std::vector<float> Segmentation::probability_of(std::int64_t label) const {
  if (channels > 1) {
    const auto plane = probabilities.begin() + label * size.pixels();
    return {plane, plane + size.pixels()};
  }
  auto result = probabilities;
  if (label == 0) std::ranges::transform(result, result.begin(), [](float p) { return 1 - p; });
  return result;
}

Segmenter::Segmenter(Predictor& predictor, const SavedRun& run, const SegmenterOptions& options)
    : predictor_(predictor), run_(run), options_(options) {
  if (options.threshold && run.config.model.classes > 2) {
    throw InvalidArgument(
        fmt::format("the option threshold tells two classes apart, and the model has {}; leave it "
                    "out, and each pixel "
                    "gets its most probable class",
                    run.config.model.classes));
  }
}

Segmentation Segmenter::of_logits(std::span<const float> logits, segmentation::Size size) const {
  const auto channels = run_.config.model.classes;
  Segmentation result = {.size = size,
                         .channels = channels,
                         .probabilities = segmentation::probabilities_from_logits(logits, channels),
                         .classes = {}};
  if (options_.threshold) {
    apply_threshold(result);
  } else {
    result.classes = segmentation::classes_from_logits(logits, channels);
  }
  return result;
}

void Segmenter::apply_threshold(Segmentation& result) const {
  const auto of_class_1 = result.probability_of(1);
  result.classes.resize(of_class_1.size());
  std::ranges::transform(of_class_1, result.classes.begin(),
                         [&](float p) { return p > *options_.threshold; });
}

Segmentation Segmenter::segment(const segmentation::Sample& sample) {
  const segmentation::Size size = {sample.height, sample.width};
  const auto channels = run_.config.model.classes;
  auto image = segmentation::normalized(sample, run_.normalization);
  const auto logits = predictor_.logits(image, size);
  const bool flips = options_.test_time == TestTime::Flips;
  if (!flips) image = {};  // large pictures need its memory
  auto result = of_logits(logits, size);
  if (!flips) return result;
  auto& probabilities = result.probabilities;
  for (int index = 1; index < kOrientations; ++index) {
    const auto turned = predictor_.logits(oriented(image, size, index), oriented(size, index));
    const auto more =
        turned_back(segmentation::probabilities_from_logits(turned, channels), size, index);
    std::ranges::transform(probabilities, more, probabilities.begin(), std::plus<>());
  }
  std::ranges::transform(probabilities, probabilities.begin(),
                         [](float sum) { return sum / kOrientations; });
  if (options_.threshold) {
    apply_threshold(result);
  } else {
    result.classes = classes_from_probabilities(probabilities, channels);
  }
  return result;
}

void Segmenter::stream(segmentation::Size size,
                       const std::function<segmentation::Sample(const segmentation::Band&)>& read,
                       const std::function<void(const Segmentation&)>& take) {
  if (options_.test_time != TestTime::None)
    throw InvalidArgument(
        "an image in bands cannot be turned as a whole; leave out the option tta");
  predictor_.stream(
      size,
      [&](const segmentation::Band& rows) {
        return segmentation::normalized(read(rows), run_.normalization);
      },
      [&](const segmentation::Band& rows, std::span<const float> logits) {
        take(of_logits(logits, {rows.height, size.width}));
      });
}

std::int64_t Segmenter::stream_bytes(segmentation::Size size) const {
  // Samples, planes and normalised values, then logits, probabilities, those of a class, and
  // classes.
  const auto& model = run_.config.model;
  return predictor_.band_height(size) * size.width *
         (3 * 4 * model.in_channels + 3 * 4 * model.classes + 1);
}

}  // namespace triptych::training
