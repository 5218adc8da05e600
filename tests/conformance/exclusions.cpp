// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exclusions.h"

namespace triptych::conformance {

std::span<const Exclusion> unsupported() { return {}; }

std::span<const Exclusion> expected_failures() { return {}; }

const Exclusion* find_exclusion(std::span<const Exclusion> list, std::string_view backend,
                                const OpCase& test, Contract contract) {
  for (const auto& entry : list) {
    if (entry.backend == backend && entry.op == test.op->name() &&
        (entry.case_name.empty() || entry.case_name == test.name) &&
        (!entry.contract || *entry.contract == contract)) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace triptych::conformance
