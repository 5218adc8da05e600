// Losses made of operators: cross-entropy of pixels, images and tokens, Dice of pixels, and their
// sum, for one or more classes, with one weight per pixel or with equal weights. Also the mean
// squared error of values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/base/choice.h"
#include "core/graph/graph.h"

namespace triptych {

enum class LossKind {
  CrossEntropy,
  Dice,
  DiceCrossEntropy,  ///< their sum
  MeanSquaredError,  ///< of values, not of classes
};

template <>
inline constexpr auto kNamesOf<LossKind> = std::to_array<std::pair<LossKind, std::string_view>>(
    {{LossKind::CrossEntropy, "cross-entropy"},
     {LossKind::Dice, "dice"},
     {LossKind::DiceCrossEntropy, "dice-cross-entropy"},
     {LossKind::MeanSquaredError, "mean-squared-error"}});

/// Which axis of logits has the classes: [N, C], [N, tokens, C], [N, C, H, W].
std::size_t class_axis(const Shape& logits);

/// The spec of the target that `loss` compares with logits [N, C, H, W]. C = 1: f32 [N, 1, H, W], 0
/// or 1. Otherwise i64 [N, H, W], the class. Weighted: f32 [N, 2, H, W], the class and its pixel's
/// weight. Likewise for logits of other axes (class_axis), without the axis of the classes. Values
/// are compared with values of the same spec.
TensorSpec target_spec(const TensorSpec& logits, LossKind loss, bool weighted);

/// Adds the loss, a scalar. C = 1 is class 1 against the rest, by a sigmoid. More classes use a
/// softmax.
///   cross-entropy  = mean over pixels of w (-log p[class])
///   Dice           = 1 - mean over classes c of (2 sum w p z + 1) / (sum w p + sum w z + 1), z: is
///                    the pixel of class c, with sums over all pixels of the batch. Class 0 of
///                    several, the background, does not count (Milletari et al., 2016; nnU-Net)
/// A pixel of weight 0 counts nowhere. The mean weight should be 1, or the two halves of a sum are
/// not in proportion. Cross-entropy also takes logits of other axes (class_axis) and ignores
/// elements with an invalid class. Mean squared error, the mean of (y - target)^2, takes any.
/// Throws InvalidArgument for weights and Dice of logits that are no maps.
ValueId training_loss(Graph& graph, LossKind kind, ValueId logits, ValueId target, bool weighted);

}  // namespace triptych
