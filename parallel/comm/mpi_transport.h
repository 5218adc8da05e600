// Messages between processes. The first one of a collective to a rank follows a header that
// identifies the collective. Short ones travel with it. The others are data alone, received where
// they belong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "parallel/comm/mpi_control.h"
#include "parallel/comm/transport.h"

namespace triptych::parallel {

class MpiTransport : public Transport {
 public:
  /// All processes of `comm` make one at the same time.
  MpiTransport(MPI_Comm comm, Seconds timeout);
  ~MpiTransport() override;

  int rank() const override { return control_.rank(); }
  int world_size() const override { return control_.world_size(); }
  std::string_view name() const override { return "mpi"; }

  std::uint64_t send(int to, const Envelope& envelope, std::span<const std::byte> bytes) override;
  void wait_taken(int to, std::uint64_t message) override;
  void receive(int from, const Envelope& envelope, std::span<std::byte> target) override;
  void receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                   DType dtype) override;
  int wait_any(std::span<const int> from) override;
  void library_all_reduce(const Envelope& envelope, std::span<std::byte> data,
                          DType dtype) override;
  void tell_busy(const char* doing) override;
  Fault raise(const Fault& fault) override;
  void abandon() override;

 private:
  /// Bytes that travel with the header: together they fit into MPI's eager message size.
  static constexpr std::size_t kShort = 3072;
  static constexpr std::uint64_t kSends = 64;  ///< to one rank that may be under way

  struct Header {
    Envelope envelope;
    std::array<std::byte, kShort> data = {};
  };
  struct Outgoing {
    Header header;
    MPI_Request header_request = MPI_REQUEST_NULL;
    MPI_Request data_request = MPI_REQUEST_NULL;
  };
  struct Peer {
    std::vector<Outgoing> sends;  // by message number, modulo kSends
    std::uint64_t sent = 0;
    std::uint64_t announced = 0;  // sequence number of the last header to it
    Header incoming;
    MPI_Request receiving = MPI_REQUEST_NULL;  // of the next header from it
    bool arrived = false;                      // `incoming` is there and was not looked at
    std::uint64_t entered = 0;                 // sequence number of the last header from it
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void expect_header(int from);
  bool header_arrived(int from);
  /// Waits for the header of this collective. Returns the data that came with it, or nothing.
  std::span<const std::byte> enter(int from, const Envelope& envelope, std::size_t bytes);
  void receive_data(int from, const Envelope& envelope, std::span<std::byte> target);
  bool test(MPI_Request& request) const;
  /// `message` is the number of the awaited message, when it is one of the peer.
  void wait_for(int peer, const std::function<bool()>& is_ready, std::uint64_t message = 0);
  void check(int peer, std::chrono::steady_clock::time_point& since);

  MPI_Comm comm_;
  /// Held in calls of MPI, which takes one at a time: another thread may raise a fault while this
  /// one waits.
  std::mutex calls_;
  MpiControl control_;
  std::vector<Peer> peers_;
  std::vector<std::byte> message_;  ///< received, to be added
  Envelope current_;                ///< of the collective that this rank is in
};

}  // namespace triptych::parallel
