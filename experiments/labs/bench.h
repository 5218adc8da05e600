// The table on which a submission is tried: a temporary folder, and commands that run in it within
// limits. Whatever a student wrote runs here and nowhere else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/temporary_folder.h"
#include "core/tensor/tensor.h"
#include "experiments/confine/confined.h"
#include "experiments/page/json.h"

namespace triptych::labs {

using confine::Cause;
using confine::Ending;
using confine::Limits;

inline constexpr Limits kCheckLimits = {};
/// Limits where RTL is compiled.
inline constexpr Limits kBuildLimits = {60, std::int64_t{4} << 30};

class Bench {
 public:
  Bench();

  /// Writes a file of the commands' folder. `name` may have folders in it.
  void put(const std::string& name, std::string_view content);
  void put(const std::string& name, const Tensor& tensor);  ///< as .npy
  /// Takes a file away, if it is there.
  void remove(const std::string& name);
  /// Runs a command (run_confined) in the folder, which keeps what earlier ones left there.
  Ending run(const std::vector<std::string>& command, const Limits& limits = kCheckLimits);
  /// Files that the commands left. Throw IoError when there is none of that name, or it is a link,
  /// larger than `max_bytes`, or not what it should be.
  std::string text(const std::string& name, std::int64_t max_bytes = std::int64_t{1} << 26) const;
  Tensor array(const std::string& name) const;
  /// The first result of a command of this program that printed its document (--json). Throws
  /// IoError when the output is none.
  static page::Json result(const Ending& ending);

  /// The reason for which a command of this program failed, in its own words where it has some.
  std::string why(const Ending& ending, const Limits& limits = kCheckLimits) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  /// Refuses what is no plain file below the folder.
  std::filesystem::path plain(const std::string& name) const;

  TemporaryFolder outer_;
  std::filesystem::path folder_;
};

/// The lines of a text that say most: the first of an error and what follows, or all. At most
/// `count`. `hidden` (the bench's folder) is taken out.
std::string first_lines(const std::string& text, std::size_t count, const std::string& hidden);

}  // namespace triptych::labs
