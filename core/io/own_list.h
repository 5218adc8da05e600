// The list of this program's own files in a folder, FOLDER/.triptych. Its content is not trusted.
//   SHA-256  NAME   a file that was written to the folder or below, as `sha256sum` writes it: a
//                   name with a line break or a backslash is escaped, and a backslash comes first
//   # run PATH      a run that trained on these files
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/io/file_descriptor.h"

namespace triptych::internal {

inline constexpr const char* kOwnList = ".triptych";

struct OwnList {
  std::set<std::pair<std::string, std::string>> files;  ///< name and hash
  std::set<std::string> runs;                           ///< absolute paths
  std::int64_t bytes = 0;                               ///< of the text that they were read from
};

/// Reads a list. Throws InvalidArgument with the line of `path` for text that this program never
/// writes, and for a name that leads out of the folder.
OwnList parse_own_list(std::string_view text, const std::filesystem::path& path);

/// Its line for a file.
std::string own_line(std::string_view hash, std::string_view name);

/// Its line for a run.
std::string run_line(std::string_view run);

/// The list of one folder, open and locked, to be read and then extended.
class OpenOwnList {
 public:
  /// Opens the list beneath `folder`, which messages call `shown`. Throws InvalidArgument when it
  /// is no regular file of one name, and IoError when it cannot be made, or stays locked too long.
  OpenOwnList(int folder, const std::filesystem::path& shown);

  /// Brings `list`, which was read earlier, up to date.
  void read(OwnList& list) const;
  /// Appends a whole line, which `list` has. Throws IoError.
  void append(OwnList& list, std::string line);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

/// The list beneath `folder`, or nothing when it has none. Throws as OpenOwnList does.
std::optional<OwnList> read_own_list(int folder, const std::filesystem::path& shown);

}  // namespace triptych::internal
