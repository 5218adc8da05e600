// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/measured_bandwidth.h"

#include <fmt/core.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <thread>

#include "backends/host/host_device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/measured_bandwidth.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

constexpr std::size_t kUnroll = 4;

}  // namespace

/// b = a, so often. `count` is a multiple of 4 of the widest vectors, arrays are aligned.
void run_copy(const float* HWY_RESTRICT a, float* HWY_RESTRICT b, std::size_t count, int times) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  for (int t = 0; t < times; ++t) {
    for (std::size_t i = 0; i < count; i += kUnroll * lanes) {
      for (std::size_t u = 0; u < kUnroll; ++u) {
        hn::Store(hn::Load(d, a + i + u * lanes), d, b + i + u * lanes);
      }
    }
    asm volatile("" : : "r"(b) : "memory");  // each pass counts
  }
}

/// a = b + 0.5 c, likewise.
void run_triad(float* HWY_RESTRICT a, const float* HWY_RESTRICT b, const float* HWY_RESTRICT c,
               std::size_t count, int times) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const auto s = hn::Set(d, 0.5F);
  for (int t = 0; t < times; ++t) {
    for (std::size_t i = 0; i < count; i += kUnroll * lanes) {
      for (std::size_t u = 0; u < kUnroll; ++u) {
        const std::size_t k = i + u * lanes;
        hn::Store(hn::MulAdd(s, hn::Load(d, c + k), hn::Load(d, b + k)), d, a + k);
      }
    }
    asm volatile("" : : "r"(a) : "memory");
  }
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(run_copy);
HWY_EXPORT(run_triad);

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindows = 5;
constexpr auto kWindow = std::chrono::milliseconds(20);
constexpr double kArrays = 3;
/// Bytes that one look at the clock is worth.
constexpr std::size_t kPassBytes = 1 << 20;
/// Elements that every instruction set's unrolled loop divides.
constexpr std::size_t kGrain = 512;
constexpr double kLeastMemoryBytes = 128.0 * 1048576, kMostMemoryBytes = 1024.0 * 1048576;

/// One thread's arrays of a size.
struct Arrays {
  std::size_t count;
  int times;  ///< in one pass
  hwy::AlignedFreeUniquePtr<float[]> a, b, c;

  explicit Arrays(double bytes_of_all)
      : count(std::max<std::size_t>(
                  1, static_cast<std::size_t>(bytes_of_all / kArrays / sizeof(float)) / kGrain) *
              kGrain),
        times(static_cast<int>(std::max<std::size_t>(1, kPassBytes / (count * sizeof(float))))),
        a(hwy::AllocateAligned<float>(count)),
        b(hwy::AllocateAligned<float>(count)),
        c(hwy::AllocateAligned<float>(count)) {
    for (auto* array : {a.get(), b.get(), c.get()}) std::fill_n(array, count, 1.0F);
  }
  void copy() { HWY_DYNAMIC_DISPATCH(run_copy)(a.get(), b.get(), count, times); }
  void triad() { HWY_DYNAMIC_DISPATCH(run_triad)(a.get(), b.get(), c.get(), count, times); }
};

/// How often each thread did something in a window that began for all at once.
struct Window {
  double passes = 0;
  std::chrono::duration<double> elapsed{0};
};

struct Rates {
  double copy = 0, triad = 0;  ///< bytes/s of all threads, the best window's
};

/// All threads at work on their own arrays.
class StreamTimer {
 public:
  StreamTimer(int threads, double bytes_per_thread)
      : bytes_(bytes_per_thread),
        windows_(static_cast<std::size_t>(threads)),
        start_(threads, Start{begin_}) {}

  Rates run() {
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < windows_.size(); ++i) {
        others.emplace_back([this, i] { work(i); });
      }
      work(0);
    }
    return rates_;
  }

 private:
  struct Start {
    Clock::time_point& begin;
    void operator()() noexcept { begin = Clock::now(); }
  };

  /// The rate of all threads in the window that just ended.
  double rate(double bytes_per_pass) const {
    double passes = 0, seconds = 0;
    for (const auto& window : windows_) {
      passes += window.passes;
      seconds = std::max(seconds, window.elapsed.count());
    }
    return passes * bytes_per_pass / seconds;
  }

  /// Best of the windows of one loop. `moved` arrays' bytes count.
  void measure(std::size_t thread, const Arrays& arrays, const std::function<void()>& pass,
               double moved, double& best) {
    pass();
    for (int w = 0; w < kWindows; ++w) {
      start_.arrive_and_wait();
      Window window;
      do {
        pass();
        ++window.passes;
        window.elapsed = Clock::now() - begin_;
      } while (window.elapsed < kWindow);
      windows_[thread] = window;
      start_.arrive_and_wait();
      const double bytes = moved * arrays.times * static_cast<double>(arrays.count) * sizeof(float);
      if (thread == 0) best = std::max(best, rate(bytes));
      start_.arrive_and_wait();  // nobody writes a window that is being read
    }
  }

  void work(std::size_t thread) {
    Arrays arrays(bytes_);
    measure(
        thread, arrays, [&] { arrays.copy(); }, 2, rates_.copy);
    measure(
        thread, arrays, [&] { arrays.triad(); }, 3, rates_.triad);
  }

  double bytes_;
  std::vector<Window> windows_;  ///< by thread
  Clock::time_point begin_ = Clock::now();
  std::barrier<Start> start_;
  Rates rates_;
};

LevelBandwidth measure_level(const std::string& level, int threads, double capacity,
                             double bytes_per_thread) {
  const auto rates = StreamTimer(threads, bytes_per_thread).run();
  return {.level = level,
          .capacity_bytes = capacity,
          .array_bytes = std::round(bytes_per_thread) * threads,
          .copy_bytes_per_s = rates.copy,
          .triad_bytes_per_s = rates.triad};
}

}  // namespace

std::vector<LevelBandwidth> measured_bandwidths(int threads, const std::vector<Cache>& caches) {
  // More threads than processors only take turns.
  threads = std::min(threads, usable_processors());
  std::vector<LevelBandwidth> levels;
  double before = 0, all = 0;  // of a thread's share of the level before, and of all levels
  for (const auto& cache : caches) {
    const int sharers = std::min(cache.sharers, threads);
    const int instances = (threads + sharers - 1) / sharers;
    const double share = cache.bytes / sharers;
    // A level that has no more than those before it cannot be distinguished from them.
    if (share / 2 <= before) continue;
    levels.push_back(measure_level(fmt::format("L{}", cache.level), threads,
                                   cache.bytes * instances, share / 2));
    before = share;
    all += cache.bytes * instances;
  }
  const double bytes = std::clamp(4 * all, kLeastMemoryBytes, kMostMemoryBytes);
  levels.push_back(measure_level("memory", threads, 0, bytes / threads));
  return levels;
}

}  // namespace triptych::cpu
#endif
