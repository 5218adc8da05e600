// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::confine {

/// Whether a sanitizer's run time is part of this build. It reads /proc/self, and its shadow memory
/// is larger than any limit and mapped in unusual ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace triptych::confine
