// The user's kernels of `triptych page gpu my.cu`. A build without the part "kernels" has none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "experiments/app/options.h"

namespace triptych::app {

/// A file and its launches.
struct OwnKernels;

std::shared_ptr<OwnKernels> make_own_kernels();
/// The options that describe them.
void add_own_kernels(Command& command, OwnKernels& own);
/// True when the user gave a file.
bool has_file(const OwnKernels& own);
/// Runs the kernels. Returns their page.
std::string own_kernel_page(const OwnKernels& own);

}  // namespace triptych::app
