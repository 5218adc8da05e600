// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporary_folder.h"

#include <fmt/core.h>
#include <stdlib.h>

#include "core/base/error.h"
#include "core/io/temporaries.h"

namespace triptych {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  const auto where = fs::temp_directory_path();
  auto pattern = (where / fmt::format("triptych-{}-XXXXXX", purpose)).string();
  path_ = make_temporary([&]() -> fs::path {
    if (mkdtemp(pattern.data()) == nullptr)
      throw IoError(fmt::format("cannot make a folder in \"{}\"", where.string()));
    return pattern;
  });
}

TemporaryFolder::~TemporaryFolder() {
  remove_tree(path_);
  forget_temporary(path_);
}

}  // namespace triptych
