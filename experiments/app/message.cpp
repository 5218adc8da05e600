// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/message.h"

#include <regex>

namespace triptych::app {

std::string with_dashes(const std::string& message) {
  static const std::regex option("\\bthe option ([a-z])");
  return std::regex_replace(message, option, "--$1");
}

}  // namespace triptych::app
