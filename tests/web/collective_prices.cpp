// Prints the results of parallel::price for sums: a line "WAY RANKS BYTES ALPHA RATE" in, seconds
// out.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <iostream>
#include <string>

#include "experiments/studies/collectives_report.h"

int main() {
  std::string way;
  int ranks = 0;
  std::int64_t bytes = 0;
  double alpha = 0, rate = 0;
  while (std::cin >> way >> ranks >> bytes >> alpha >> rate)
    fmt::print("{}\n", triptych::studies::modelled_seconds(way, ranks, bytes, alpha, rate));
  return std::cin.eof() ? 0 : 1;
}
