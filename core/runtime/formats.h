// Chooses how activations are stored: as planes, or channels last (float32 as bfloat16). Fewer
// bytes pass between the kernels then, and none of them transposes or rounds its operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/runtime/memory_plan.h"

namespace triptych {

/// The activations whose producer and readers all take them channels last, on one device. Inputs,
/// states and outputs of the graph, views and updates stay planes. Concats of channels are then
/// written in place, and slices of channels are read in place. ChannelsLastOperands states when a
/// kernel may take a value so.
StoragePlan choose_formats(const Graph& graph, std::span<const NodePlacement> placements,
                           const PlacementOptions& options);

/// The format of a value of this type and shape when it is stored channels last. None: it has none.
std::optional<ChannelsLast> channels_last_format(const TensorSpec& spec);

/// The float32 planes of a value that is stored as bfloat16, from its bytes in memory.
void planes_from_channels_last(const Shape& shape, const ChannelsLast& format,
                               std::span<const std::byte> stored, std::span<float> planes);

}  // namespace triptych
