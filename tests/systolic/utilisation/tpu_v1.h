// The six applications of TPU v1's paper (Jouppi et al., "In-Datacenter Performance Analysis of a
// Tensor Processing Unit", ISCA 2017, arXiv 1704.04760), as layers with the numbers of its table 1:
// layers, weights, operations per weight, batch. Their shapes were not published. Each application
// states its assumptions. docs/results/systolic.md compares the outcome.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triptych {

/// A convolution of stride 1 that keeps the size of its maps. A fully connected layer is one of 1 x
/// 1 on a single position.
struct TpuLayer {
  int repeats = 1;
  std::int64_t in = 1, out = 1;
  std::int64_t kernel = 1;
  std::int64_t height = 1, width = 1;

  double weights() const;  ///< of all repeats
};

/// A row of the paper's table 3, in shares of the time.
struct TpuShares {
  double active = 0;        ///< the array computes
  double weight_stall = 0;  ///< it waits for weights from DRAM
  double weight_shift = 0;  ///< it waits for weights that are being shifted in
  double other = 0;         ///< "non-matrix"
  double useful = 0;        ///< MACs of the model, of all that fit into the time
  double tops = 0;
};

struct TpuApplication {
  std::string name;
  std::int64_t batch = 1;
  std::vector<TpuLayer> layers;
  double weights = 0;  ///< as published
  TpuShares paper;

  /// Bound by the DRAM's bandwidth and the array's peak.
  double roofline_tops() const;
  double macs() const;  ///< of one batch
};

std::vector<TpuApplication> tpu_applications();

/// Bytes that cross the DRAM's bus.
enum class TpuTraffic {
  Weights,  ///< as on TPU v1, where activations stay in the unified buffer: no loads, no stores
  All,      ///< every layer loads and stores its activations
  Kept,     ///< layers that read one another's results keep them in the buffer, where they fit
};

/// Runs the layers one after the other on tpu-v1, int8, by the twin's clock.
TpuShares run_on_tpu_v1(const TpuApplication& application, TpuTraffic traffic);

void print_tpu_v1();

}  // namespace triptych
