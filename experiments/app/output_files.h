// Files that a command will write when its work is done: what stands in their way is found before
// the work begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "experiments/training/run_config.h"

namespace triptych::app {

/// Makes the folder of `path`. Throws IoError unless a file can be written there, and
/// InvalidArgument when it would replace one that this program did not write.
void require_writable(const std::filesystem::path& path);

/// The same for a waveform file and the view of it for GTKWave (.gtkw and translations) that the
/// simulator writes beside it.
void require_writable_waves(const std::filesystem::path& waves);
/// They have been written: they are this program's.
void adopt_waves(const std::filesystem::path& waves);

/// Throws InvalidArgument when `out` is or lies in `input`, which the command reads.
void require_outside(const std::filesystem::path& out, const std::filesystem::path& input);
void require_outside(const std::filesystem::path& out, const training::DataConfig& data);

/// A page and the numbers that it is made from.
struct PageFiles {
  std::filesystem::path page;
  std::filesystem::path numbers;  ///< the page's name, ending in .json
};

/// Throws InvalidArgument when `out` ends in .json, and as require_writable() does for both.
PageFiles page_files(const std::string& out);

}  // namespace triptych::app
