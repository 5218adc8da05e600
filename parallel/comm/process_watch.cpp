// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/process_watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace triptych::parallel {

ProcessIdentity ProcessIdentity::of_this_process() {
  ProcessIdentity identity;
  std::ifstream("/proc/sys/kernel/random/boot_id").get(identity.boot.data(), identity.boot.size());
  struct stat space = {};
  if (stat("/proc/self/ns/pid", &space) == 0) identity.process_space = space.st_ino;
  identity.number = getpid();
  return identity;
}

ProcessWatch::~ProcessWatch() {
  for (const auto& entry : entries_)
    if (entry.descriptor >= 0) close(entry.descriptor);
}

void ProcessWatch::add(int rank, const ProcessIdentity& process) {
  const auto self = ProcessIdentity::of_this_process();
  if (process.boot != self.boot || process.process_space != self.process_space) return;
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process.number, 0));
  // Without pidfd_open (Linux before 5.3) nothing is watched, and the deadline has to do.
  if (descriptor >= 0 || errno == ESRCH) entries_.push_back({rank, descriptor});
}

std::vector<int> ProcessWatch::ended() const {
  std::vector<int> ranks;
  for (const auto& entry : entries_) {
    pollfd state = {.fd = entry.descriptor, .events = POLLIN, .revents = 0};
    if (entry.descriptor < 0 || poll(&state, 1, 0) > 0) ranks.push_back(entry.rank);
  }
  return ranks;
}

}  // namespace triptych::parallel
