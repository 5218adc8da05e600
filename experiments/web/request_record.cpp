// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/request_record.h"

#include <algorithm>
#include <utility>

#include "core/tensor/tensor.h"

namespace triptych::web {
namespace {

using cuda::emulation::Request;
using cuda::emulation::RequestPlace;
using cuda::emulation::Space;

unsigned cost_of(const RequestPlace& place, const Request& request) {
  if (place.space == Space::Global) return count_sectors(request);
  if (place.space == Space::Constant) return count_addresses(request);
  return count_wavefronts(request, place.access);
}

}  // namespace

page::Json index_json(unsigned x, unsigned y, unsigned z) { return page::Json::array({x, y, z}); }

page::Json request_json(const RequestPlace& place, const Request& request,
                        const std::vector<NamedArray>& arrays, const char* other) {
  auto address = ~std::uint64_t{0};  // the lowest
  for (unsigned i = 0; i < 32; ++i)
    if ((request.mask >> i & 1U) != 0) address = std::min(address, request.addresses[i]);
  const bool is_shared = place.space == Space::Shared;
  std::string name = is_shared                        ? "shared memory"
                     : place.space == Space::Constant ? "constant memory"
                                                      : other;
  std::uintptr_t begin = is_shared ? 0 : address / kAlignment * kAlignment;
  for (const auto& array : arrays) {
    if (is_shared || address - array.begin >= array.bytes) continue;
    name = array.name;
    begin = array.begin;
  }
  auto at = page::Json::array();
  for (unsigned i = 0; i < 32; ++i) {
    const bool active = (request.mask >> i & 1U) != 0;
    at.push_back(active ? page::Json(static_cast<std::int64_t>(request.addresses[i] - begin))
                        : page::Json());
  }
  return {{"bytes", request.bytes},
          {"of", std::move(name)},
          {"at", std::move(at)},
          {"cost", cost_of(place, request)}};
}

}  // namespace triptych::web
