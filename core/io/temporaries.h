// Temporary files and folders of this process, which a stop signal removes. Paths are absolute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

namespace triptych {

/// Remembers `path`, and calls `make`, which creates it and tells whether it did. A path that was
/// not created is forgotten. Waits for ever once remove_temporaries_of_process() has been called.
bool make_temporary(const std::filesystem::path& path, const std::function<bool()>& make);

/// A new folder by mkdtemp(3) from a pattern that ends in XXXXXX, remembered. Empty on failure.
std::filesystem::path make_temporary_folder(const std::filesystem::path& pattern);

/// For one that exists.
void remember_temporary(const std::filesystem::path& path);
/// For a path that was removed or has got its final name. Allocates nothing.
void forget_temporary(const std::filesystem::path& path) noexcept;

/// While it lives, remove_temporaries_of_process() waits: for files that get their names together.
class EndOfProcessWaits {
 public:
  EndOfProcessWaits();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Removes everything that is remembered. For the end of the process: other threads that make or
/// forget temporaries wait from now on.
void remove_temporaries_of_process();

}  // namespace triptych
