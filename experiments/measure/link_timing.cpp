// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/link_timing.h"

#include <chrono>

#include "core/base/error.h"
#include "core/base/median.h"
#include "parallel/collectives/price.h"
#include "parallel/comm/thread_group.h"

namespace triptych::measure {
namespace {

using Clock = std::chrono::steady_clock;
using parallel::Communicator;

constexpr std::size_t kSizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                  1 << 20, 4 << 20,  16 << 20};
constexpr std::size_t kSumSizes[] = {1 << 20, 4 << 20, 16 << 20};
constexpr int kSamples = 15;
constexpr const char* kSource = "triptych calibrate: two ranks that are threads";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Half a round trip, by rank 0's clock. Both ranks call it.
double round_trip(Communicator& communicator, std::vector<std::byte>& data, std::size_t bytes) {
  const int other = 1 - communicator.rank();
  const std::span<std::byte> message(data.data(), bytes);
  std::vector<double> samples;
  for (int i = -2; i < kSamples; ++i) {
    communicator.barrier();
    const auto start = Clock::now();
    std::uint64_t sent = 0;
    if (communicator.rank() == 0) sent = communicator.send(other, message, "ping");
    if (communicator.rank() == 1) communicator.receive(other, message, "ping");
    if (communicator.rank() == 1) sent = communicator.send(other, message, "pong");
    if (communicator.rank() == 0) communicator.receive(other, message, "pong");
    communicator.wait_taken(other, sent, "ping");
    if (i >= 0) samples.push_back(seconds_since(start) / 2);
  }
  return median_of(std::move(samples));
}

/// An all-reduce in rank order, by rank 0's clock.
double sum_time(Communicator& communicator, std::vector<std::byte>& data, std::size_t bytes) {
  auto call = communicator.prepare(
      {.elements = static_cast<std::int64_t>(bytes / sizeof(float)), .label = "sum"});
  std::vector<double> samples;
  for (int i = -2; i < kSamples; ++i) {
    communicator.barrier();
    const auto start = Clock::now();
    communicator.run_in_place(call, data.data());
    if (i >= 0) samples.push_back(seconds_since(start));
  }
  return median_of(std::move(samples));
}

/// The model's time for an all-reduce with additions that take none.
double sum_without_additions(std::size_t bytes, const TransferFit& link) {
  std::vector<parallel::Schedule> schedules;
  schedules.reserve(2);
  for (int rank = 0; rank < 2; ++rank) {
    schedules.push_back(parallel::make_schedule(
        parallel::Collective::AllReduce, parallel::Algorithm::Direct,
        {.world_size = 2, .rank = rank, .elements = static_cast<std::int64_t>(bytes / 4)}));
  }
  const auto net = parallel::Interconnect::ring(2, {link.alpha_s, link.bytes_per_s});
  return parallel::price(schedules, sizeof(float), net).seconds;
}

}  // namespace

TransferLine fit_line(std::span<const TransferSample> samples, bool through_origin) {
  // Relative errors: each equation alpha + bytes * slope = t is divided by t.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const auto& [bytes, seconds] : samples) {
    const double u = 1 / seconds, v = bytes / seconds;
    aa += u * u;
    ab += u * v;
    bb += v * v;
    a += u;
    b += v;
  }
  const double determinant = aa * bb - ab * ab;
  if (through_origin || samples.size() < 2 || determinant <= 0) return {0, b / bb};
  return {(a * bb - b * ab) / determinant, (aa * b - ab * a) / determinant};
}

TransferFit fit_transfers(const std::vector<TransferSample>& samples) {
  if (samples.size() < 2) throw InvalidArgument("a line needs two samples at least");
  auto line = fit_line(samples);
  if (line.alpha_s < 0) line = fit_line(samples, true);
  return {line.alpha_s, 1 / line.s_per_byte};
}

machines::Link measure_rank_link() {
  std::vector<TransferSample> messages, sums;
  parallel::run_ranks(2, {}, [&](Communicator& communicator) {
    std::vector<std::byte> data(std::size_t{16} << 20);
    for (const auto bytes : kSizes) {
      const double seconds = round_trip(communicator, data, bytes);
      if (communicator.rank() == 0) messages.push_back({static_cast<double>(bytes), seconds});
    }
    for (const auto bytes : kSumSizes) {
      const double seconds = sum_time(communicator, data, bytes);
      if (communicator.rank() == 0) sums.push_back({static_cast<double>(bytes), seconds});
    }
  });
  const auto fit = fit_transfers(messages);
  machines::Link link = {.alpha = {fit.alpha_s, TimeKind::Measured, kSource},
                         .beta = {fit.bytes_per_s, TimeKind::Measured, kSource}};
  double added = 0, seconds = 0;
  for (const auto& sum : sums) {
    added += sum.bytes / 2;  // each rank adds its half of the other's
    seconds += sum.seconds - sum_without_additions(static_cast<std::size_t>(sum.bytes), fit);
  }
  if (seconds > 0) link.add = machines::Figure{added / seconds, TimeKind::Measured, kSource};
  return link;
}

}  // namespace triptych::measure
