// Files that are replaced only where this program wrote them and nobody has changed them since.
//   FOLDER/.triptych   a line "SHA-256  NAME" for each file that was written to FOLDER or below, as
//                      `sha256sum --check` reads them; of a file that was replaced, a line more
// A line is written before its file, so that a kill between the two leaves a file that is known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace triptych {

class OwnFiles {
 public:
  /// Files that `folder`, which need not exist, lists now. Throws IoError when its list cannot be
  /// read.
  explicit OwnFiles(std::filesystem::path folder);

  /// True when the folder has a list.
  bool listed() const { return listed_; }
  /// True when this program wrote a file of that name here, whatever it holds now.
  bool lists(const std::filesystem::path& name) const;
  /// Throws InvalidArgument unless nothing stands at `name`, a path within the folder, or what this
  /// program wrote there.
  void require(const std::filesystem::path& name) const;
  /// require() of everything within the folder `name` that is not hidden, but for files whose names
  /// `excepted` accepts.
  void require_all_of(const std::filesystem::path& name,
                      const std::function<bool(const std::string&)>& excepted) const;
  /// Makes the list, and takes the file `name`, when it is there, for this program's from now on.
  void adopt(const std::filesystem::path& name = {});
  /// Replaces `name` by `content`, and makes the folders above it. Throws as require() does, and
  /// IoError when writing fails.
  void write(const std::filesystem::path& name, std::string_view content);

 private:
  void list(const std::string& hash, const std::string& name);

  std::filesystem::path folder_;
  std::set<std::pair<std::string, std::string>> lines_;  ///< name and hash
  bool listed_ = false;
};

/// OwnFiles::require and write for a file of the folder that it lies in.
void require_own_file(const std::filesystem::path& path);
void write_own_file(const std::filesystem::path& path, std::string_view content);

}  // namespace triptych
