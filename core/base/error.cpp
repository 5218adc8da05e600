// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace triptych {

void throw_invalid(std::string_view op, const std::string& message) {
  throw InvalidArgument("[" + std::string(op) + "] " + message);
}

namespace internal {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: Triptych bug: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace internal
}  // namespace triptych
