// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/kernel_record.h"

#include "core/runtime/counter_fields.h"

namespace triptych::web {
namespace {

using cuda::emulation::Dim3;

constexpr std::size_t kSteps = 400;
constexpr unsigned kKeptWarps = 2;

bool is_first(const Dim3& block) { return block.x + block.y + block.z == 0; }

page::Json step_json(const cuda::emulation::Location& where, std::uint32_t mask) {
  return {{"file", cuda::emulation::file_of(where)}, {"line", where.line()}, {"mask", mask}};
}

}  // namespace

WarpLog::WarpLog(const cuda::plain::Launch& launch) : grid_(launch.shape.grid) {
  for (const auto& array : launch.arrays) {
    arrays_.push_back({array.name, reinterpret_cast<std::uintptr_t>(array.data), array.bytes});
  }
}

bool WarpLog::is_kept(const Dim3& block, unsigned warp) const {
  const bool is_last = block.x + 1 == grid_.x && block.y + 1 == grid_.y && block.z + 1 == grid_.z;
  return warp < kKeptWarps && (is_first(block) || is_last);
}

void WarpLog::keep(const Dim3& block, unsigned warp, page::Json step) {
  auto& kept = warps_[{!is_first(block), warp}];
  kept.block = block;
  if (kept.steps.size() == kSteps) {
    ++kept.more;
  } else {
    kept.steps.push_back(std::move(step));
  }
}

void WarpLog::asked(const cuda::emulation::RequestPlace& place,
                    const cuda::emulation::Request& request) {
  if (!is_kept(place.block, place.warp)) return;
  auto step = step_json(place.where, request.mask);
  step["space"] = to_string(place.space);
  step["access"] = to_string(place.access);
  step.update(request_json(place, request, arrays_, "a variable"));
  keep(place.block, place.warp, std::move(step));
}

void WarpLog::passed(const cuda::emulation::PiecePlace& place, std::uint32_t mask) {
  if (!place.code.is_own || !is_kept(place.block, place.warp)) return;
  keep(place.block, place.warp, step_json(place.code.where, mask));
}

page::Json WarpLog::warps() const {
  auto list = page::Json::array();
  for (const auto& [key, warp] : warps_) {
    list.push_back({{"block", index_json(warp.block.x, warp.block.y, warp.block.z)},
                    {"warp", key.second},
                    {"steps", warp.steps},
                    {"more", warp.more}});
  }
  return list;
}

}  // namespace triptych::web
