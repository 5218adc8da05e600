// The interface of plugins: shared libraries that add backends and kernels to a program.
// docs/guides/add-a-backend.md shows one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/runtime/device.h"
#include "core/runtime/kernel.h"

namespace triptych {

struct PluginKernel {
  std::string_view backend;  ///< name of the backend whose devices run it
  KernelEntry entry;
};

/// The backends and kernels of a plugin. Names and objects live as long as the process.
struct PluginParts {
  std::vector<const Backend*> backends;
  /// Placement asks them in this order, before the backend's own kernels.
  std::vector<PluginKernel> kernels;
};

}  // namespace triptych

/// A plugin defines this function. It is called once, after the interface was compared.
extern "C" void triptych_plugin_parts(triptych::PluginParts& parts);
