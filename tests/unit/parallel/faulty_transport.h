// Ranks that misbehave at seeded points.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "core/base/error.h"
#include "parallel/comm/communicator.h"

namespace triptych::parallel {

inline constexpr Seconds kDeadline(1), kStall(1.8);
inline constexpr int kCollectives = 6;

/// Action of the culprit. Drop: a message of it vanishes. BusyDrop: one vanishes after the others
/// have waited for an earlier one.
enum class Injection {
  Throw,
  Leave,
  Slow,
  Stall,
  WrongSize,
  WrongOrder,
  Kill,
  Exit,
  Stop,
  Drop,
  Busy,
  BusyStop,
  BusyDrop
};

struct Scene {
  int world_size, culprit, collective;
  std::uint64_t operation;  ///< of the culprit's transport within that collective
  Injection injection;
  Algorithm algorithm;
  std::int64_t elements;
  int victim;  ///< of Drop: who does not get the message
  /// Counted down by every other rank's end, for which Stall waits. Null: it lasts for kStall.
  std::latch* noticed = nullptr;
};

/// The injection is drawn from the first six and Drop.
inline Scene draw_scene(unsigned seed, int world_size = 0) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned count) { return static_cast<int>(random() % count); };
  Scene scene;
  scene.world_size = world_size > 0 ? world_size : 2 + below(3);
  scene.culprit = below(static_cast<unsigned>(scene.world_size));
  scene.collective = below(kCollectives);
  scene.operation = static_cast<std::uint64_t>(below(6));
  // Deeds that cost a deadline are rare, for the test's sake.
  scene.injection = seed % 40 == 0 ? Injection::Stall : static_cast<Injection>(below(6));
  if (seed % 40 != 0 && scene.injection == Injection::Stall) scene.injection = Injection::Throw;
  if (seed % 8 == 5) scene.injection = Injection::Drop;
  scene.algorithm = static_cast<Algorithm>(below(4));
  scene.elements = 1 + below(5000);
  const auto others = static_cast<unsigned>(scene.world_size - 1);
  scene.victim = (scene.culprit + 1 + below(others)) % scene.world_size;
  return scene;
}

/// Thrown by a rank that leaves without a word.
struct Left {};

/// Misbehaves before one operation, or loses a message on its way to the victim.
class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const Scene& scene)
      : inner_(std::move(inner)), scene_(scene) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  std::string_view name() const override { return inner_->name(); }
  MessageMemory& memory() override { return inner_->memory(); }
  std::uint64_t send(int to, const Envelope& envelope, std::span<const std::byte> bytes) override {
    before(envelope);
    return inner_->send(to, envelope, bytes);
  }
  void wait_taken(int to, std::uint64_t message) override { inner_->wait_taken(to, message); }
  void receive(int from, const Envelope& envelope, std::span<std::byte> target) override {
    before(envelope);
    if (drops(from, envelope)) lose(from, envelope, target.size());
    inner_->receive(from, envelope, target);
  }
  void receive_add(int from, const Envelope& envelope, std::span<std::byte> target,
                   DType dtype) override {
    before(envelope);
    if (drops(from, envelope)) lose(from, envelope, target.size());
    inner_->receive_add(from, envelope, target, dtype);
  }
  int wait_any(std::span<const int> from) override { return inner_->wait_any(from); }
  void tell_busy(const char* doing) override { inner_->tell_busy(doing); }
  Fault raise(const Fault& fault) override { return inner_->raise(fault); }
  void abandon() override { inner_->abandon(); }

  bool injected() const { return injected_; }

 private:
  void before(const Envelope& envelope) {
    const auto collective = static_cast<std::uint64_t>(scene_.collective) + 1;
    if (scene_.injection == Injection::Drop) return;
    if (scene_.injection == Injection::BusyDrop) return work_at_first();
    if (rank() != scene_.culprit || envelope.sequence != collective || injected_) return;
    if (operation_++ != scene_.operation) return;
    injected_ = true;
    if (scene_.injection == Injection::Throw) throw IoError("injected");
    if (scene_.injection == Injection::Leave) throw Left();
    if (scene_.injection == Injection::Slow) std::this_thread::sleep_for(kDeadline / 10);
    if (scene_.injection == Injection::Stall) stall();
    if (scene_.injection == Injection::Kill) raise_signal(SIGKILL);
    if (scene_.injection == Injection::Stop) raise_signal(SIGSTOP);
    if (scene_.injection == Injection::Exit) _exit(3);
    if (scene_.injection == Injection::Busy || scene_.injection == Injection::BusyStop)
      work_for(kStall);
    if (scene_.injection == Injection::BusyStop) raise_signal(SIGSTOP);
  }

  void stall() {
    if (scene_.noticed != nullptr) return scene_.noticed->wait();
    std::this_thread::sleep_for(kStall);
  }

  void work_at_first() {
    if (rank() == scene_.culprit && operation_++ == 0) work_for(kStall);
  }

  /// Does something else than communicate, and says so.
  void work_for(Seconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      inner_->tell_busy("working");
      std::this_thread::sleep_for(kDeadline / 50);
    }
  }

  bool drops(int from, const Envelope& envelope) {
    const bool may = scene_.injection == Injection::Drop || scene_.injection == Injection::BusyDrop;
    const bool here = may && rank() == scene_.victim && from == scene_.culprit && !injected_ &&
                      envelope.sequence == static_cast<std::uint64_t>(scene_.collective) + 1;
    // The messages between two ranks are fewer than the operations of one.
    return here && operation_++ == scene_.operation / 3;
  }

  /// Takes the message off the transport, so that its sender is rid of it and this rank has
  /// nothing.
  void lose(int from, const Envelope& envelope, std::size_t bytes) {
    injected_ = true;
    std::vector<std::byte> nowhere(bytes);
    inner_->receive(from, envelope, nowhere);
  }

  static void raise_signal(int signal) { kill(getpid(), signal); }

  std::unique_ptr<Transport> inner_;
  Scene scene_;
  std::uint64_t operation_ = 0;
  bool injected_ = false;
};

/// Number `number` of the scene's collectives, as this rank calls it.
inline void call_collective(Communicator& communicator, const Scene& scene, int number) {
  const bool mine = communicator.rank() == scene.culprit && number == scene.collective;
  if (mine && scene.injection == Injection::WrongOrder) communicator.barrier();
  const bool longer = mine && scene.injection == Injection::WrongSize;
  std::vector<float> data(static_cast<std::size_t>(scene.elements + (longer ? 1 : 0)), 1);
  communicator.all_reduce(data, scene.algorithm);
}

}  // namespace triptych::parallel
