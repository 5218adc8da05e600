// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/cost_model.h"

#include <bit>
#include <utility>

namespace triptych::cuda::emulation {
namespace {

bool is_same(const Dim3& a, const Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

AccessSite site_in_source(const RequestPlace& place) {
  const auto& where = place.where;
  return {file_of(where), where.line(), where.column(), where.part(), place.space, place.access};
}

}  // namespace

CostModel::CostModel(std::size_t l2_bytes, std::function<std::size_t()> shared_bytes,
                     std::function<std::size_t(std::size_t)> l1_bytes, RequestWatcher* next)
    : l2_(l2_bytes),
      shared_bytes_(std::move(shared_bytes)),
      l1_bytes_(std::move(l1_bytes)),
      next_(next) {}

/// A block begins with an empty L1.
void CostModel::enter(Worker& worker, const RequestPlace& place) {
  const bool is_new = !worker.block || !is_same(*worker.block, place.block);
  if (!is_new && worker.warp == place.warp) return;
  if (is_new) worker.l1.clear();
  const auto shared_bytes = shared_bytes_();
  if (worker.shared_bytes != shared_bytes) {
    worker.shared_bytes = shared_bytes;
    worker.l1_bytes = l1_bytes_(shared_bytes);
  }
  worker.l1.limit(worker.l1_bytes);
  worker.block = place.block;
  worker.warp = place.warp;
}

void CostModel::asked(const RequestPlace& place, const Request& request) {
  if (next_ != nullptr) next_->asked(place, request);
  const bool is_atomic = place.access == Access::Atomic;
  if (place.space != Space::Global && !is_atomic) return;
  Worker& worker = workers_.local();
  enter(worker, place);
  if (worker.sites.size() <= place.number) worker.sites.resize(place.number + 1);
  Site& site = worker.sites[place.number];
  if (!std::exchange(site.is_used, true)) site.place = place;
  auto& costs = site.costs;
  if (is_atomic) costs.contention += count_contention(request);
  if (place.space == Space::Global) l2_.count(request, place.access, worker.l1, costs);
}

PieceCounters& CostModel::counters_of(const PiecePlace& place) {
  auto& pieces = workers_.local().pieces;
  if (pieces.size() <= place.number) pieces.resize(place.number + 1);
  pieces[place.number].pc = place.code.pc;
  return pieces[place.number].counters;
}

void CostModel::passed(const PiecePlace& place, std::uint32_t mask) {
  if (next_ != nullptr) next_->passed(place, mask);
  auto& piece = counters_of(place);
  ++piece.warps;
  piece.lanes += static_cast<unsigned>(std::popcount(mask));
}

void CostModel::parted(const PiecePlace& place) {
  if (next_ != nullptr) next_->parted(place);
  ++counters_of(place).parted;
}

std::map<AccessSite, SiteCosts> CostModel::sites() const {
  std::map<AccessSite, SiteCosts> all;
  for (const auto& worker : workers_) {
    for (const auto& site : worker.sites) {
      if (site.is_used) all[site_in_source(site.place)] += site.costs;
    }
  }
  return all;
}

std::map<const void*, PieceCounters> CostModel::pieces() const {
  std::map<const void*, PieceCounters> all;
  for (const auto& worker : workers_) {
    for (const auto& [pc, at] : worker.pieces) {
      if (pc == nullptr) continue;
      auto& sum = all[pc];
      sum.warps += at.warps;
      sum.lanes += at.lanes;
      sum.parted += at.parted;
    }
  }
  return all;
}

}  // namespace triptych::cuda::emulation
