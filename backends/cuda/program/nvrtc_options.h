// Options of nvrtcCompileProgram.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "backends/cuda/program/module_builder.h"

namespace triptych::cuda::program {

/// Adds the options to the request. The mistake in one of them, or an empty text.
std::string read_nvrtc_options(std::span<const char* const> options, ModuleRequest& request);

}  // namespace triptych::cuda::program
