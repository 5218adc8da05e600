// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/devices.h"

#include <fmt/core.h>

#include <algorithm>

namespace triptych::cuda::program {

int& Devices::current() {
  thread_local int device = 0;
  return device;
}

void Devices::set_pool_access(int user, int owner, bool is_allowed) {
  if (is_allowed) {
    pool_users_.emplace(user, owner);
  } else {
    pool_users_.erase({user, owner});
  }
}

bool Devices::may_use(int user, const Allocation& memory) const {
  if (memory.kind != MemoryKind::Device || memory.device == user) return true;
  return (memory.is_of_pool ? pool_users_ : peers_).contains({user, memory.device});
}

std::string Devices::remedy(int user, const Allocation& memory) const {
  if (may_use(user, memory)) return {};
  return fmt::format(
      "{}, which is memory of GPU {}, and the kernel runs on GPU {}: {}", memory.name,
      memory.device, user,
      memory.is_of_pool
          ? fmt::format("allow it with cudaMemPoolSetAccess for the pool of GPU {}", memory.device)
          : fmt::format("call cudaSetDevice({}) and cudaDeviceEnablePeerAccess({}, 0) before", user,
                        memory.device));
}

void Devices::add_variable(std::span<std::byte> bytes) {
  variables_.push_back({bytes, {bytes.begin(), bytes.end()}, {}});
}

void Devices::select_variables() {
  if (holder_ == current()) return;
  for (auto& each : variables_) {
    each.others[holder_].assign(each.bytes.begin(), each.bytes.end());
    const auto found = each.others.find(current());
    std::ranges::copy(found == each.others.end() ? each.initial : found->second,
                      each.bytes.begin());
  }
  holder_ = current();
}

}  // namespace triptych::cuda::program
