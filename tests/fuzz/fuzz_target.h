// Common part of the fuzz targets: the file that a loader reads, and the seeds that a corpus begins
// with. A target defines LLVMFuzzerTestOneInput and seeds().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace triptych::fuzz {

/// Contents that the loader takes, of every kind that it knows.
std::vector<std::string> seeds();

/// A file with that content, the same each time, in memory.
const std::filesystem::path& file_of(const std::uint8_t* data, std::size_t size);

/// Ends the process, as a finding, when `holds` is false.
void require(bool holds, const char* what);

}  // namespace triptych::fuzz
