// Files that are reached from an open folder by names that cannot lead elsewhere: no "..", no
// absolute name, no symbolic link in any part. Each part is opened by itself without following
// links, which every kernel can do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/io/file_descriptor.h"

namespace triptych::internal {

/// True for a relative name of at least one part and without "..".
bool stays_beneath(const std::filesystem::path& name);

/// The folder at `path`, links followed. "" is the current folder. -1 and errno on failure.
FileDescriptor open_folder(const std::filesystem::path& path);

/// open(2) of `name` beneath `folder`. On failure -1 and errno, which is EXDEV for a name that
/// leads out and ELOOP for a symbolic link in any part.
FileDescriptor open_beneath(int folder, const std::filesystem::path& name, int flags,
                            mode_t mode = 0);

/// The folder `name` beneath `folder`, or `folder` itself for "".
FileDescriptor open_folder_beneath(int folder, const std::filesystem::path& name);

/// The same. Missing ones are made.
FileDescriptor make_folder_beneath(int folder, const std::filesystem::path& name);

/// lstat(2) of `name` beneath `folder`. Nothing and errno on failure, as open_beneath() has it.
std::optional<struct stat> status_beneath(int folder, const std::filesystem::path& name);

/// unlink(2) of `name` beneath `folder`: 0, or -1 and errno.
int unlink_beneath(int folder, const std::filesystem::path& name);

}  // namespace triptych::internal

namespace triptych {

/// Whether `folder`, which somebody else filled, has a regular file of that name. Throws IoError
/// when the name leads through a link or to anything else, or when the file has another name.
bool is_file_beneath(const std::filesystem::path& folder, const std::string& name);

/// The whole file. Throws IoError as is_file_beneath() does, and when it is missing or has more
/// than `max_bytes`. Messages have the name alone.
std::string read_beneath(const std::filesystem::path& folder, const std::string& name,
                         std::int64_t max_bytes);

}  // namespace triptych
