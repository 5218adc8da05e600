// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/gate.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/error.h"

namespace triptych::python {
namespace {

struct Gate {
  std::mutex mutex;
  std::condition_variable left;
  int inside = 0;
  std::atomic<bool> closed = false;  ///< written under the mutex
  std::atomic<pid_t> process = 0;    ///< that has machines. 0: none yet
  std::thread::id closer;            ///< the thread that closed it, and ends the interpreter
};

/// Never destroyed: threads may still leave it when the process ends.
Gate& gate() {
  static auto* const only = new Gate;
  return *only;
}

/// A fork copies the memory of the machines, and none of their threads.
void require_own_process(pid_t owner) {
  if (owner == 0 || owner == getpid()) return;
  throw DeviceError(
      "this process was forked from one in which Triptych had computed, and has none of its "
      "threads; start it by multiprocessing's method \"spawn\", or fork before the first use");
}

/// True in the threads that the end of the interpreter leaves behind.
bool is_left_behind() { return gate().closed && gate().closer != std::this_thread::get_id(); }

/// Waits for the end of the process, as such threads do from Python 3.14 on. In Python, an
/// exception that the thread prints while the interpreter ends would abort the process.
[[noreturn]] void wait_for_the_end() {
  if (PyGILState_Check() != 0) PyEval_SaveThread();
  while (true) pause();
}

}  // namespace

Pass::Pass() {
  require_own_process(gate().process);  // before the mutex, which a fork may have copied locked
  std::unique_lock lock(gate().mutex);
  if (is_left_behind()) {
    lock.unlock();
    wait_for_the_end();
  }
  if (gate().closed) throw DeviceError("the interpreter is ending; no machine computes any more");
  gate().process = getpid();
  ++gate().inside;
}

Pass::~Pass() {
  std::unique_lock lock(gate().mutex);
  if (--gate().inside == 0) gate().left.notify_all();
  if (!is_left_behind()) return;
  lock.unlock();
  wait_for_the_end();
}

bool gate_closes() { return gate().closed; }

void close_gate() {
  if (gate().process != getpid()) return;
  std::unique_lock lock(gate().mutex);
  gate().closed = true;
  gate().closer = std::this_thread::get_id();
  gate().left.wait(lock, [] { return gate().inside == 0; });
}

}  // namespace triptych::python
