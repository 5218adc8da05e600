// Gives every value its place in the memory of each device that holds it.
//
// Memory is owned by a *root*: a view belongs to its input's root, an update to its state. Roots
// may share further: the inputs of a concat in place lie in its output, and a kernel may write over
// an input that dies at its node. What is left are blocks with a first and a last step, packed into
// one arena per device, with the scratch of each step at its start while the step runs. Inputs,
// outputs of the graph and copies of states live through the whole run, so that a run can be
// repeated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/concat_in_place.h"
#include "core/runtime/plan.h"

namespace triptych {

/// Fills `locations`, `arena_bytes`, `state_bytes` and `constant_bytes`; everything that
/// plan_crossings needs and fills must be set, and kernels prepared. `parts` are the values that
/// concats in place own.
void plan_memory(Plan& plan, const ConcatParts& parts);

}  // namespace triptych
