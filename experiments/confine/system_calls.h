// A filter of system calls (seccomp) for a command that is not trusted. It lists what is denied:
// compilers and simulators use too many calls, and other ones in each release, for the reverse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <span>

namespace triptych::confine {

/// True when this kernel filters system calls and the filter knows this processor.
bool filters_system_calls();

/// The program for the kernel. Denied calls fail with EPERM, so that a tool that only probes one
/// goes on. Calls of another architecture (32 bits) end the process. Calls that are newer than the
/// filter, and clone3 and openat2, whose flags a filter cannot see, fail with ENOSYS: libraries
/// then use the older ones.
std::span<const sock_filter> system_call_filter();

/// Puts the filter on the calling process for good. Safe between fork and exec.
bool apply_system_call_filter(std::span<const sock_filter> filter);

}  // namespace triptych::confine
