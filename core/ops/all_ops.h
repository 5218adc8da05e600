// The one list of operators: schema table, conformance matrix, documentation and import come from
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace triptych {

/// A prototype of every operator, with default attributes, in the order of the reference manual.
std::span<const OpPtr> all_ops();

/// The prototype of that name. Throws InvalidArgument when there is none.
const Op& find_op(std::string_view name);

}  // namespace triptych
