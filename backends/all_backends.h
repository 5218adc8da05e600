// Every backend of this build, in the order of the list in CMakeLists.txt. Each appends its own in
// a function `void add_FOLDER_backends(std::vector<const Backend*>& list)`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/runtime/device.h"

namespace triptych {

/// Every backend of this build, available or not, in the order of the documentation.
std::span<const Backend* const> all_backends();

/// The backend of that name. Throws InvalidArgument with the names that exist.
const Backend& find_backend(std::string_view name);

/// Opens a device of the backend of that name. Throws InvalidArgument for an unknown name and
/// DeviceError when the backend is not available here.
std::unique_ptr<Device> open_device(std::string_view backend, const DeviceOptions& options = {});

}  // namespace triptych
