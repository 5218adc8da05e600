// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/output.h"

#include <fmt/core.h>

namespace triptych::app {

void print_document(std::string_view command, Json results) {
  fmt::print("{}\n", document(command, std::move(results)).dump(2));
}

}  // namespace triptych::app
