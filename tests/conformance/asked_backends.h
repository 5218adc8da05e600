// The backends that a run of the conformance tests asks for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <cstdlib>
#include <string>

namespace triptych::conformance {

/// True when the backend is in TRIPTYCH_TEST_BACKENDS, a list with commas, or that is not set.
inline bool is_asked(const std::string& name) {
  const char* asked = std::getenv("TRIPTYCH_TEST_BACKENDS");
  return asked == nullptr || fmt::format(",{},", asked).find("," + name + ",") != std::string::npos;
}

}  // namespace triptych::conformance
