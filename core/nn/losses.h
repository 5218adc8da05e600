// Losses of segmentation made of operators: cross-entropy, Dice and their sum, of one or more
// classes, each pixel with a weight or all alike.
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
};

template <>
inline constexpr auto kNamesOf<LossKind> = std::to_array<std::pair<LossKind, std::string_view>>(
    {{LossKind::CrossEntropy, "cross-entropy"},
     {LossKind::Dice, "dice"},
     {LossKind::DiceCrossEntropy, "dice-cross-entropy"}});

/// The spec of what segmentation_loss compares logits [N, C, H, W] with. C = 1: f32 [N, 1, H, W], 0
/// or 1; else i64 [N, H, W], the class. Weighted: f32 [N, 2, H, W], the class and its pixel's
/// weight.
TensorSpec target_spec(const TensorSpec& logits, bool weighted);

/// Adds the loss, a scalar. C = 1 is class 1 against the rest, by a sigmoid; else classes by a
/// softmax.
///   cross-entropy  = mean over pixels of w (-log p[class])
///   Dice           = 1 - mean over classes c of (2 sum w p z + 1) / (sum w p + sum w z + 1), z: is
///                    the pixel of class c; sums over all pixels of the batch; of more than one
///                    class 0, the background, does not count (Milletari et al., 2016; nnU-Net)
/// A pixel of weight 0 counts nowhere. The mean weight should be 1, or the two halves of a sum are
/// not in proportion.
ValueId segmentation_loss(Graph& graph, LossKind kind, ValueId logits, ValueId target,
                          bool weighted);

}  // namespace triptych
