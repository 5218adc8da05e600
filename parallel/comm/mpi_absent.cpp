// In place of mpi_session.cpp where CMake found no MPI.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "parallel/comm/mpi_session.h"

namespace triptych::parallel {

std::string mpi_missing() {
  return "this build has no MPI; install libopenmpi-dev and run cmake again";
}

MpiSession& MpiSession::of_process() { throw UnsupportedError(mpi_missing()); }
void MpiSession::finish_process() {}
void MpiSession::tell_when_stuck(std::function<void(const std::string&)>) {}
MpiSession::MpiSession(Seconds) { throw UnsupportedError(mpi_missing()); }
MpiSession::~MpiSession() = default;

std::unique_ptr<Transport> MpiSession::transport(Seconds) { throw UnsupportedError(mpi_missing()); }

MpiGroup::MpiGroup(Seconds) : session_(MpiSession::of_process()) {}
int MpiGroup::world_size() const { return session_.world_size(); }
std::vector<int> MpiGroup::local_ranks() const { return {session_.rank()}; }
std::unique_ptr<Transport> MpiGroup::transport(int) { throw UnsupportedError(mpi_missing()); }

}  // namespace triptych::parallel
