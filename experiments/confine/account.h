// The user whom a command that is not trusted runs as. For root it is a user without
// any other process, so that file modes and limits per user apply.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace triptych::confine {

struct Account {
  std::optional<uid_t> user;  ///< nullopt: the user of this process
  rlim_t tasks = 0;           ///< threads that the user may have at most, with those running now
};

/// True when this process may become any user and give files to one: root's, with the capabilities
/// for it, outside of a namespace that knows few users.
bool can_become_a_user();
/// A user without processes where can_become_a_user(), else the present one.
Account choose_account();
/// Makes the calling process the user's, for good. Safe between fork and exec.
bool become(const std::optional<uid_t>& user);
/// Gives the folder and all below it to the user, and lets him through the directory above. Links
/// are not followed. A file with a second name (hard link) that is somebody else's stays so.
/// Throws IoError.
void give_away(const std::filesystem::path& folder, uid_t user);

}  // namespace triptych::confine
