// Memory that a microkernel fetches on its way through a tile: the tiles that come after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/gemm/microkernel.h"

namespace triptych::cpu {

/// The next row tile of A. While each panel of B passes, a part of it is prefetched.
template <class T>
struct TilePrefetch {
  std::int64_t fetches = 1;     ///< that a panel's share takes
  const T* next = nullptr;      ///< the share of panel 0. nullptr: this tile is the last
  std::int64_t panel_step = 0;  ///< elements from one panel's share to the next
  std::int64_t fetch_step = 0;  ///< elements from one fetch to the next

  /// Makes `tile`, which meets `panel`, fetch the panel's share. Steps of k that `fetches` does not
  /// divide fetch once.
  void add_to(BasicMicroTile<T>& tile, std::int64_t panel) const {
    if (tile.k_inner % fetches == 0) {
      tile.k_outer = fetches;
      tile.k_inner /= fetches;
      tile.b_outer = tile.k_inner * tile.b_inner;
    }
    if (next == nullptr) return;
    tile.ahead = next + panel * panel_step;
    tile.ahead_step = fetch_step;
  }
};

}  // namespace triptych::cpu
