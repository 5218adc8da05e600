// Files that a command will write at the end. Conflicts are found before the work begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/io/temporary_folder.h"
#include "experiments/training/run_config.h"

namespace triptych::app {

/// Makes the folder of `path`. Throws IoError unless a file can be written there, and
/// InvalidArgument when it would replace one that this program did not write.
void require_writable(const std::filesystem::path& path);

/// A waveform file and its view for GTKWave (.gtkw and translations). The simulator writes them to
/// a temporary folder. They get their names when they are complete.
class WaveFiles {
 public:
  /// Throws as require_writable() does for each of the files.
  explicit WaveFiles(std::filesystem::path target);
  /// Where the simulator writes the waveform file.
  std::filesystem::path draft() const { return folder_.path() / target_.filename(); }
  /// Gives their names to those files that the simulator has written. Throws IoError.
  void publish() const;

 private:
  std::filesystem::path target_;
  TemporaryFolder folder_;
};

/// Calls `run` and publishes its waves, if any. Those of a run that throws show the reason, so they
/// are published, too.
void run_with_waves(const std::optional<WaveFiles>& waves, const std::function<void()>& run);

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
