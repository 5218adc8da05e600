// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/thread_group.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "parallel/comm/sum.h"

namespace triptych::parallel {
namespace {

using Clock = std::chrono::steady_clock;

struct Offer {
  Envelope envelope;
  std::span<const std::byte> bytes;
};

/// Offers of one rank to another, in order. The sender writes the first line, the receiver the
/// second. A receiver says that it reads before it asks whether the offers still stand; a sender
/// withdraws them before it asks whether somebody reads. So one of the two sees the other.
struct Mailbox {
  static constexpr std::uint64_t kOffers = 64;  ///< that may wait to be taken
  alignas(64) std::atomic<std::uint64_t> offered = 0;
  std::atomic<bool> withdrawn = false;
  alignas(64) std::atomic<std::uint64_t> taken = 0;
  std::atomic<bool> reading = false;
  std::array<Offer, kOffers> offers;
};

constexpr int kNobody = -1;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct ThreadGroup::Shared {
  Shared(int ranks, Seconds longest)
      : world_size(ranks),
        timeout(longest),
        mailboxes(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)),
        ended(static_cast<std::size_t>(ranks)),
        waits_for(static_cast<std::size_t>(ranks)) {
    for (auto& peer : waits_for) peer = kNobody;
  }

  /// Who keeps `peer` from answering: itself, or the last of those who wait for one another.
  int root_of(int peer) const {
    for (int links = 0; links < world_size; ++links) {
      const int next = waits_for[static_cast<std::size_t>(peer)];
      if (next == kNobody) break;
      peer = next;
    }
    return peer;
  }

  Mailbox& mailbox(int from, int to) {
    return mailboxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(world_size) +
                     static_cast<std::size_t>(to)];
  }

  int world_size;
  Seconds timeout;
  std::vector<Mailbox> mailboxes;
  std::vector<std::atomic<bool>> ended;
  std::vector<std::atomic<int>> waits_for;  ///< by rank: for whom, when it has waited for long
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<Fault> fault;  // guarded by mutex; set once, before `failed`
};

namespace {

class ThreadTransport : public Transport {
 public:
  ThreadTransport(ThreadGroup::Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  ~ThreadTransport() override { shared_.ended[static_cast<std::size_t>(rank_)] = true; }

  int rank() const override { return rank_; }
  int world_size() const override { return shared_.world_size; }
  std::string_view name() const override { return "threads"; }

  std::uint64_t send(int to, const Envelope& envelope, std::span<const std::byte> bytes) override {
    Mailbox& box = shared_.mailbox(rank_, to);
    const std::uint64_t number = box.offered.load(std::memory_order_relaxed);
    if (number >= Mailbox::kOffers) wait_taken(to, number - Mailbox::kOffers);
    envelope_ = envelope;
    box.offers[number % Mailbox::kOffers] = {envelope, bytes};
    box.offered = number + 1;
    return number;
  }

  void wait_taken(int to, std::uint64_t message) override {
    const Mailbox& box = shared_.mailbox(rank_, to);
    wait_for(to, [&] {
      if (box.taken.load() > message) return true;
      const auto other = other_collective(to);
      // It may have taken the message since, and gone on to its next collective.
      if (other && box.taken.load() <= message) throw *other;
      return false;
    });
  }

  void receive(int from, const Envelope& envelope, std::span<std::byte> target) override {
    take(from, envelope, target.size(), [&](std::span<const std::byte> source) {
      std::memcpy(target.data(), source.data(), source.size());
    });
  }

  void receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                   DType dtype) override {
    take(from, envelope, target.size(),
         [&](std::span<const std::byte> source) { add_to(target, source, dtype); });
  }

  int wait_any(std::span<const int> from) override {
    const int* found = nullptr;
    wait_for(from.front(), [&] {
      for (const int& peer : from) {
        const Mailbox& box = shared_.mailbox(peer, rank_);
        // Asked before its messages are: what it sent before it ended still counts.
        const bool ended = shared_.ended[static_cast<std::size_t>(peer)];
        found = &peer;
        if (box.offered.load() > box.taken.load(std::memory_order_relaxed)) return true;
        if (ended) throw PeerFailure{peer, Cause::Died, "", Seconds(0)};
      }
      return false;
    });
    return *found;
  }

  /// Each rank adds up its chunk and writes the sum into all buffers, while their owners wait.
  bool shared_all_reduce(const Envelope& envelope, std::span<const int> members,
                         std::span<std::byte> data, DType dtype) override {
    if (members.size() == 1 || data.empty()) return true;
    std::vector<std::byte*> buffers;
    std::vector<std::uint64_t> sent(members.size());
    std::size_t own = 0;
    buffers.reserve(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == rank_) own = i;
      if (members[i] != rank_) sent[i] = send(members[i], envelope, data);
    }
    std::vector<std::unique_ptr<Reading>> readings;
    for (const int member : members) {
      buffers.push_back(data.data());
      if (member == rank_) continue;
      auto& box = next_offer(member, envelope, data.size());
      readings.push_back(std::make_unique<Reading>(box));
      if (box.withdrawn) wait_for(member, [] { return false; });  // for the fault
      buffers.back() = offered_bytes(box);
    }
    const auto elements = static_cast<std::int64_t>(data.size() / dtype_size(dtype));
    const auto chunk = part_of({0, elements}, static_cast<std::int64_t>(own),
                               static_cast<std::int64_t>(members.size()));
    sum_everywhere(buffers, static_cast<std::size_t>(chunk.begin),
                   static_cast<std::size_t>(chunk.elements()), dtype);
    readings.clear();
    for (const int member : members)
      if (member != rank_) ++shared_.mailbox(member, rank_).taken;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] != rank_) wait_taken(members[i], sent[i]);
    return true;
  }

  Fault raise(const Fault& fault) override {
    const std::lock_guard lock(shared_.mutex);
    if (!shared_.fault) shared_.fault = fault;
    shared_.failed = true;
    return *shared_.fault;
  }

  void abandon() override {
    for (int to = 0; to < world_size(); ++to) {
      Mailbox& box = shared_.mailbox(rank_, to);
      box.withdrawn = true;
      while (box.reading) std::this_thread::yield();
    }
  }

 private:
  template <class Use>
  void take(int from, const Envelope& envelope, std::size_t size, const Use& use) {
    Mailbox& box = next_offer(from, envelope, size);
    {
      const Reading until_the_end(box);
      if (box.withdrawn) wait_for(from, [] { return false; });  // for the fault
      use(offer_of(box).bytes);
    }
    ++box.taken;
  }

  static const Offer& offer_of(const Mailbox& box) {
    return box.offers[box.taken.load(std::memory_order_relaxed) % Mailbox::kOffers];
  }
  /// The sender's own memory, which it lets others write in shared_all_reduce.
  static std::byte* offered_bytes(const Mailbox& box) {
    return const_cast<std::byte*>(offer_of(box).bytes.data());
  }

  /// Waits until the next offer of that rank is there, which must be of this collective and size.
  Mailbox& next_offer(int from, const Envelope& envelope, std::size_t size) {
    Mailbox& box = shared_.mailbox(from, rank_);
    const std::uint64_t number = box.taken.load(std::memory_order_relaxed);
    wait_for(from, [&] { return box.offered.load() > number; });
    if (const auto other = mismatch(from, offer_of(box).envelope, envelope)) throw *other;
    TRIPTYCH_ASSERT(offer_of(box).bytes.size() == size);
    return box;
  }

  /// Says that this rank reads a mailbox, until it ends, also when the reader throws.
  struct Reading {
    explicit Reading(Mailbox& mailbox) : box(mailbox) { box.reading = true; }
    ~Reading() { box.reading = false; }
    Mailbox& box;
  };

  /// A peer will not take what it is sent when it is in another collective, as its own next
  /// message shows.
  std::optional<PeerFailure> other_collective(int peer) const {
    const Mailbox& box = shared_.mailbox(peer, rank_);
    const std::uint64_t next = box.taken.load(std::memory_order_relaxed);
    if (box.offered.load() <= next) return std::nullopt;
    // Messages of their own pass one another.
    const auto& theirs = box.offers[next % Mailbox::kOffers].envelope;
    if (((theirs.sequence | envelope_.sequence) & kMessageBit) != 0) return std::nullopt;
    // So do collectives of different groups.
    if (theirs.sequence >> 48 != envelope_.sequence >> 48) return std::nullopt;
    return mismatch(peer, box.offers[next % Mailbox::kOffers].envelope, envelope_);
  }

  /// Spins at first, for what comes within microseconds; then lets other threads run.
  template <class Ready>
  void wait_for(int peer, const Ready& ready) const {
    constexpr int spins = 2000, yields = 200;
    for (int i = 0; i < spins; ++i) {
      if (ready()) return;
      relax();
    }
    const auto start = Clock::now();
    // Stays when the wait fails, so that others who wait in a chain find its root.
    auto& waits_for = shared_.waits_for[static_cast<std::size_t>(rank_)];
    waits_for = peer;
    for (int i = 0;; ++i) {
      if (ready()) {
        waits_for = kNobody;
        return;
      }
      check(peer, Clock::now() - start, ready);
      if (i < yields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  template <class Ready>
  void check(int peer, Seconds waited, const Ready& ready) const {
    if (shared_.failed) {
      const std::lock_guard lock(shared_.mutex);
      throw FaultError(*shared_.fault);
    }
    // What a rank sent before it ended still counts.
    if (shared_.ended[static_cast<std::size_t>(peer)] && !ready())
      throw PeerFailure{peer, Cause::Died, "", waited};
    if (waited > shared_.timeout)
      throw PeerFailure{shared_.root_of(peer), Cause::Stalled, "", waited};
  }

  ThreadGroup::Shared& shared_;
  int rank_;
  Envelope envelope_;  // of the last send
};

}  // namespace

ThreadGroup::ThreadGroup(int world_size, Seconds timeout)
    : shared_(std::make_unique<Shared>(world_size, timeout)) {
  if (world_size < 1) throw InvalidArgument(fmt::format("{} ranks; at least 1", world_size));
}

ThreadGroup::~ThreadGroup() = default;

int ThreadGroup::world_size() const { return shared_->world_size; }

std::vector<int> ThreadGroup::local_ranks() const {
  std::vector<int> ranks(static_cast<std::size_t>(world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::unique_ptr<Transport> ThreadGroup::transport(int rank) {
  return std::make_unique<ThreadTransport>(*shared_, rank);
}

void run_ranks(int world_size, const CommunicatorOptions& options,
               const std::function<void(Communicator&)>& body) {
  ThreadGroup group(world_size, options.timeout);
  std::mutex mutex;
  std::exception_ptr first;  // guarded by mutex
  const auto keep = [&] {
    const std::lock_guard lock(mutex);
    if (!first) first = std::current_exception();
  };
  const auto run = [&](int rank) {
    Communicator communicator(group.transport(rank));
    try {
      body(communicator);
    } catch (const FaultError&) {
      keep();
    } catch (const std::exception& error) {
      keep();
      communicator.fail(error.what());
    }
  };
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) threads.emplace_back(run, rank);
  threads.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace triptych::parallel
