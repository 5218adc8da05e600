// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::cuda {

/// A kernel as what `launch` takes when it is to know which instance of a template it launches:
/// registers.csv lists the registers of those, and occupancy is theirs.
template <auto* kKernel>
struct KernelInstance {};
template <auto* kKernel>
inline constexpr KernelInstance<kKernel> kInstance = {};

}  // namespace triptych::cuda
