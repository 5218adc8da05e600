// Cross-entropy of a network's output, computed in float64 on the processor: the cost of a
// prediction in nats per pixel, equal on every machine and for every training loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace triptych::segmentation {

/// Cross-entropy of pixel `i` of logits [channels, pixels] with class `label`.
double log_loss_at(std::span<const float> logits, std::size_t pixels, std::size_t i,
                   std::int64_t label);

/// Mean over the pixels of `target` that are not ignored, 0 when all are. `logits` is [channels,
/// pixels]. One channel is the logit of class 1. Throws InvalidArgument when the sizes differ.
double log_loss(std::span<const float> logits, std::span<const std::uint8_t> target,
                std::int64_t channels);

}  // namespace triptych::segmentation
