// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/measured_peak.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/tiles/tile_unit.h"
#include "backends/host/host_device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/measured_peak.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kSteps = 1000;

/// One chain in each element of the pack, more than the multiply-adds that are under way at once.
template <std::size_t... kChain>
HWY_INLINE float run_chains(std::index_sequence<kChain...>) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  // x = x / 2 + 1 stays near 2.
  const V factor = hn::Set(d, 0.5F), summand = hn::Set(d, 1.0F);
  V chains[] = {hn::Set(d, static_cast<float>(kChain))...};
  for (int step = 0; step < kSteps; ++step) {
    ((chains[kChain] = hn::MulAdd(chains[kChain], factor, summand)), ...);
  }
  V sum = hn::Zero(d);
  ((sum = hn::Add(sum, chains[kChain])), ...);
  return hn::GetLane(sum);
}

constexpr std::size_t kChains = 12;

}  // namespace

float run_multiply_adds() { return run_chains(std::make_index_sequence<kChains>()); }

double flops_of_run() {
  return 2.0 * kSteps * kChains * static_cast<double>(hn::Lanes(hn::ScalableTag<float>()));
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(run_multiply_adds);
HWY_EXPORT(flops_of_run);

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kWindows = 5;
constexpr auto kWindow = std::chrono::milliseconds(10);

/// Work of one thread in one window, which begins for all at once.
struct Window {
  double runs = 0;
  std::chrono::duration<double> elapsed{0};
};
using Share = std::array<Window, kWindows>;

/// FLOP/s of `threads` threads that call run(), which makes `flops` operations.
template <class Run>
double best_rate(int threads, double flops, const Run& run) {
  // More threads than processors only take turns.
  threads = std::min(threads, usable_processors());
  std::vector<Share> shares(static_cast<std::size_t>(threads));
  auto begin = Clock::now();
  std::barrier start(threads, [&begin]() noexcept { begin = Clock::now(); });
  const auto work = [&](Share& share) {
    for (auto& window : share) {
      start.arrive_and_wait();
      do {
        run();
        ++window.runs;
        window.elapsed = Clock::now() - begin;
      } while (window.elapsed < kWindow);
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < shares.size(); ++i) others.emplace_back(work, std::ref(shares[i]));
    work(shares[0]);
  }
  double best = 0;
  for (std::size_t w = 0; w < kWindows; ++w) {
    double runs = 0, seconds = 0;
    for (const auto& share : shares) {
      runs += share[w].runs;
      seconds = std::max(seconds, share[w].elapsed.count());
    }
    best = std::max(best, runs * flops / seconds);
  }
  return best;
}

}  // namespace

double measured_peak(int threads) {
  return best_rate(threads, HWY_DYNAMIC_DISPATCH(flops_of_run)(), [] {
    [[maybe_unused]] static volatile float kept;  // or the compiler drops the loop
    kept = HWY_DYNAMIC_DISPATCH(run_multiply_adds)();
  });
}

double measured_tile_peak(int threads) {
  constexpr std::int64_t products = 64;
  constexpr double flops = 2.0 * products * 4 * kTileRows * kTileColumns * 2 * kTileDepth;
  return best_rate(threads, flops, [] {
    // All products read the same two kilobytes of each factor.
    alignas(64) static constexpr std::array<TileWord, 2 * kTileRows * kTileDepth> zeros{};
    static constexpr std::array<std::int64_t, products> steps{};
    constexpr std::int64_t line = 64, tile = kTileRows * line;
    alignas(64) std::array<float, 4 * kTileRows * kTileColumns> sums;
    const auto* words = reinterpret_cast<const std::byte*>(zeros.data());
    const TileUnit unit(TileNumbers::Bf16, kTileDepth, TileUnit::Kind::Hardware);
    unit.multiply({.a = {words, steps, line, tile},
                   .b = {words, steps, line, tile},
                   .sums = sums.data(),
                   .sums_stride = 2 * kTileColumns,
                   .row_blocks = 2,
                   .column_blocks = 2});
  });
}

}  // namespace triptych::cpu
#endif
