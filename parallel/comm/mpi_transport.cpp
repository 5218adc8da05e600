// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/mpi_transport.h"

#include <fmt/core.h>

#include <climits>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm/sum.h"

namespace triptych::parallel {
namespace {

using Clock = std::chrono::steady_clock;

int count_of(std::size_t bytes) {
  if (bytes > INT_MAX) {
    throw InvalidArgument(
        fmt::format("a message of {} bytes; MPI takes at most {} at once", bytes, INT_MAX));
  }
  return static_cast<int>(bytes);
}

/// True when it is done before long.
bool end_within(MPI_Request& request) {
  const auto end = Clock::now() + std::chrono::milliseconds(20);
  int done = 0;
  while (true) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0 || Clock::now() > end) return done != 0;
    std::this_thread::yield();
  }
}

/// Tag of a message's data, so that messages cannot be confused.
int data_tag(const Envelope& envelope) {
  constexpr std::uint64_t tags = 16384;  // MPI guarantees at least two times as many
  return kDataTag + static_cast<int>(envelope.number % tags);
}

bool end_receive(MPI_Request& request) {
  if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  return end_within(request);
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm comm, Seconds timeout)
    : comm_(comm),
      control_(comm, timeout),
      peers_(static_cast<std::size_t>(control_.world_size())) {
  for (auto& peer : peers_) peer.sends.resize(kSends);
  for (int from = 0; from < world_size(); ++from)
    if (from != rank()) expect_header(from);
}

MpiTransport::~MpiTransport() {
  bool ended = true;
  for (auto& peer : peers_) {
    ended = end_receive(peer.receiving) && ended;
    for (auto& out : peer.sends)
      ended = ended && end_within(out.header_request) && end_within(out.data_request);
  }
  // After a fault a message may be on its way for ever: MPI keeps its memory.
  static std::vector<std::vector<Peer>> kept;
  if (!ended) kept.push_back(std::move(peers_));
}

void MpiTransport::expect_header(int from) {
  const std::lock_guard lock(calls_);
  auto& own = peer(from);
  check_mpi(MPI_Irecv(&own.incoming, sizeof own.incoming, MPI_BYTE, from, kHeaderTag, comm_,
                      &own.receiving),
            "MPI_Irecv");
}

bool MpiTransport::header_arrived(int from) {
  auto& own = peer(from);
  if (!own.arrived && own.receiving != MPI_REQUEST_NULL) own.arrived = test(own.receiving);
  return own.arrived;
}

bool MpiTransport::test(MPI_Request& request) const {
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

std::uint64_t MpiTransport::send(int to, const Envelope& envelope,
                                 std::span<const std::byte> bytes) {
  auto& own = peer(to);
  current_ = envelope;
  const std::uint64_t number = own.sent++;
  if (number >= kSends) wait_taken(to, number - kSends);
  const std::lock_guard lock(calls_);
  auto& out = own.sends[number % kSends];
  const bool first = own.announced != envelope.sequence;
  const bool is_short = first && bytes.size() <= kShort;
  if (first) {
    own.announced = envelope.sequence;
    out.header.envelope = envelope;
    if (is_short) std::memcpy(out.header.data.data(), bytes.data(), bytes.size());
    const auto size = sizeof(Envelope) + (is_short ? bytes.size() : 0);
    check_mpi(MPI_Isend(&out.header, count_of(size), MPI_BYTE, to, kHeaderTag, comm_,
                        &out.header_request),
              "MPI_Isend");
  }
  if (!is_short) {
    check_mpi(MPI_Isend(bytes.data(), count_of(bytes.size()), MPI_BYTE, to, data_tag(envelope),
                        comm_, &out.data_request),
              "MPI_Isend");
  }
  control_.note_sent(to, envelope.number);
  return number;
}

void MpiTransport::wait_taken(int to, std::uint64_t message) {
  auto& out = peer(to).sends[message % kSends];
  wait_for(to, [&] { return test(out.header_request) && test(out.data_request); });
}

std::span<const std::byte> MpiTransport::enter(int from, const Envelope& envelope,
                                               std::size_t bytes) {
  current_ = envelope;
  auto& own = peer(from);
  if (own.entered == envelope.sequence) return {};
  wait_for(
      from, [&] { return header_arrived(from); }, envelope.number);
  if (own.incoming.envelope.number > envelope.number)
    throw lost_message(from, rank(), envelope.number, "a later one came");
  if (const auto other = mismatch(from, own.incoming.envelope, envelope)) throw *other;
  own.arrived = false;
  own.entered = envelope.sequence;
  return std::span(own.incoming.data).first(bytes <= kShort ? bytes : 0);
}

void MpiTransport::receive_data(int from, const Envelope& envelope, std::span<std::byte> target) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const std::lock_guard lock(calls_);
    check_mpi(MPI_Irecv(target.data(), count_of(target.size()), MPI_BYTE, from, data_tag(envelope),
                        comm_, &request),
              "MPI_Irecv");
  }
  try {
    wait_for(
        from, [&] { return test(request); }, envelope.number);
  } catch (...) {
    const std::lock_guard lock(calls_);
    end_receive(request);  // so that nothing is written there any more
    throw;
  }
}

void MpiTransport::receive(int from, const Envelope& envelope, std::span<std::byte> target) {
  const bool first = peer(from).entered != envelope.sequence;
  const auto with_header = enter(from, envelope, target.size());
  if (with_header.empty()) {
    receive_data(from, envelope, target);
  } else {
    std::memcpy(target.data(), with_header.data(), with_header.size());
  }
  if (first) expect_header(from);
}

void MpiTransport::receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                               DType dtype) {
  const bool first = peer(from).entered != envelope.sequence;
  const auto with_header = enter(from, envelope, target.size());
  if (with_header.empty()) {
    if (message_.size() < target.size()) message_.resize(target.size());
    const auto received = std::span(message_).first(target.size());
    receive_data(from, envelope, received);
    add_to(target, received, dtype);
  } else {
    add_to(target, with_header, dtype);
  }
  if (first) expect_header(from);
}

int MpiTransport::wait_any(std::span<const int> from) {
  const int* found = nullptr;
  wait_for(from.front(), [&] {
    for (const int& peer : from) {
      found = &peer;
      if (header_arrived(peer)) return true;
    }
    return false;
  });
  return *found;
}

void MpiTransport::library_all_reduce(const Envelope& envelope, std::span<std::byte> data,
                                      DType dtype) {
  if (dtype != DType::F32)
    throw UnsupportedError("the MPI library adds up f32 alone; choose another algorithm");
  current_ = envelope;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const std::lock_guard lock(calls_);
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, data.data(), count_of(data.size() / sizeof(float)),
                             MPI_FLOAT, MPI_SUM, comm_, &request),
              "MPI_Iallreduce");
  }
  wait_for((rank() + 1) % world_size(), [&] { return test(request); });
}

/// As threads wait: first by polling, for messages within microseconds, then letting others run.
void MpiTransport::wait_for(int peer, const std::function<bool()>& is_ready,
                            std::uint64_t message) {
  const auto ready = [&] {
    const std::lock_guard lock(calls_);
    return is_ready();
  };
  constexpr int spins = 500, yields = 2000;
  for (int i = 0; i < spins; ++i)
    if (ready()) return;
  const auto start = Clock::now();
  auto since = start;
  bool told = false;
  for (int i = 0;; ++i) {
    if (ready()) break;
    if (i % 32 == 0) {
      try {
        check(peer, since);
      } catch (const PeerFailure&) {
        // Messages that a rank sent before it ended still count.
        if (ready()) break;
        throw;
      }
    }
    if (!told && Clock::now() - start > control_.timeout() / 2) {
      const std::lock_guard lock(calls_);
      control_.tell_waiting(peer, message);
      told = true;
    }
    if (i < yields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  if (!told) return;
  const std::lock_guard lock(calls_);
  control_.tell_waiting(std::nullopt);
}

void MpiTransport::check(int peer, Clock::time_point& since) {
  const std::lock_guard lock(calls_);
  control_.poll(peer);
  for (int from = 0; from < world_size(); ++from) {
    if (from == rank() || !header_arrived(from)) continue;
    // A rank may be ahead of this one, but not at the same position with another call.
    const auto& theirs = this->peer(from).incoming.envelope;
    if (theirs.sequence == current_.sequence && !same_collective(theirs, current_))
      throw *mismatch(from, theirs, current_);
  }
  control_.require_life(peer, since);
}

void MpiTransport::tell_busy(const char* doing) {
  const std::lock_guard lock(calls_);
  control_.tell_busy(doing);
}

Fault MpiTransport::raise(const Fault& fault) {
  const std::lock_guard lock(calls_);
  return control_.raise(fault);
}

// Nothing to do: after a fault this rank calls MPI for messages about the fault alone. Other ranks
// read its memory in calls of their own, and nobody uses the result.
void MpiTransport::abandon() {}

}  // namespace triptych::parallel
