// Cases that only the compiled kernels need in addition to the conformance cases: instances of
// templates with the same source for another dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/conformance/op_case.h"

namespace triptych::conformance {

void add_more_cases(std::vector<OpCase>& cases);

}  // namespace triptych::conformance
