// One rank of the scenes with a misbehaving process. mpi_faults_test.py starts and checks it.
//   mpi_faults SEED...             each in a group of its own
//   mpi_faults kill|exit|stop|busy|busy-stop|busy-drop SEED
//   mpi_faults absent              rank 1 stops before it joins
// Prints a line for each scene:
//   SEED RANK CULPRIT INJECTION INJECTED SECONDS FAULT_CULPRIT NOTICED_BY TEXT
// SECONDS are those since its last good collective.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "parallel/comm/mpi_session.h"
#include "tests/unit/parallel/faulty_transport.h"

namespace triptych::parallel {
namespace {

constexpr std::array kNames = {"throw",       "leave",     "slow",     "stall", "wrong-size",
                               "wrong-order", "kill",      "exit",     "stop",  "drop",
                               "busy",        "busy-stop", "busy-drop"};

void play(MpiSession& session, unsigned seed, std::optional<Injection> injection) {
  auto scene = draw_scene(seed, session.world_size());
  if (injection) scene.injection = *injection;
  std::shared_ptr<FaultyTransport> transport;
  std::optional<Communicator> communicator;
  auto start = std::chrono::steady_clock::now();
  std::optional<Fault> fault;
  try {
    // Another rank may be here before, and go wrong before this one has come.
    transport = std::make_shared<FaultyTransport>(session.transport(kDeadline), scene);
    communicator.emplace(transport);
    for (int i = 0; i < kCollectives; ++i) {
      call_collective(*communicator, scene, i);
      start = std::chrono::steady_clock::now();
    }
    communicator->barrier();
  } catch (const FaultError& error) {
    fault = error.fault();
  } catch (const Error& error) {
    communicator->fail(error.what());
  } catch (const Left&) {
  }
  const Seconds took = std::chrono::steady_clock::now() - start;
  const auto line =
      fmt::format("{} {} {} {} {:d} {:.3f} {} {} {}\n", seed, session.rank(), scene.culprit,
                  kNames.at(static_cast<std::size_t>(scene.injection)),
                  transport && transport->injected(), took.count(), fault ? fault->culprit : -1,
                  fault ? fault->noticed_by : -1, fault ? to_string(*fault) : "");
  fmt::print("{}", line);
  std::fflush(stdout);
}

}  // namespace
}  // namespace triptych::parallel

int main(int argc, char** argv) {
  using namespace triptych::parallel;
  const bool absent = argc > 1 && argv[1] == std::string_view("absent");
  if (absent && std::getenv("OMPI_COMM_WORLD_RANK") == std::string_view("1")) std::raise(SIGSTOP);
  MpiSession session(absent ? Seconds(3) : MpiSession::kStartLimit);
  Communicator between(session.transport(Seconds(30)));
  std::optional<Injection> injection;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto name = std::ranges::find(kNames, argument);
    if (name != kNames.end()) {
      injection = static_cast<Injection>(name - kNames.begin());
    } else {
      between.barrier();  // one that stalled comes late
      play(session, static_cast<unsigned>(std::stoul(argument)), injection);
    }
  }
  // After a process has died or stopped, the others do as the program does: they leave with an
  // error.
  if (injection && *injection != Injection::Busy) return 1;
  session.finish();
}
