// From an image to probabilities and classes, with optional steps between: a threshold, and the
// mean over the image's orientations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "experiments/training/predictor.h"
#include "experiments/training/run_folder.h"

namespace triptych::training {

/// Augmentation of the image that is predicted.
enum class TestTime : std::uint8_t {
  None,
  /// Probabilities are the mean over the image as it is, mirrored and transposed: 8 predictions,
  /// each turned back.
  Flips,
};

struct SegmenterOptions {
  TestTime test_time = TestTime::None;
  /// Class 1 where its probability is above, for models of two classes alone. Without it the most
  /// probable class, of equals the first.
  std::optional<float> threshold = {};
};

struct Segmentation {
  segmentation::Size size;
  std::int64_t channels = 1;         ///< 1: of class 1 alone
  std::vector<float> probabilities;  ///< [channels, height, width]
  std::vector<std::uint8_t> classes;

  /// The probability of `label` at each pixel.
  std::vector<float> probability_of(std::int64_t label) const;
};

class Segmenter {
 public:
  /// Throws InvalidArgument for a threshold that the model has no use for. All must outlive it.
  Segmenter(Predictor& predictor, const SavedRun& run, const SegmenterOptions& options = {});

  Segmentation segment(const segmentation::Sample& sample);
  /// The same band by band, for an image with rows that `read` returns as a sample of the network's
  /// channels. Throws InvalidArgument for augmentation, which needs it whole.
  void stream(segmentation::Size size,
              const std::function<segmentation::Sample(const segmentation::Band&)>& read,
              const std::function<void(const Segmentation&)>& take);
  /// Most bytes that stream() holds of an image, besides the network's.
  std::int64_t stream_bytes(segmentation::Size size) const;

 private:
  /// Probabilities and classes of a network's output.
  Segmentation of_logits(std::span<const float> logits, segmentation::Size size) const;
  void apply_threshold(Segmentation& result) const;

  Predictor& predictor_;
  const SavedRun& run_;
  SegmenterOptions options_;
};

/// Planes [channels, size] in orientation `index` from 0 to 7: transposed when it has bit 4, then
/// mirrored top to bottom by bit 2 and left to right by bit 1. Size: that of the result.
std::vector<float> oriented(std::span<const float> planes, segmentation::Size size, int index);
segmentation::Size oriented(segmentation::Size size, int index);
/// Takes oriented() back. `size` is that of the result.
std::vector<float> turned_back(std::span<const float> planes, segmentation::Size size, int index);

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::TestTime> =
    std::to_array<std::pair<training::TestTime, std::string_view>>(
        {{training::TestTime::None, "none"}, {training::TestTime::Flips, "flips"}});

}  // namespace triptych
