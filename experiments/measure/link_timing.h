// The link between ranks that are threads of this process, as the alpha-beta model has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "experiments/machines/machine_figures.h"

namespace triptych::measure {

/// A message of n bytes takes alpha + n / beta: half the round trips of two ranks, 4 KiB to 16 MiB,
/// the line with the least squared relative error. `add`: the throughput of the sums of an
/// all-reduce by two ranks without its messages, as bytes/s. Absent where they take nothing.
machines::Link measure_rank_link();

/// A time of a message or a sum of so many bytes.
struct TransferSample {
  double bytes = 0, seconds = 0;
};

/// seconds = alpha + bytes * s_per_byte with the least squared relative error. Through the origin
/// if requested or if all samples have one size.
struct TransferLine {
  double alpha_s = 0, s_per_byte = 0;
};
TransferLine fit_line(std::span<const TransferSample> samples, bool through_origin = false);

/// The same with alpha of at least 0.
/// Throws InvalidArgument for fewer than two samples.
struct TransferFit {
  double alpha_s = 0, bytes_per_s = 0;
};
TransferFit fit_transfers(const std::vector<TransferSample>& samples);

}  // namespace triptych::measure
