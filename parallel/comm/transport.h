// Mover of bytes between ranks: the contract of threads, processes and simulated links. Messages
// between two ranks arrive in the order of the sends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"
#include "parallel/comm/fault.h"
#include "parallel/comm/message_memory.h"

namespace triptych::parallel {

/// Goes before the data of each message. Both sides must say the same.
struct Envelope {
  std::uint64_t sequence = 0;     ///< number of the collective in its communicator, from 1 on
  std::uint64_t fingerprint = 0;  ///< of the collective, its algorithm, dtype, elements and root
  /// Number of the message among all that its sender sends to its receiver, from 1 on: tells when
  /// one is missing. 0: not counted.
  std::uint64_t number = 0;
};

/// True when the messages are of the same collective.
bool same_collective(const Envelope& a, const Envelope& b);

/// Set in the sequence number of a message that belongs to no collective.
inline constexpr std::uint64_t kMessageBit = std::uint64_t{1} << 63;

/// Trouble with a peer. The communicator makes a Fault of it.
struct PeerFailure {
  int peer = -1;
  Cause cause = Cause::Died;
  std::string detail;
  Seconds waited{0};
};

/// Message `number` of `peer` to `receiver` did not arrive, and how that is known.
PeerFailure lost_message(int peer, int receiver, std::uint64_t number, const std::string& how);

/// `peer` has not answered for so long. `doing`: its activity at its last sign of life, may be
/// empty.
PeerFailure stalled(int peer, Seconds waited, std::string_view doing);

/// Trouble that a message of `peer` tells of when this rank is in the collective `ours`: nothing
/// when it is in the same one.
std::optional<PeerFailure> mismatch(int peer, const Envelope& theirs, const Envelope& ours);

/// One rank's end. Used by one thread at a time. Calls that wait throw PeerFailure when the peer
/// ended or the deadline passed, and the group's FaultError once there is one.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual std::string_view name() const = 0;  ///< "threads", "mpi", "nccl"
  /// Where the bytes are that it sends and receives.
  virtual MessageMemory& memory() { return host_memory(); }

  /// Offers the bytes, which must stay as they are until wait_taken says that the peer has them.
  /// Returns the message's number.
  virtual std::uint64_t send(int to, const Envelope& envelope,
                             std::span<const std::byte> bytes) = 0;
  virtual void wait_taken(int to, std::uint64_t message) = 0;
  /// Waits for the next message of that rank. Throws PeerFailure (Mismatch) when its envelope or
  /// size differs.
  virtual void receive(int from, const Envelope& envelope, std::span<std::byte> target) = 0;
  /// The same, added to the existing content.
  virtual void receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                           DType dtype) = 0;

  /// Waits until one of those ranks has sent a message that was not received. Returns the first in
  /// the list that has.
  virtual int wait_any(std::span<const int> from) = 0;

  /// Where ranks share memory: `data` = the sum over those ranks, including this one, with the bits
  /// of the direct algorithm, in one pass over everybody's buffer. False: not here, use the
  /// schedule.
  virtual bool shared_all_reduce(const Envelope& envelope, std::span<const int> members,
                                 std::span<std::byte> data, DType dtype);
  /// `data` = the sum over all ranks, as the transport's own library does it. Throws
  /// UnsupportedError when it has none.
  virtual void library_all_reduce(const Envelope& envelope, std::span<std::byte> data, DType dtype);

  /// A sign of life of a rank that does something else than communicate: those who wait for it
  /// count the deadline from here on. Repeat it after each piece of the work, not in a second
  /// thread: a rank that hangs has to fall silent. `doing`: "writing a checkpoint". It stays where
  /// it is. Any thread may say it.
  virtual void tell_busy(const char* doing) = 0;

  /// Tells every rank of the group. Returns the group's fault, which differs when an earlier one
  /// exists.
  virtual Fault raise(const Fault& fault) = 0;
  /// Withdraws messages that were sent and not received, before their memory goes. On return nobody
  /// reads it any more. Who waits for it gets the group's fault.
  virtual void abandon() = 0;
};

}  // namespace triptych::parallel
