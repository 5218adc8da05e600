// Directory trees of any depth, walked by descriptors: no path gets longer than one name, and no
// symbolic link is followed. Deep trees are a way to hide files from tools that build paths.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <functional>

namespace triptych {

/// An entry of a tree, as a descriptor of its directory and a name there.
struct TreeEntry {
  int folder = -1;
  const char* name = "";
  const struct stat& status;  ///< of the entry itself, also where it is a link
};

/// Calls `visit` for each entry below `folder`, a directory before its content. Entries that
/// vanish meanwhile are left out. False when some directory could not be entered although its
/// owner made it accessible again. Throws IoError when `folder` cannot be opened.
bool visit_tree(const std::filesystem::path& folder,
                const std::function<void(const TreeEntry&)>& visit);

/// Removes `folder` with everything below it, as far as that is possible. Safe in a destructor.
void remove_tree(const std::filesystem::path& folder) noexcept;

}  // namespace triptych
