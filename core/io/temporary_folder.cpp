// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporary_folder.h"

#include <fmt/core.h>
#include <ftw.h>
#include <stdlib.h>

#include <cstdio>

#include "core/base/error.h"

namespace triptych {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  const auto where = fs::temp_directory_path();
  auto pattern = (where / fmt::format("triptych-{}-XXXXXX", purpose)).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw IoError(fmt::format("cannot make a folder in \"{}\"", where.string()));
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  // std::filesystem::remove_all ends the program when an allocation fails.
  const auto remove = [](const char* path, const struct stat*, int, FTW*) {
    return std::remove(path);
  };
  ::nftw(path_.c_str(), remove, /*descriptors=*/16, FTW_DEPTH | FTW_PHYS);
}

}  // namespace triptych
