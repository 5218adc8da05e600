// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/account.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/io/file_descriptor.h"
#include "core/io/folder_tree.h"
#include "experiments/confine/per_user.h"
#include "parallel/launch/process_tree.h"

namespace triptych::confine {
namespace {

namespace fs = std::filesystem;
using internal::FileDescriptor;

/// Users that no system gives to anybody: systemd's range for services that have none.
constexpr uid_t kFirstUser = 61184, kUsers = 4335;

/// Processes of each user that runs any, threads counted.
std::map<uid_t, std::int64_t> tasks_of_users() {
  std::map<uid_t, std::int64_t> tasks;
  for (const auto& process : parallel::descendants(0)) {
    struct stat status = {};
    if (stat(fmt::format("/proc/{}", process.id).c_str(), &status) == 0)
      tasks[status.st_uid] += process.threads;
  }
  return tasks;
}

/// Changes the owner of the entry itself if it is still the one of `known`.
void give_entry(const TreeEntry& entry, uid_t user) {
  if (entry.status.st_uid == user) return;
  // A second name may lie anywhere.
  if (!S_ISDIR(entry.status.st_mode) && entry.status.st_nlink != 1) return;
  if (fchownat(entry.folder, entry.name, user, user, AT_SYMLINK_NOFOLLOW) != 0)
    internal::throw_errno("give away", entry.name);
}

}  // namespace

bool can_become_a_user() {
  static PerUser<bool> possible;
  return possible.get([] {
    if (geteuid() != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
      char name[] = "/tmp/triptych-user-XXXXXX";
      const FileDescriptor file(mkstemp(name));
      if (file.get() >= 0) unlink(name);
      const bool gives = file.get() < 0 || fchown(file.get(), kFirstUser, kFirstUser) == 0;
      _exit(gives && become(kFirstUser) ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
  });
}

Account choose_account() {
  const auto tasks = tasks_of_users();
  const rlim_t allowed = 128 + 2 * std::thread::hardware_concurrency();
  if (!can_become_a_user()) {
    const auto own = tasks.find(getuid());
    return {{}, allowed + static_cast<rlim_t>(own == tasks.end() ? 0 : own->second)};
  }
  uid_t user = kFirstUser + static_cast<uid_t>(getpid()) % kUsers;
  while (tasks.contains(user)) user = kFirstUser + (user - kFirstUser + 1) % kUsers;
  return {user, allowed};
}

bool become(const std::optional<uid_t>& user) {
  if (!user) return true;
  return setgroups(0, nullptr) == 0 && setresgid(*user, *user, *user) == 0 &&
         setresuid(*user, *user, *user) == 0;
}

void give_away(const fs::path& folder, uid_t user) {
  const auto above = folder.parent_path();
  const FileDescriptor outer(open(above.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (outer.get() < 0 || fchown(outer.get(), static_cast<uid_t>(-1), user) != 0 ||
      fchmod(outer.get(), S_IRWXU | S_IXGRP) != 0)
    internal::throw_errno("give away", above);
  if (lchown(folder.c_str(), user, user) != 0) internal::throw_errno("give away", folder);
  visit_tree(folder, [&](const TreeEntry& entry) { give_entry(entry, user); });
}

}  // namespace triptych::confine
