// Bytes of files that a confined command occupies, also where it hides them: below paths that are
// too long for a name, in directories that it closed, in files without a name that are still open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>

#include <optional>

namespace triptych::confine {

/// Bytes of all that lies in the folder, each entry counting as a block of the disk at least.
/// Larger than any limit when a directory in it cannot be read.
std::int64_t bytes_of_folder(const std::filesystem::path& folder);

/// Bytes of the files without a name that these processes have open or mapped. Nothing when a
/// process hides its files. One that has ended hides none.
std::optional<std::int64_t> bytes_of_nameless_files(std::span<const pid_t> processes);

}  // namespace triptych::confine
