// Exclusions of a backend: two different lists, each entry with its reason.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/contract.h"
#include "core/conformance/op_case.h"

namespace triptych::conformance {

/// One entry. An empty case or contract stands for all of them. The systolic backend on an array of
/// int8 counts as one of its own, systolic-int8.
struct Exclusion {
  std::string_view backend;
  std::string_view op;
  std::string_view case_name;
  std::optional<Contract> contract;
  std::string_view reason;
};

/// Cases that a backend can never run. A run that succeeds fails the test.
std::span<const Exclusion> unsupported();

/// Cases that run and give wrong results. The list must shrink. An unexpected pass fails the test.
std::span<const Exclusion> expected_failures();

/// The entry that covers this case, or nullptr.
const Exclusion* find_exclusion(std::span<const Exclusion> list, std::string_view backend,
                                const OpCase& test, Contract contract);

}  // namespace triptych::conformance
