// Exceptions of the systolic room, which knows nothing of core, as those of the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace triptych::app {

/// Calls it. Wrong files and options leave as InvalidArgument and IoError, hardware that is wrong
/// as NumericError, what is not there as DeviceError.
void with_array_errors(const std::function<void()>& call);

}  // namespace triptych::app
