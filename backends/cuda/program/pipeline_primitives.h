// Asynchronous copies of a thread in groups, as cp.async has them: <cuda_pipeline.h>.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)

/// Copies 4, 8 or 16 bytes to shared memory. The last `zeros` of them are not read and become 0.
TRIPTYCH_UNWATCHED inline void __pipeline_memcpy_async(
    void* to, const void* from, std::size_t bytes, std::size_t zeros = 0,
    const triptych::cuda::emulation::Location& where =
        triptych::cuda::emulation::Location::current()) {
  const auto* services = triptych::cuda::plain::services;
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes) {
    services->fail("__pipeline_memcpy_async copies 4, 8 or 16 bytes, and fills at most as many",
                   where);
    return;
  }
  services->copy_late({static_cast<std::byte*>(to), from, static_cast<unsigned>(bytes),
                       static_cast<unsigned>(bytes - zeros), where});
}
TRIPTYCH_UNWATCHED inline void __pipeline_commit() {
  triptych::cuda::plain::services->commit_copies();
}
/// Waits for all groups but the last `pending` ones.
TRIPTYCH_UNWATCHED inline void __pipeline_wait_prior(std::size_t pending) {
  triptych::cuda::plain::services->await_copies(static_cast<unsigned>(pending));
}

#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
