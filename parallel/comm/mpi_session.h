// Ranks as processes that mpirun, a cluster manager or `triptych launch` started. Only non-blocking
// calls of MPI are used, polled against a deadline: its collectives wait for ever for a rank that
// has stopped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "parallel/comm/rank_group.h"

namespace triptych::parallel {

/// Why there is no MPI in this build, and the remedy. Empty when there is.
std::string mpi_missing();

/// This process as one of an MPI program. At most one per process, from first use to its end.
class MpiSession {
 public:
  /// MPI waits for ever for a process that is stopped before it joins, and its start cannot be
  /// called off: when that takes longer, this process ends with exit code 1, and mpirun ends all.
  static constexpr Seconds kStartLimit{300};
  /// The peer that receives the reason before it ends. Without this it is standard error.
  static void tell_when_stuck(std::function<void(const std::string&)> tell);

  /// Joins the others. Throws UnsupportedError when the build has no MPI.
  explicit MpiSession(Seconds start_limit = kStartLimit);
  /// After finish() ends MPI, which waits for the other processes to do the same. Otherwise it
  /// leaves that to the starter, which ends those that still run.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// That of this process, started at the first call.
  static MpiSession& of_process();
  /// Finishes and ends it, if it was started.
  static void finish_process();

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  int ranks_on_this_host() const { return ranks_on_this_host_; }
  /// All has gone well.
  void finish() { finished_ = true; }

  /// This rank's end of a new group of all processes. Each of them makes it at the same time.
  /// Throws CommError or FaultError when one does not come within the deadline.
  std::unique_ptr<Transport> transport(Seconds timeout);

 private:
  int rank_ = 0;
  int world_size_ = 1;
  int ranks_on_this_host_ = 1;
  bool finished_ = false;
};

/// The processes of the MPI program as ranks.
class MpiGroup : public RankGroup {
 public:
  explicit MpiGroup(Seconds timeout);
  int world_size() const override;
  std::vector<int> local_ranks() const override;
  std::unique_ptr<Transport> transport(int rank) override;

 private:
  MpiSession& session_;
  Seconds timeout_;
};

}  // namespace triptych::parallel
