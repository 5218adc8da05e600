// The program's own thinning and region scores of one picture, for region_parity.py to check. Reads
// width, height, then a byte for each pixel of the predicted regions, and of the true ones, from
// standard input. Writes a byte for each pixel of the thinned boundary, and six scores as float64.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "experiments/training/data/components.h"
#include "experiments/training/data/rand_metrics.h"

int main() {
  using namespace triptych::segmentation;
  std::int32_t sides[2] = {};
  if (std::fread(sides, sizeof sides, 1, stdin) != 1) return 2;
  const Size size = {sides[1], sides[0]};
  const auto pixels = static_cast<std::size_t>(size.pixels());
  std::vector<std::uint8_t> predicted(pixels), target(pixels), boundary(pixels);
  for (auto* picture : {&predicted, &target})
    if (std::fread(picture->data(), 1, pixels, stdin) != pixels) return 2;
  std::ranges::transform(predicted, boundary.begin(), [](auto in) { return in == 0; });
  const auto thin = thinned(boundary, size);
  const auto scores =
      region_scores(predicted_regions(predicted, size), connected_components(target, size).labels);
  if (!scores) return 3;
  const double values[] = {scores->rand,       scores->rand_split, scores->rand_merge,
                           scores->info_split, scores->info_merge, scores->info};
  const bool written = std::fwrite(thin.data(), 1, pixels, stdout) == pixels &&
                       std::fwrite(values, sizeof values, 1, stdout) == 1;
  return written ? 0 : 4;
}
