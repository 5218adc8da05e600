// A request of a warp as the pages of the GPU draw it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/emulation/request_watcher.h"
#include "experiments/page/json.h"

namespace triptych::web {

/// An array of global memory, as a page names it.
struct NamedArray {
  std::string name;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

/// [x, y, z].
page::Json index_json(unsigned x, unsigned y, unsigned z);

/// {"bytes", "of", "at", "cost"}: of which array each lane reads or writes so many bytes at which
/// byte (null: the lane does not), and its sectors, or its passes through the banks or the cache of
/// constants. An address in none of the arrays is of `other`, which begins at a multiple of 64
/// bytes.
page::Json request_json(const cuda::emulation::RequestPlace& place,
                        const cuda::emulation::Request& request,
                        const std::vector<NamedArray>& arrays, const char* other);

}  // namespace triptych::web
