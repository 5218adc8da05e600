// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/racing_stores.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kMostPlaces = 100;

const void* pointer_to(const Bytes& bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that a kernel uses
  return reinterpret_cast<const void*>(bytes.address);
}

}  // namespace

void add(std::vector<Remark>& all, const Remark& more) {
  const auto found = std::ranges::find(all, more.where, &Remark::where);
  if (found != all.end()) {
    found->count += more.count;
  } else if (all.size() < kMostPlaces) {
    all.push_back(more);
  }
}

void RacingStores::expect(unsigned thread, RacingAccess&& store) {
  const bool is_known = std::ranges::any_of(stores_, [&](const Store& each) {
    return each.thread == thread && each.access.stores.address == store.stores.address;
  });
  if (is_known) return;
  stores_.push_back({thread, std::move(store), {}});
  const auto& bytes = stores_.back().access.stores;
  std::memcpy(stores_.back().before.data(), pointer_to(bytes), bytes.count);
}

std::optional<RacingAccess> RacingStores::settle(unsigned thread, const Location& where) {
  for (auto store = stores_.begin(); store != stores_.end();) {
    auto& access = store->access;
    if (store->thread != thread || access.where == where) {
      ++store;
      continue;
    }
    const auto& bytes = access.stores;
    const bool equal = std::memcmp(store->before.data(), pointer_to(bytes), bytes.count) == 0;
    auto settled = std::move(access);
    store = stores_.erase(store);
    if (!equal) return settled;
    add(equal_, {settled.where, 1, std::move(settled.what)});
  }
  return std::nullopt;
}

}  // namespace triptych::cuda::emulation
