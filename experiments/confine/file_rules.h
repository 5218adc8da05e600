// Files, signals and sockets of a command that is not trusted, bounded by Landlock. It needs no
// privilege, and works in containers. It denies each access that no rule allows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "core/io/file_descriptor.h"

namespace triptych::confine {

/// The version of this kernel's Landlock interface (ABI), or 0. From 2 on files may be
/// moved between directories, from 6 on signals stay within the command's processes.
int landlock_version();

/// Rules that let a command write in `folder` only. It can read and execute the files that
/// compilers, interpreters and simulators need: the system's programs and libraries, bin and sbin
/// directories of the PATH, this program with its libraries, and a few lists of the system.
/// It reads no home directory, no other submission, nothing of /proc about processes. Throws
/// DeviceError when the kernel refuses them.
internal::FileDescriptor file_rules(const std::filesystem::path& folder);

/// Puts the rules on the calling process for good. Safe between fork and exec.
bool apply_file_rules(const internal::FileDescriptor& rules);

}  // namespace triptych::confine
