// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporary_folder.h"

#include <fmt/core.h>
#include <stdlib.h>

#include "core/base/error.h"
#include "core/io/folder_tree.h"

namespace triptych {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  const auto where = fs::temp_directory_path();
  auto pattern = (where / fmt::format("triptych-{}-XXXXXX", purpose)).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw IoError(fmt::format("cannot make a folder in \"{}\"", where.string()));
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() { remove_tree(path_); }

}  // namespace triptych
