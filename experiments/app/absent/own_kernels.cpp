// The user's kernels of `page gpu` in a build without the part "kernels".
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/own_kernels.h"

namespace triptych::app {

struct OwnKernels {};

std::shared_ptr<OwnKernels> make_own_kernels() { return std::make_shared<OwnKernels>(); }
void add_own_kernels(Command&, OwnKernels&) {}
bool has_file(const OwnKernels&) { return false; }
std::string own_kernel_page(const OwnKernels&) { return {}; }

}  // namespace triptych::app
