// Runs in addition to the data between processes: the present ranks, the waiting ranks, and the
// group's fault.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/transport.h"

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

  /// Watches the process from now on. Those of other hosts are not seen.
  void add(int rank, const ProcessIdentity& process);
  /// Ranks that were added and have ended.
  std::vector<int> ended() const;

 private:
  struct Entry {
    int rank = -1;
    int descriptor = -1;  // of pidfd_open. -1: had ended before
  };
  std::vector<Entry> entries_;
};

/// Throws CommError, naming the call, unless MPI says that it went well.
void check_mpi(int code, const char* call);

inline constexpr int kControlTag = 1, kHeaderTag = 2, kDataTag = 3;  ///< of MPI messages

class MpiControl {
 public:
  /// Greets all ranks and waits for their greetings. Throws FaultError when one does not come
  /// within the deadline.
  MpiControl(MPI_Comm comm, Seconds timeout);
  /// Tells the others that this rank leaves, unless there was a fault.
  ~MpiControl();
  MpiControl(const MpiControl&) = delete;
  MpiControl& operator=(const MpiControl&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  Seconds timeout() const { return timeout_; }

  /// Receives the reports of others. Throws the group's FaultError, and PeerFailure when a process
  /// has died: of any rank that had not left, of `peer` also when it had.
  void poll(int peer);
  /// Tells all that this rank waits for `peer`, for the message with that number unless it is 0.
  /// nullopt: it no longer waits.
  void tell_waiting(std::optional<int> peer, std::uint64_t message = 0);
  /// This rank has sent the message with that number to `peer`. Reports it when `peer` waits for
  /// it.
  void note_sent(int peer, std::uint64_t message);
  /// Throws when the rank at the root of a wait for `peer` since `since` has been silent for longer
  /// than the deadline. Otherwise the wait counts from that rank's last sign of life.
  void require_life(int peer, std::chrono::steady_clock::time_point& since) const;
  /// As Transport::tell_busy: tells all, unless it just has.
  void tell_busy(const char* doing);
  /// As Transport::raise. One rank decides which fault came first: the lowest that answers.
  Fault raise(const Fault& fault);

 private:
  enum class Kind : std::int32_t { Hello, WaitsFor, HasSent, Busy, Raise, Announce, Leaves };
  /// Plain data. Texts are cut.
  struct Message {
    Kind kind = Kind::Hello;
    std::int32_t peer = -1;     // of WaitsFor. Of HasSent: the receiver
    std::uint64_t message = 0;  // its number
    ProcessIdentity process;
    std::int32_t culprit = -1, cause = 0, noticed_by = -1;
    double waited = 0;
    std::array<char, 256> operation = {};  // of Busy: the activity
    std::array<char, 512> detail = {};
  };
  struct Outgoing {
    int to;
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;

    Outgoing(int receiver, const Message& text) : to(receiver), message(text) {}
  };
  struct Peer {
    bool here = false, left = false, died = false;
    std::optional<int> waits_for;
    std::uint64_t awaited = 0;  // the message that it waits for
    int claimed_by = -1;        // who has said that it has sent it a message, and which
    std::uint64_t claimed = 0;
    std::uint64_t sent = 0;  // the last message of this rank to it
    std::chrono::steady_clock::time_point sign_of_life = {};
    std::string doing;  // at its sign of life

    void give_sign(const char* what) {
      sign_of_life = std::chrono::steady_clock::now();
      doing = what;
    }
  };

  /// Why `peer` does not answer this rank: it has stopped, or the last of those who wait for one
  /// another has, or a message between two of them was lost.
  PeerFailure root_of(int peer, Seconds waited) const;
  static Message message_of(Kind kind, const Fault& fault);
  static Fault fault_of(const Message& message);
  void send(int to, const Message& message);
  void send_to_all(const Message& message);
  void receive_all();
  void handle(int from, const Message& message);
  /// When the rank waits for a message that this one has sent, all shall know that.
  void claim_sent(int to);
  void look_for_the_dead();
  /// Lets the last messages leave, except those to ranks that do not answer.
  void flush();
  /// The rank that decides, of those who may. `tried` have not answered.
  int arbiter(const Fault& fault, const std::vector<bool>& tried) const;

  MPI_Comm comm_;
  Seconds timeout_;
  int rank_ = 0, world_size_ = 1;
  std::vector<Peer> peers_;
  ProcessWatch watch_;
  std::chrono::steady_clock::time_point told_busy_ = {};
  std::optional<Fault> fault_;
  std::list<Outgoing> outgoing_;
  Message incoming_;
  MPI_Request receiving_ = MPI_REQUEST_NULL;
};

}  // namespace triptych::parallel
