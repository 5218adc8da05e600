// The commands of the part "pages" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

std::vector<Command> add_web_pages(Command& page, Context&) {
  std::vector<Command> pages;
  for (const auto& each : {kGpuPage, kCollectivesPage})
    pages.push_back(add_absent_command(page, each, "pages"));
  return pages;
}

}  // namespace triptych::app
