// A folder that one command at a time writes to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "core/io/file_descriptor.h"

namespace triptych {

/// Keeps other commands from writing to a folder, under any of its names, for as long as it lives.
/// The system releases it however the process ends. Makes missing folders, and at the end
/// removes those that are still empty.
class FolderLock {
 public:
  /// Throws IoError when the folder cannot be made or another command holds it.
  explicit FolderLock(std::filesystem::path folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::vector<std::filesystem::path> made_;  ///< the outermost first
  internal::FileDescriptor descriptor_;
};

}  // namespace triptych
