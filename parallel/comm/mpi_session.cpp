// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/mpi_session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "parallel/comm/mpi_transport.h"

namespace triptych::parallel {

std::string mpi_missing() { return {}; }

namespace {

std::unique_ptr<MpiSession> process_session;

std::function<void(const std::string&)>& teller() {
  static std::function<void(const std::string&)> tell = [](const std::string& what) {
    say_always(what + "\n");
  };
  return tell;
}

/// Ends the process when it lives longer than `limit`.
class StartWatch {
 public:
  explicit StartWatch(Seconds limit)
      : thread_([this, limit](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          stopped_.wait_for(lock, stop, limit, [] { return false; });
          if (stop.stop_requested()) return;
          teller()(
              fmt::format("MPI did not start within {:.1f} s: a process that mpirun has started is "
                          "stopped, or cannot reach the others; see `ps -eo pid,stat,args` for one "
                          "in state T",
                          limit.count()));
          _exit(1);
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

/// mpirun ends the others with SIGTERM when one rank has died, and a second later with SIGKILL. So
/// the first SIGTERM leaves time to say why. A second one ends the process.
void survive_the_first_terminate() {
  if (InterruptGuard::exists()) return;  // it asks for a checkpoint first
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

MpiSession& MpiSession::of_process() {
  if (!process_session) process_session = std::make_unique<MpiSession>();
  return *process_session;
}

void MpiSession::finish_process() {
  if (process_session) process_session->finish();
  process_session.reset();
}

void MpiSession::tell_when_stuck(std::function<void(const std::string&)> tell) {
  teller() = std::move(tell);
}

MpiSession::MpiSession(Seconds start_limit) {
  survive_the_first_terminate();
  int provided = 0;
  {
    const StartWatch watch(start_limit);
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
              "MPI_Init_thread");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < MPI_THREAD_SERIALIZED)
    throw UnsupportedError("this MPI cannot be called from more than one thread");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  MPI_Comm_size(host, &ranks_on_this_host_);
  MPI_Comm_free(&host);
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

MpiGroup::MpiGroup(Seconds timeout) : session_(MpiSession::of_process()), timeout_(timeout) {}

int MpiGroup::world_size() const { return session_.world_size(); }
std::vector<int> MpiGroup::local_ranks() const { return {session_.rank()}; }
std::unique_ptr<Transport> MpiGroup::transport(int) { return session_.transport(timeout_); }

}  // namespace triptych::parallel
