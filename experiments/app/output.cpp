// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/output.h"

#include "core/base/console.h"
#include "experiments/page/page.h"

namespace triptych::app {

namespace {

bool has_printed = false;

}  // namespace

void print_json(const Json& document) {
  has_printed = true;
  print_text("{}\n", document.dump(2));
}

void print_document(std::string_view command, Json results) {
  print_json(document(command, std::move(results)));
}

void print_error_document(std::string_view command, int exit_code, std::string_view message) {
  if (has_printed) return;
  auto failed = document(command, Json());
  failed.erase("results");
  failed["error"] = page::valid_text({{"exit_code", exit_code}, {"message", message}});
  print_json(failed);
}

}  // namespace triptych::app
