// Activations that stay in the unified buffer between two programs that run one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "backends/systolic/lowering/stream_plan.h"

namespace triptych::systolic {

/// Both anew so that `producer` leaves its result in the buffer and `consumer`, whose streamed
/// operand it is, reads it there. The result must be of use to nobody else, and no other program
/// may run between the two. Nothing where the layouts do not match, the buffer is too small, or the
/// two would take longer than they do.
std::optional<std::pair<Lowered, Lowered>> keep_between(const Lowered& producer,
                                                        const Lowered& consumer,
                                                        const PlanLowering& lowering);

}  // namespace triptych::systolic
