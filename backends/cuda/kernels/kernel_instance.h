// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::cuda {

/// A kernel in the form that `launch` needs to identify the instance of a template: registers.csv
/// lists the registers of instances, and occupancy depends on them.
template <auto* kKernel>
struct KernelInstance {};
template <auto* kKernel>
inline constexpr KernelInstance<kKernel> kInstance = {};

}  // namespace triptych::cuda
