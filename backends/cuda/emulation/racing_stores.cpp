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

void RacingStores::expect(unsigned thread, const Location& where, const Bytes& bytes,
                          std::string&& what) {
  const bool is_known = std::ranges::any_of(stores_, [&](const Store& store) {
    return store.thread == thread && store.bytes.address == bytes.address;
  });
  if (is_known) return;
  stores_.push_back({thread, where, bytes, {}, std::move(what)});
  std::memcpy(stores_.back().before.data(), pointer_to(bytes), bytes.count);
}

std::optional<RacingStores::Unequal> RacingStores::settle(unsigned thread, const Location& where) {
  std::optional<Unequal> unequal;
  std::erase_if(stores_, [&](Store& store) {
    if (store.thread != thread || store.where == where) return false;
    if (std::memcmp(store.before.data(), pointer_to(store.bytes), store.bytes.count) == 0) {
      add(equal_, {store.where, 1, std::move(store.what)});
    } else if (!unequal) {
      unequal = Unequal{store.thread, store.where, std::move(store.what)};
    }
    return true;
  });
  return unequal;
}

}  // namespace triptych::cuda::emulation
