// Pictures of the input, the truth and the prediction of a model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/io/image.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

/// Grey levels from black to white for classes 0 .. classes - 1. Pixels that are ignored are a
/// chessboard of both.
std::vector<std::uint16_t> label_panel(std::span<const std::uint8_t> labels, std::int64_t width,
                                       std::int64_t classes);

/// Grey levels of a channel: 0 is black, 1 or, where all is darker than half of it, the largest of
/// the image white. Where values lie beyond, its least and its largest.
std::vector<std::uint16_t> image_panel(const Sample& sample, std::int64_t channel);

/// The colours of an image with three channels, else its first channel in grey (image_panel).
Image input_picture(const Sample& sample);

/// label_panel as a grey picture.
Image label_picture(std::span<const std::uint8_t> labels, std::int64_t height, std::int64_t width,
                    std::int64_t classes);

/// Input, truth and prediction in colours, with white lines between. In the prediction, pixels are
/// red where the truth is class 0, blue where it is a class but the prediction is class 0, and
/// yellow where both are different classes.
Image truth_and_prediction(const Sample& sample, std::span<const std::uint8_t> predicted,
                           std::int64_t classes);

}  // namespace triptych::segmentation
