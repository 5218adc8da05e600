// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/mpi_control.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace triptych::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kArbiterAnswers(0.2);  ///< or it asks the next rank
constexpr Seconds kFlush(0.2);
constexpr int kSignsPerDeadline = 10;  ///< of life. More would be noise

template <std::size_t n>
void put(std::array<char, n>& field, const std::string& text) {
  const auto length = std::min(text.size(), n - 1);
  std::memcpy(field.data(), text.data(), length);
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace

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

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommError(fmt::format("{}: {}", call, text));
}

MpiControl::MpiControl(MPI_Comm comm, Seconds timeout) : comm_(comm), timeout_(timeout) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &world_size_);
  peers_.resize(static_cast<std::size_t>(world_size_));
  peers_[static_cast<std::size_t>(rank_)].here = true;
  check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, kControlTag, comm_,
                      &receiving_),
            "MPI_Irecv");
  Message hello;
  hello.process = ProcessIdentity::of_this_process();
  send_to_all(hello);
  const auto start = Clock::now();
  while (true) {
    receive_all();
    if (fault_) throw FaultError(*fault_);
    const auto missing = std::ranges::find(peers_, false, &Peer::here);
    if (missing == peers_.end()) return;
    const Seconds waited = Clock::now() - start;
    if (waited > timeout_) {
      throw FaultError(raise({.culprit = static_cast<int>(missing - peers_.begin()),
                              .cause = Cause::Stalled,
                              .operation = "the start of the group",
                              .detail = {},
                              .waited = waited,
                              .noticed_by = rank_}));
    }
    pause();
  }
}

MpiControl::~MpiControl() {
  try {
    Message leaves;
    leaves.kind = Kind::Leaves;
    if (!fault_) send_to_all(leaves);
    flush();
  } catch (const std::exception&) {
    // The others will see that this process has ended.
  }
  MPI_Cancel(&receiving_);
  MPI_Wait(&receiving_, MPI_STATUS_IGNORE);  // short messages are there at once or not at all
}

MpiControl::Message MpiControl::message_of(Kind kind, const Fault& fault) {
  Message message;
  message.kind = kind;
  message.culprit = fault.culprit;
  message.cause = static_cast<std::int32_t>(fault.cause);
  message.noticed_by = fault.noticed_by;
  message.waited = fault.waited.count();
  put(message.operation, fault.operation);
  put(message.detail, fault.detail);
  return message;
}

Fault MpiControl::fault_of(const Message& message) {
  return {.culprit = message.culprit,
          .cause = static_cast<Cause>(message.cause),
          .operation = message.operation.data(),
          .detail = message.detail.data(),
          .waited = Seconds(message.waited),
          .noticed_by = message.noticed_by};
}

void MpiControl::send(int to, const Message& message) {
  outgoing_.remove_if([](Outgoing& old) {
    int done = 0;
    MPI_Test(&old.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
  auto& own = outgoing_.emplace_back(to, message);
  check_mpi(
      MPI_Isend(&own.message, sizeof own.message, MPI_BYTE, to, kControlTag, comm_, &own.request),
      "MPI_Isend");
}

void MpiControl::send_to_all(const Message& message) {
  for (int to = 0; to < world_size_; ++to)
    if (to != rank_ && !peers_[static_cast<std::size_t>(to)].died) send(to, message);
}

void MpiControl::receive_all() {
  while (true) {
    int done = 0;
    MPI_Status status;
    check_mpi(MPI_Test(&receiving_, &done, &status), "MPI_Test");
    if (done == 0) return;
    const Message message = incoming_;
    check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, kControlTag, comm_,
                        &receiving_),
              "MPI_Irecv");
    handle(status.MPI_SOURCE, message);
  }
}

void MpiControl::handle(int from, const Message& message) {
  auto& peer = peers_[static_cast<std::size_t>(from)];
  switch (message.kind) {
    case Kind::Hello:
      peer.here = true;
      watch_.add(from, message.process);
      return;
    case Kind::WaitsFor:
      peer.waits_for.reset();
      if (message.peer < 0) peer.give_sign("");
      if (message.peer >= 0) peer.waits_for = message.peer;
      peer.awaited = message.message;
      return claim_sent(from);
    case Kind::HasSent:
      peers_[static_cast<std::size_t>(message.peer)].claimed_by = from;
      peers_[static_cast<std::size_t>(message.peer)].claimed = message.message;
      return;
    case Kind::Busy:
      return peer.give_sign(message.operation.data());
    case Kind::Raise:
      if (fault_) return send(from, message_of(Kind::Announce, *fault_));
      fault_ = fault_of(message);
      return send_to_all(message_of(Kind::Announce, *fault_));
    case Kind::Announce:
      if (!fault_) fault_ = fault_of(message);
      return;
    case Kind::Leaves:
      peer.left = true;
  }
}

void MpiControl::look_for_the_dead() {
  for (const int rank : watch_.ended()) peers_[static_cast<std::size_t>(rank)].died = true;
}

void MpiControl::poll(int peer) {
  look_for_the_dead();  // before their last reports are read
  receive_all();
  if (fault_) throw FaultError(*fault_);
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto& other = peers_[static_cast<std::size_t>(rank)];
    if ((other.died && !other.left) || (rank == peer && other.left))
      throw PeerFailure{rank, Cause::Died, "", Seconds(0)};
  }
}

void MpiControl::tell_waiting(std::optional<int> peer, std::uint64_t number) {
  auto& own = peers_[static_cast<std::size_t>(rank_)];
  own.waits_for = peer;
  own.awaited = number;
  Message message;
  message.kind = Kind::WaitsFor;
  message.peer = peer.value_or(-1);
  message.message = number;
  send_to_all(message);
}

void MpiControl::note_sent(int peer, std::uint64_t number) {
  peers_[static_cast<std::size_t>(peer)].sent = number;
  claim_sent(peer);
}

void MpiControl::claim_sent(int to) {
  auto& peer = peers_[static_cast<std::size_t>(to)];
  const bool known = peer.claimed_by == rank_ && peer.claimed >= peer.awaited;
  if (peer.waits_for != rank_ || peer.awaited == 0 || peer.sent < peer.awaited || known) return;
  peer.claimed_by = rank_;
  peer.claimed = peer.sent;
  Message message;
  message.kind = Kind::HasSent;
  message.peer = to;
  message.message = peer.sent;
  send_to_all(message);
}

PeerFailure MpiControl::root_of(int peer, Seconds waited) const {
  int waiter = rank_;
  for (int links = 0; links < world_size_; ++links) {
    const auto& waiting = peers_[static_cast<std::size_t>(waiter)];
    if (waiting.awaited > 0 && waiting.claimed_by == peer && waiting.claimed >= waiting.awaited) {
      return lost_message(
          peer, waiter, waiting.awaited,
          fmt::format("rank {} has waited for it for {:.1f} s", waiter, waited.count()));
    }
    const auto& next = peers_[static_cast<std::size_t>(peer)].waits_for;
    if (!next) break;
    waiter = std::exchange(peer, *next);
  }
  return stalled(peer, waited, "");
}

void MpiControl::require_life(int peer, Clock::time_point& since) const {
  const auto now = Clock::now();
  if (now - since <= timeout_) return;
  auto failure = root_of(peer, now - since);
  if (failure.cause == Cause::Stalled) {
    const auto& silent = peers_[static_cast<std::size_t>(failure.peer)];
    const bool heard = silent.sign_of_life >= since;
    if (heard) since = silent.sign_of_life;
    if (now - since <= timeout_) return;
    failure = stalled(failure.peer, now - since, heard ? silent.doing : "");
  }
  throw failure;
}

void MpiControl::tell_busy(const char* doing) {
  const auto now = Clock::now();
  if (now - told_busy_ < timeout_ / kSignsPerDeadline) return;
  told_busy_ = now;
  Message message;
  message.kind = Kind::Busy;
  put(message.operation, doing);
  send_to_all(message);
}

int MpiControl::arbiter(const Fault& fault, const std::vector<bool>& tried) const {
  const bool silent = fault.cause == Cause::Died || fault.cause == Cause::Stalled;
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto& peer = peers_[static_cast<std::size_t>(rank)];
    const bool cannot = tried[static_cast<std::size_t>(rank)] || peer.died || peer.left ||
                        (silent && rank == fault.culprit);
    if (rank == rank_ || !cannot) return rank;
  }
  return rank_;
}

Fault MpiControl::raise(const Fault& fault) {
  std::vector<bool> tried(peers_.size());
  while (!fault_) {
    look_for_the_dead();
    const int to = arbiter(fault, tried);
    if (to == rank_) {
      fault_ = fault;
      send_to_all(message_of(Kind::Announce, *fault_));
      break;
    }
    send(to, message_of(Kind::Raise, fault));
    tried[static_cast<std::size_t>(to)] = true;
    for (const auto end = Clock::now() + kArbiterAnswers; !fault_ && Clock::now() < end; pause())
      receive_all();
  }
  flush();
  return *fault_;
}

void MpiControl::flush() {
  const auto end = Clock::now() + kFlush;
  for (auto& message : outgoing_) {
    int done = fault_ && message.to == fault_->culprit ? 1 : 0;
    while (done == 0 && Clock::now() < end) {
      MPI_Test(&message.request, &done, MPI_STATUS_IGNORE);
      if (done == 0) pause();
    }
  }
}

}  // namespace triptych::parallel
