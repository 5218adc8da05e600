// Sums of float32 over ranks by MPI_Allreduce itself, of 4 KiB, 16 KiB and so on.
//   mpirun -np 2 mpi_allreduce LARGEST_MIB SECONDS IN_PLACE
//
// A sample is one call, and takes as long as its slowest rank. SECONDS: the samples of a size
// together, at least 7. IN_PLACE: 1 sums within one buffer, 0 from one into another. Every result
// is looked at, element by element, before and after the samples. Exit code 1 when one is wrong.
// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include <algorithm>
#include <cstdlib>

#include "samples.h"

namespace {

using triptych::rivals::now;

constexpr std::size_t kSmallestBytes = 4096;
constexpr std::size_t kLeastSamples = 7;

/// The same on all ranks.
double largest(double own) {
  double all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

class AllReduce {
 public:
  AllReduce(std::size_t elements, bool in_place)
      : sum_(elements), own_(in_place ? 0 : elements), in_place_(in_place) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  /// Sums small integers, which are exact in any order. Leaves zeros, however often they are
  /// summed.
  bool check() {
    auto& own = in_place_ ? sum_ : own_;
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = value(rank_ + 1, i);
    run();
    bool right = true;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      right = right && sum_[i] == value(ranks_ * (ranks_ + 1) / 2, i);
    }
    std::fill(own.begin(), own.end(), 0.0F);
    return largest(right ? 0 : 1) == 0;
  }

  std::vector<double> time_calls(double seconds) {
    for (int i = 0; i < 2; ++i) time_call();
    std::vector<double> samples;
    for (double spent = 0; samples.size() < kLeastSamples || spent < seconds;) {
      samples.push_back(time_call());
      spent += samples.back();
    }
    return samples;
  }

 private:
  static float value(int factor, std::size_t i) { return static_cast<float>(factor * (i % 7)); }

  void run() {
    MPI_Allreduce(in_place_ ? MPI_IN_PLACE : own_.data(), sum_.data(),
                  static_cast<int>(sum_.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }

  double time_call() {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    run();
    return largest(now() - start);
  }

  std::vector<float> sum_, own_;  // sums in place need no second buffer
  bool in_place_;
  int rank_ = 0, ranks_ = 1;
};

/// Prints a row on rank 0. True when every sum was right.
bool measure(std::size_t bytes, double seconds, bool in_place) {
  AllReduce sums(bytes / sizeof(float), in_place);
  const bool before = sums.check();
  auto samples = sums.time_calls(seconds);
  const bool right = sums.check() && before;
  std::sort(samples.begin(), samples.end());
  const double median = samples[samples.size() / 2];
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::printf("%12zu %9zu %12.1f %12.1f %8.2f  %s\n", bytes, samples.size(), median * 1e6,
                samples.front() * 1e6, static_cast<double>(bytes) / median * 1e-9,
                right ? "right" : "WRONG");
    std::fflush(stdout);
  }
  return right;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  if (count != 4) {
    std::fprintf(stderr, "usage: mpi_allreduce LARGEST_MIB SECONDS IN_PLACE\n");
    MPI_Finalize();
    return 2;
  }
  const std::size_t largest_bytes = std::strtoull(arguments[1], nullptr, 10) << 20;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    std::printf("%12s %9s %12s %12s %8s\n", "bytes", "samples", "median us", "min us", "GB/s");
  bool right = true;
  for (std::size_t bytes = kSmallestBytes; bytes <= largest_bytes; bytes *= 4) {
    right = measure(bytes, std::atof(arguments[2]), std::atoi(arguments[3]) != 0) && right;
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
