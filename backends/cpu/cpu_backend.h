// The CPU as a backend: threads, SIMD chosen at run time. One team of threads per device, so that
// several CPU devices with thread counts of their own share a process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/device.h"

namespace triptych::cpu {

/// The CPU backend, always available.
const Backend& backend();

/// Every kernel of this backend, those of one operator best first.
KernelTable kernel_table();

}  // namespace triptych::cpu
