// Tells when a process of this host has ended, however it ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace triptych::parallel {

/// A process as others of the same host find it. Plain data, for sending.
struct ProcessIdentity {
  std::array<char, 40> boot = {};   ///< the host, since it was started
  std::uint64_t process_space = 0;  ///< numbers of processes count within it (containers)
  std::int32_t number = 0;

  static ProcessIdentity of_this_process();
};

class ProcessWatch {
 public:
  ProcessWatch() = default;
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  /// Watches the process from now on; those of other hosts are not seen.
  void add(int rank, const ProcessIdentity& process);
  /// Ranks that were added and whose process has ended.
  std::vector<int> ended() const;

 private:
  struct Entry {
    int rank = -1;
    int descriptor = -1;  // of pidfd_open; -1: had ended before
  };
  std::vector<Entry> entries_;
};

}  // namespace triptych::parallel
