// Temporary files and folders of this process, which a stop signal removes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace triptych {

/// Calls `make`, which creates a temporary file or folder, and remembers the path that it returns.
/// Waits for ever once remove_temporaries_of_process() has been called.
std::filesystem::path make_temporary(const std::function<std::filesystem::path()>& make);

/// For one that exists.
void remember_temporary(const std::filesystem::path& path);
/// For a path that was removed or has got its final name.
void forget_temporary(const std::filesystem::path& path);

/// Removes all that is remembered. For the end of the process: other threads that make or forget
/// temporaries wait from now on.
void remove_temporaries_of_process();

}  // namespace triptych
