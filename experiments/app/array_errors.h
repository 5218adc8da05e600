// Exceptions of the systolic project, which does not use core, as exceptions of the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace triptych::app {

/// Calls it. Wrong files and options become InvalidArgument and IoError, wrong hardware
/// NumericError, and missing hardware DeviceError.
void with_array_errors(const std::function<void()>& call);

}  // namespace triptych::app
