// Winograd's minimal filtering F(t x t, 3 x 3) for t = 4 and 2: a tile of t x t outputs comes from
// a patch of (t + 2) x (t + 2) inputs as y = A^T [(G w G^T) * (B^T x B)] A, the product being taken
// point by point and summed over channels (Lavin and Gray, "Fast algorithms for convolutional
// neural networks", 2016). Interpolation points are 0, +-3/4, +-3/2 and infinity for t = 4, which
// errs less than the usual 0, +-1, +-2, and 0, +-1 and infinity for t = 2 (docs/decisions/0021).
// The factors are matrices, one for each point. Their columns are tiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/conv_geometry.h"

namespace triptych::cpu {

/// The tiles of all outputs of a convolution, in rows that are padded to whole vectors.
struct WinogradGrid {
  /// `out`: output plane.
  WinogradGrid(int tile, std::int64_t batch, const std::int64_t (&out)[2]);

  int tile = 4;
  int lanes = 4;             ///< tiles that are transformed at once
  std::int64_t rows = 0;     ///< of tiles, of all images
  std::int64_t columns = 0;  ///< tiles of one row, padding included: a multiple of lanes
  std::int64_t image_rows = 0;

  int patch() const { return tile + 2; }
  int points() const { return patch() * patch(); }
};

/// Floats from one point's values to the next point's, for `floats` of each: a transform writes all
/// points at once, and with distances of powers of two they would fall into few sets of a cache.
std::int64_t winograd_point_stride(std::int64_t floats);

/// One channel of one row of tiles on its way into the transformed domain.
struct WinogradPatches {
  const float* plane = nullptr;
  const float* next_plane = nullptr;  ///< rows to prefetch next, or nullptr
  std::int64_t in[2] = {1, 1};
  std::int64_t first[2] = {0, 0};  ///< position of the first patch's corner, may be negative
  /// Point p of column q goes to v + p * point_stride + q / panel * panel_stride + q % panel, for q
  /// from `column` on.
  float* v = nullptr;
  std::int64_t point_stride = 0;
  std::int64_t panel = 0;  ///< the microkernel's width, a multiple of the grid's lanes
  std::int64_t panel_stride = 0;
  std::int64_t column = 0;
};

/// v = B^T x B for every patch of the row. Beyond the plane x is 0.
void transform_patches(const WinogradGrid& grid, const WinogradPatches& patches);

/// One channel of one row of tiles on its way back.
struct WinogradOutputs {
  const float* m = nullptr;  ///< point p of column q at m + p * point_stride + q
  std::int64_t point_stride = 0;
  float* plane = nullptr;
  std::int64_t out[2] = {1, 1};
  std::int64_t first_row = 0;  ///< of the plane
  float bias = 0;
  bool relu = false;
  bool large = false;  ///< all of the output is too large for the caches: write past them
};

/// y = A^T m A, plus bias, cut off below 0 where asked. Results beyond the plane are dropped.
void transform_outputs(const WinogradGrid& grid, const WinogradOutputs& outputs);

/// `count` filters side by side: tap t of filter i at taps + t * count + i. Point p of filter i
/// goes to u + p * point_stride + i.
struct WinogradFilters {
  const float* taps = nullptr;
  std::int64_t count = 0;
  bool flipped = false;  ///< takes the taps in reverse order
  float* u = nullptr;
  std::int64_t point_stride = 0;
};

/// u = G w G^T.
void transform_filters(int tile, const WinogradFilters& filters);

// The gradient of the weights, dw = G^T [sum over tiles of (A dy A^T) * (B^T x B)] G, sums over
// tiles. Its matrices have channels as rows and columns, and the next steps process as many
// adjacent channels as a vector has lanes.

/// Channels that are transformed at once.
std::int64_t winograd_lanes();

/// One row of tiles of one block of channels.
struct WinogradChannels {
  const float* lines = nullptr;  ///< row i, column x of the image: lanes at (i * pitch + x) * lanes
  std::int64_t pitch = 0;
  std::int64_t tiles = 0;
  /// Point p of tile t goes to the lanes from to + p * point_stride + t * tile_stride on.
  float* to = nullptr;
  std::int64_t point_stride = 0;
  std::int64_t tile_stride = 0;
};

/// B^T x B of patches. `lines` has patch() rows.
void transform_patch_channels(int tile, const WinogradChannels& channels);

/// A dy A^T of tiles. `lines` has `tile` rows.
void transform_gradient_channels(int tile, const WinogradChannels& channels);

/// G^T s G for the lanes from sums + p * point_stride on. Tap t goes to the lanes from taps + t *
/// lanes on.
void transform_sums(int tile, const float* sums, std::int64_t point_stride, float* taps);

}  // namespace triptych::cpu
