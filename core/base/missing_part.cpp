// SPDX-License-Identifier: Apache-2.0
#include "core/base/missing_part.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace triptych {

void throw_missing_part(std::string_view part) {
  std::string option(part);
  std::ranges::transform(option, option.begin(),
                         [](char letter) { return static_cast<char>(letter - 'a' + 'A'); });
  const std::string folder = TRIPTYCH_BUILD_FOLDER;
  throw UnsupportedError("this build has no part \"" + std::string(part) +
                         "\"; add it with: cmake " + folder + " -DTRIPTYCH_PART_" + option +
                         "=ON && cmake --build " + folder + " --target triptych");
}

}  // namespace triptych
