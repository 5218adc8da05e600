// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/thread_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
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
/// second. A receiver says that it reads before it asks whether the offers still stand. A sender
/// withdraws them before it asks whether somebody reads. So one of the two sees the other.
struct Mailbox {
  static constexpr std::uint64_t kOffers = 64;  ///< that may wait for the receiver
  alignas(64) std::atomic<std::uint64_t> offered = 0;
  std::atomic<std::uint64_t> last_sent = 0;  ///< the number in its envelope
  std::atomic<bool> withdrawn = false;
  alignas(64) std::atomic<std::uint64_t> taken = 0;
  std::atomic<bool> reading = false;
  std::array<Offer, kOffers> offers;
};

constexpr int kNobody = -1;
/// When a rank last showed progress, and its activity then: nullptr when it had come to the end of
/// a wait.
struct SignOfLife {
  std::atomic<Clock::time_point> time = Clock::time_point();
  std::atomic<const char*> doing = nullptr;

  void give(const char* what) {
    doing = what;
    time = Clock::now();
  }
};

constexpr std::uint64_t kOnItsWay = ~std::uint64_t{0};  ///< for a message that the links move

/// Wait of a rank that has lasted for some time.
struct Wait {
  std::atomic<int> peer = kNobody;
  /// The number of the peer's, or kOnItsWay. 0: something else.
  std::atomic<std::uint64_t> message = 0;
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct ThreadGroup::Shared {
  Shared(int ranks, Seconds longest, std::unique_ptr<DeviceLinks> between)
      : world_size(ranks),
        timeout(longest),
        links(std::move(between)),
        mailboxes(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)),
        ended(static_cast<std::size_t>(ranks)),
        waits(static_cast<std::size_t>(ranks)),
        signs(static_cast<std::size_t>(ranks)) {}

  /// The message that `to` waits for, which `from` has sent and which is not there: 0 when there is
  /// no such.
  std::uint64_t lost_between(int from, int to) const {
    const auto& wait = waits[static_cast<std::size_t>(to)];
    const std::uint64_t number = wait.message;
    if (wait.peer != from || number == 0) return 0;
    const Mailbox& box = mailbox(from, to);
    return box.last_sent >= number && box.offered == box.taken ? number : 0;
  }

  /// Why `peer` does not answer `waiter`: it has stopped, or the last of those who wait for one
  /// another has, or a message between two of them was lost.
  PeerFailure root_of(int waiter, int peer, Seconds waited) const {
    for (int i = 0; i < world_size; ++i) {
      if (const auto number = lost_between(peer, waiter)) {
        return lost_message(
            peer, waiter, number,
            fmt::format("rank {} has waited for it for {:.1f} s", waiter, waited.count()));
      }
      const auto& wait = waits[static_cast<std::size_t>(waiter)];
      if (wait.peer == peer && wait.message == kOnItsWay) {
        const auto link = links->oldest_under_way().value_or(RankPair{peer, waiter});
        return not_moved(link.from, link.to, fmt::format("not within {:.1f} s", waited.count()));
      }
      const int next = waits[static_cast<std::size_t>(peer)].peer;
      if (next == kNobody) break;
      waiter = std::exchange(peer, next);
    }
    return stalled(peer, waited, "");
  }

  /// Throws when the rank at the root of a wait since `since` has been silent for too long.
  /// Otherwise the wait counts from that rank's last sign of life.
  void require_life(int waiter, int peer, Clock::time_point& since) const {
    const auto now = Clock::now();
    if (now - since <= timeout) return;
    auto failure = root_of(waiter, peer, now - since);
    if (failure.cause == Cause::Stalled) {
      const auto& sign = signs[static_cast<std::size_t>(failure.peer)];
      const Clock::time_point last = sign.time;
      const char* doing = last >= since ? sign.doing.load() : nullptr;
      since = std::max(since, last);
      if (now - since <= timeout) return;
      failure = stalled(failure.peer, now - since, doing == nullptr ? "" : doing);
    }
    throw failure;
  }

  /// The links have not moved a message.
  PeerFailure not_moved(int from, int to, const std::string& why) const {
    return {from, Cause::Lost,
            fmt::format("{} did not move it to rank {}: {}", links->name(), to, why), Seconds(0)};
  }

  const Mailbox& mailbox(int from, int to) const {
    return const_cast<Shared&>(*this).mailbox(from, to);
  }
  Mailbox& mailbox(int from, int to) {
    return mailboxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(world_size) +
                     static_cast<std::size_t>(to)];
  }

  int world_size;
  Seconds timeout;
  std::unique_ptr<DeviceLinks> links;  ///< nullptr: ranks read each other's memory
  std::vector<Mailbox> mailboxes;
  std::vector<std::atomic<bool>> ended;
  std::vector<Wait> waits;        ///< by rank
  std::vector<SignOfLife> signs;  ///< by rank
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<Fault> fault;  // guarded by mutex, set once, before `failed`
};

namespace {

class ThreadTransport : public Transport {
 public:
  ThreadTransport(ThreadGroup::Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  ~ThreadTransport() override { shared_.ended[static_cast<std::size_t>(rank_)] = true; }

  int rank() const override { return rank_; }
  int world_size() const override { return shared_.world_size; }
  std::string_view name() const override {
    return shared_.links ? shared_.links->name() : "threads";
  }
  MessageMemory& memory() override {
    return shared_.links ? shared_.links->memory(rank_) : host_memory();
  }

  std::uint64_t send(int to, const Envelope& envelope, std::span<const std::byte> bytes) override {
    Mailbox& box = shared_.mailbox(rank_, to);
    const std::uint64_t number = box.offered.load(std::memory_order_relaxed);
    if (number >= Mailbox::kOffers) wait_taken(to, number - Mailbox::kOffers);
    envelope_ = envelope;
    box.offers[number % Mailbox::kOffers] = {envelope, bytes};
    box.last_sent.store(envelope.number, std::memory_order_relaxed);
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
      if (shared_.links) return move(from, target, source);
      std::memcpy(target.data(), source.data(), source.size());
    });
  }

  void receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                   DType dtype) override {
    take(from, envelope, target.size(), [&](std::span<const std::byte> source) {
      if (!shared_.links) return add_to(target, source, dtype);
      if (!arriving_ || arriving_->bytes().size() < source.size())
        arriving_ = memory().allocate(source.size());
      const auto arrived = arriving_->bytes().first(source.size());
      move(from, arrived, source);
      memory().add(target, arrived, dtype);
    });
  }

  int wait_any(std::span<const int> from) override {
    const int* found = nullptr;
    wait_for(from.front(), [&] {
      for (const int& peer : from) {
        const Mailbox& box = shared_.mailbox(peer, rank_);
        // Checked before its messages are: messages sent before its end still count.
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
    if (shared_.links) return false;
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
                   static_cast<std::size_t>(chunk.size()), dtype);
    readings.clear();
    for (const int member : members)
      if (member != rank_) ++shared_.mailbox(member, rank_).taken;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] != rank_) wait_taken(members[i], sent[i]);
    return true;
  }

  /// Rank 0 begins it for all, when all have come: so the links get everything in one order.
  void library_all_reduce(const Envelope& envelope, std::span<std::byte> data,
                          DType dtype) override {
    if (!shared_.links) return Transport::library_all_reduce(envelope, data, dtype);
    if (rank_ != 0) return wait_taken(0, send(0, envelope, data));
    std::vector<std::span<std::byte>> buffers = {data};
    for (int peer = 1; peer < world_size(); ++peer) {
      auto& box = next_offer(peer, envelope, data.size());
      buffers.emplace_back(offered_bytes(box), data.size());
    }
    wait_for_links(world_size() - 1, [&] { return shared_.links->try_all_reduce(buffers, dtype); });
    for (int peer = world_size() - 1; peer >= 0; --peer)
      wait_for_links(peer, [&] { return shared_.links->arrived(peer); });
    for (int peer = 1; peer < world_size(); ++peer) ++shared_.mailbox(peer, rank_).taken;
  }

  void tell_busy(const char* doing) override {
    shared_.signs[static_cast<std::size_t>(rank_)].give(doing);
  }

  Fault raise(const Fault& fault) override {
    {
      const std::lock_guard lock(shared_.mutex);
      if (!shared_.fault) shared_.fault = fault;
      shared_.failed = true;
    }
    if (shared_.links) shared_.links->abort();  // all know why by now
    return *shared_.fault;
  }

  void abandon() override {
    for (int to = 0; to < world_size(); ++to) {
      Mailbox& box = shared_.mailbox(rank_, to);
      box.withdrawn = true;
      // The links do not touch memory that they read any more when they are aborted.
      while (box.reading && !shared_.links) std::this_thread::yield();
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

  /// Has the links move a message of that rank to this one.
  void move(int from, std::span<std::byte> target, std::span<const std::byte> source) {
    wait_for_links(from, [&] { return shared_.links->try_move(from, rank_, target, source); });
    wait_for_links(from, [&] { return shared_.links->arrived(rank_); });
  }

  template <class Ready>
  void wait_for_links(int peer, const Ready& ready) {
    try {
      wait_for(peer, ready, kOnItsWay);
    } catch (const FaultError&) {
      shared_.links->abort();  // before the memory of pending messages is freed
      throw;
    } catch (const CommError& error) {
      if (shared_.failed) throw_fault();  // which is why they were aborted
      throw shared_.not_moved(peer, rank_, error.what());
    }
  }

  [[noreturn]] void throw_fault() const {
    const std::lock_guard lock(shared_.mutex);
    throw FaultError(*shared_.fault);
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
    wait_for(
        from, [&] { return box.offered.load() > number; }, envelope.number);
    const auto& theirs = offer_of(box).envelope;
    if (envelope.number > 0 && theirs.number > envelope.number)
      throw lost_message(from, rank_, envelope.number, "a later one came");
    if (const auto other = mismatch(from, theirs, envelope)) throw *other;
    TRIPTYCH_ASSERT(offer_of(box).bytes.size() == size);
    return box;
  }

  /// Says that this rank reads a mailbox, until it ends, also when the reader throws.
  struct Reading {
    explicit Reading(Mailbox& mailbox) : box(mailbox) { box.reading = true; }
    ~Reading() { box.reading = false; }
    Mailbox& box;
  };

  /// A peer will not receive a message when it is in another collective, as its own next message
  /// shows.
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

  /// Spins at first, for messages within microseconds, then lets other threads run.
  /// `message` is the number of the awaited message, when it is one of the peer.
  template <class Ready>
  void wait_for(int peer, const Ready& ready, std::uint64_t message = 0) const {
    constexpr int spins = 2000, yields = 200;
    for (int i = 0; i < spins; ++i) {
      if (ready()) return;
      relax();
    }
    auto since = Clock::now();
    // Stays when the wait fails, so that others who wait in a chain find its root.
    auto& wait = shared_.waits[static_cast<std::size_t>(rank_)];
    wait.message = message;
    wait.peer = peer;
    for (int i = 0;; ++i) {
      if (ready()) {
        shared_.signs[static_cast<std::size_t>(rank_)].give(nullptr);
        wait.peer = kNobody;
        return;
      }
      check(peer, since, ready);
      if (i < yields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  template <class Ready>
  void check(int peer, Clock::time_point& since, const Ready& ready) const {
    if (shared_.failed) throw_fault();
    // Messages that a rank sent before it ended still count.
    if (shared_.ended[static_cast<std::size_t>(peer)] && !ready()) {
      if (const auto number = shared_.lost_between(peer, rank_))
        throw lost_message(peer, rank_, number, fmt::format("rank {} has ended since", peer));
      throw PeerFailure{peer, Cause::Died, "", Clock::now() - since};
    }
    shared_.require_life(rank_, peer, since);
  }

  ThreadGroup::Shared& shared_;
  int rank_;
  Envelope envelope_;                        // of the last send
  std::unique_ptr<MessageBuffer> arriving_;  // to be added
};

}  // namespace

ThreadGroup::ThreadGroup(int world_size, Seconds timeout, std::unique_ptr<DeviceLinks> links)
    : shared_(std::make_unique<Shared>(world_size, timeout, std::move(links))) {
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
  run_ranks(group, body);
}

void run_ranks(RankGroup& group, const std::function<void(Communicator&)>& body) {
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
  const auto ranks = group.local_ranks();
  threads.reserve(ranks.size());
  for (const int rank : ranks) threads.emplace_back(run, rank);
  threads.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace triptych::parallel
