// Messages of the libraries, which name "the option batch", as the command line says them:
// "--batch".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace triptych::app {

std::string with_dashes(const std::string& message);

}  // namespace triptych::app
