// Every backend: those of this build, in the order of the list in CMakeLists.txt, then those of
// plugins. Each directory of the list appends its own in a function
// `void add_FOLDER_backends(std::vector<const Backend*>& list)`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "core/runtime/device.h"

namespace triptych {

/// Every backend, available or not, in the order of the documentation.
std::vector<const Backend*> all_backends();

/// The backend of that name. Throws InvalidArgument with the names that exist.
const Backend& find_backend(std::string_view name);

/// Opens a device of the backend of that name, with the kernels that plugins have added to it.
/// Throws InvalidArgument for an unknown name and DeviceError when the backend is not available
/// here.
std::unique_ptr<Device> open_device(std::string_view backend, const DeviceOptions& options = {});

/// Loads a plugin (core/runtime/plugin.h), which stays until the process ends. Its code runs in
/// this process, without confinement. A second call for one file has no effect. Throws
/// InvalidArgument for a file that is not a plugin for the interface of this build, and for parts
/// that do not fit.
void load_plugin(const std::filesystem::path& file);

}  // namespace triptych
