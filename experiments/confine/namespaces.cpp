// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "experiments/confine/account.h"
#include "experiments/confine/per_user.h"

namespace triptych::confine {
namespace {

bool write_text(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool good = file >= 0 && write(file, text, static_cast<std::size_t>(size)) == size;
  if (file >= 0) close(file);
  return good;
}

bool map_id(const char* path, unsigned id) {
  char line[64];
  std::snprintf(line, sizeof line, "%u %u 1", id, id);
  return write_text(path, line);
}

}  // namespace

bool enter_process_namespace(bool has_own_user) {
  if (unshare(CLONE_NEWPID) == 0) return true;
  if (has_own_user) return false;  // a user namespace of one user has no other to become
  const auto user = geteuid(), group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return false;
  // The files of a process that may not be inspected are root's.
  const int inspectable = prctl(PR_GET_DUMPABLE);
  prctl(PR_SET_DUMPABLE, 1);
  const bool mapped = write_text("/proc/self/setgroups", "deny") &&
                      map_id("/proc/self/uid_map", user) && map_id("/proc/self/gid_map", group);
  prctl(PR_SET_DUMPABLE, inspectable == 1 ? 1 : 0);
  return mapped;
}

bool has_process_namespaces() {
  static PerUser<bool> possible;
  return possible.get([] {
    const bool has_own_user = can_become_a_user();
    const pid_t child = fork();
    if (child == 0) {
      if (!enter_process_namespace(has_own_user)) _exit(1);
      const pid_t first = fork();
      if (first == 0) _exit(0);
      int status = 1;
      _exit(first > 0 && waitpid(first, &status, 0) == first && status == 0 ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
  });
}

}  // namespace triptych::confine
