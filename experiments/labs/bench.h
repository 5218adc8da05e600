// The table on which a submission is tried: a temporary folder, and commands that run in it within
// limits. All code of a student runs here and nowhere else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/temporary_folder.h"
#include "core/tensor/tensor.h"
#include "experiments/confine/confined.h"

namespace triptych::labs {

using confine::Cause;
using confine::Ending;
using confine::Limits;

inline constexpr Limits kCheckLimits = {};

class Bench {
 public:
  Bench();

  /// Writes a file of the commands' folder. `name` may have folders in it.
  void put(const std::string& name, std::string_view content);
  void put(const std::string& name, const Tensor& tensor);  ///< as .npy
  /// Takes a file away, if it is there.
  void remove(const std::string& name);
  /// Runs a command (run_confined) in the folder, which keeps the files of earlier commands.
  Ending run(const std::vector<std::string>& command, const Limits& limits = kCheckLimits);
  /// Files that the commands left. Throw IoError if the file is missing, a link, larger than
  /// `max_bytes`, or of the wrong form.
  std::string text(const std::string& name, std::int64_t max_bytes = std::int64_t{1} << 26) const;
  Tensor array(const std::string& name) const;

  /// The reason for which a command of this program failed, in its own words where it has some.
  std::string why(const Ending& ending, const Limits& limits = kCheckLimits) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  /// Refuses everything but plain files below the folder.
  std::filesystem::path plain(const std::string& name) const;

  TemporaryFolder outer_;
  std::filesystem::path folder_;
};

/// The most useful lines of a text: the first line of an error and the lines after it, or all. At
/// most `count`. Replaces the path `hidden` (the bench's folder).
std::string first_lines(const std::string& text, std::size_t count, const std::string& hidden);

}  // namespace triptych::labs
