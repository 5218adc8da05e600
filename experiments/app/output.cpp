// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/output.h"

#include "core/base/speech.h"

namespace triptych::app {

void print_document(std::string_view command, Json results) {
  print_text("{}\n", document(command, std::move(results)).dump(2));
}

}  // namespace triptych::app
