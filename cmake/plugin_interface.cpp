// Compiled into each plugin by triptych_add_plugin: the interface that it was built for. The loader
// finds this text in the file before any code of the plugin runs.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plugin_interface.h"

extern "C" {
extern const decltype(triptych::kPluginInterface) triptych_plugin_interface;
const decltype(triptych::kPluginInterface) triptych_plugin_interface = triptych::kPluginInterface;
}
