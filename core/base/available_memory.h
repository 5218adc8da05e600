// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace triptych {

/// Bytes that the system can give without ending a process. The largest number where it does not
/// say.
std::size_t available_memory();

}  // namespace triptych
