// Names of the entries of a folder, like core/base/folder.h of the rest of the program, which this
// project must not depend on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace triptych::mmu {

/// Names of the entries of `folder` except "." and "..", in ascending order. With `error` set, the
/// readable part. std::filesystem::directory_iterator of libstdc++ 12 would end the program when an
/// allocation fails.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

}  // namespace triptych::mmu
