// Folders for temporary files. The owner holds a lock (flock) on its folder, so that the next
// process recognises and removes the folders of killed ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "core/io/file_descriptor.h"

namespace triptych {

/// A folder of its own for temporary files, which goes away with it and all that is in it.
class TemporaryFolder {
 public:
  /// `purpose`: a part of its name. Removes such folders that killed processes of this user left.
  /// Throws IoError when it cannot be made.
  explicit TemporaryFolder(std::string_view purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path outer_;
  std::filesystem::path path_;
  internal::FileDescriptor descriptor_;
};

}  // namespace triptych
