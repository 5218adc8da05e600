// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/mpi_session.h"

#include <fmt/format.h>

#include <thread>

#include "core/base/error.h"
#include "parallel/comm/mpi_transport.h"

namespace triptych::parallel {

std::string mpi_missing() { return {}; }

MpiSession::MpiSession() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < MPI_THREAD_SERIALIZED)
    throw UnsupportedError("this MPI cannot be called from more than one thread");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
}

MpiSession::~MpiSession() {
  if (finished_) MPI_Finalize();
}

std::unique_ptr<Transport> MpiSession::transport(Seconds timeout) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), "MPI_Comm_idup");
  const auto start = std::chrono::steady_clock::now();
  for (int done = 0; done == 0;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    const Seconds waited = std::chrono::steady_clock::now() - start;
    if (waited > timeout) {
      throw CommError(
          fmt::format("not all of the {} processes came to the start of the group in {:.1f} s",
                      world_size_, waited.count()));
    }
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::make_unique<MpiTransport>(comm, timeout);
}

}  // namespace triptych::parallel
