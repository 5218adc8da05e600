// A filter of system calls (seccomp) for a command that is not trusted. It lists the denied
// calls, because compilers and simulators use too many others, which change in each release.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <span>

namespace triptych::confine {

/// True when this kernel filters system calls and the filter knows this processor.
bool filters_system_calls();

/// The program for the kernel. Denied calls fail with EPERM, so that a tool that only probes one
/// continues. Calls of another architecture (32 bits) end the process. Calls that are newer than
/// the filter fail with ENOSYS, so that libraries use older ones. So do clone3 and openat2, because
/// a filter cannot see their flags.
std::span<const sock_filter> system_call_filter();

/// Puts the filter on the calling process for good. Safe between fork and exec.
bool apply_system_call_filter(std::span<const sock_filter> filter);

}  // namespace triptych::confine
