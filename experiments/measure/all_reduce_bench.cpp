// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/all_reduce_bench.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/mapped.h"
#include "experiments/measure/link_timing.h"

namespace triptych::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBudget = 0.5, kSample = 100e-6;
constexpr int kLeastSamples = 7, kMostSamples = 2000, kMostCalls = 1000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One rank's part of the measurement.
class AllReduceTimer {
 public:
  AllReduceTimer(parallel::Communicator& communicator, parallel::Algorithm algorithm,
                 std::int64_t bytes)
      : communicator_(communicator),
        data_(static_cast<std::size_t>(bytes) / sizeof(float)),
        message_(communicator.memory().allocate(data_.size() * sizeof(float))),
        call_(communicator.prepare(
            {.algorithm = algorithm, .elements = std::ssize(data_), .label = "benchmark"})) {}

  /// Sums small integers, which are exact in any order, and looks at every element.
  bool check() {
    const auto n = static_cast<float>(communicator_.world_size());
    for (std::size_t i = 0; i < data_.size(); ++i)
      data_[i] = (static_cast<float>(communicator_.rank()) + 1) * static_cast<float>(i % 7);
    put();
    run();
    communicator_.memory().read(std::as_writable_bytes(std::span(data_)), message_->bytes());
    float wrong = 0;
    for (std::size_t i = 0; i < data_.size(); ++i)
      if (data_[i] != n * (n + 1) / 2 * static_cast<float>(i % 7)) wrong = 1;
    std::ranges::fill(data_, 0.0F);  // stays 0, however often it is summed
    put();
    return slowest(wrong) == 0;
  }

  Statistics time(int repeats) {
    const int calls = std::clamp(static_cast<int>(kSample / slowest(sample(3))), 1, kMostCalls);
    std::vector<double> samples;
    double total = 0;
    const auto enough = [&] {
      const auto count = static_cast<int>(samples.size());
      if (repeats > 0) return count >= repeats;
      return (total > kBudget && count >= kLeastSamples) || count >= kMostSamples;
    };
    while (!enough()) {
      samples.push_back(slowest(sample(calls)));
      total += samples.back() * calls;
    }
    return statistics_of(std::move(samples));
  }

 private:
  void put() { communicator_.memory().write(message_->bytes(), std::as_bytes(std::span(data_))); }
  void run() { communicator_.run_in_place(call_, message_->bytes().data()); }

  /// This rank's seconds per call.
  double sample(int calls) {
    communicator_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) run();
    return seconds_since(start) / calls;
  }

  /// The same on every rank, so that all agree when to stop.
  double slowest(double own) {
    std::vector<float> all(static_cast<std::size_t>(communicator_.world_size()));
    all[static_cast<std::size_t>(communicator_.rank())] = static_cast<float>(own);
    auto gather = communicator_.prepare(
        {.collective = parallel::Collective::AllGather, .elements = std::ssize(all)});
    communicator_.run(gather, reinterpret_cast<std::byte*>(all.data()));
    return std::ranges::max(all);
  }

  parallel::Communicator& communicator_;
  std::vector<float> data_;                           ///< on the host
  std::unique_ptr<parallel::MessageBuffer> message_;  ///< where the transport takes it
  parallel::PreparedCollective call_;
};

}  // namespace

AllReduceRow time_all_reduce(parallel::Communicator& communicator, parallel::Algorithm algorithm,
                             std::int64_t bytes, int repeats) {
  AllReduceTimer timer(communicator, algorithm, bytes);
  AllReduceRow row = {.transport = std::string(communicator.transport_name()),
                      .algorithm = std::string(to_string(algorithm)),
                      .ranks = communicator.world_size(),
                      .bytes = bytes};
  const bool before = timer.check();
  row.time = timer.time(repeats);
  row.right = timer.check() && before;
  return row;
}

AlphaBeta fit_alpha_beta(std::span<const AllReduceRow> rows) {
  auto samples = mapped<TransferSample>(rows, [&](const auto& row) {
    return TransferSample{static_cast<double>(row.bytes), row.time.median};
  });
  const auto [alpha, slope] = fit_line(samples);
  AlphaBeta fit = {alpha, 1 / slope, 0};
  for (const auto& [bytes, seconds] : samples)
    fit.error = std::max(fit.error, std::fabs((alpha + bytes * slope) / seconds - 1));
  return fit;
}

double add_stream_bytes_per_s(int threads, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
  std::vector<double> times;
  std::barrier<> together(threads);
  const auto work = [&](bool first) {
    std::vector<float> a(count, 1), b(count, 1);
    for (int i = 0; i < 2 + kLeastSamples; ++i) {
      together.arrive_and_wait();
      const auto start = Clock::now();
      for (std::size_t k = 0; k < count; ++k) a[k] += b[k];
      together.arrive_and_wait();
      if (first && i >= 2) times.push_back(seconds_since(start));
      asm volatile("" : : "r"(a.data()) : "memory");  // the sums are used
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work, false);
    work(true);
  }
  return 3 * static_cast<double>(bytes) * threads / statistics_of(std::move(times)).median;
}

}  // namespace triptych::measure
