// Steps of a user's kernel as its page shows them, with line, active lanes and request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "backends/cuda/plain/launch.h"
#include "experiments/page/json.h"
#include "experiments/web/request_record.h"

namespace triptych::web {

/// Keeps the first steps of the first two warps of a launch's first and last block.
class WarpLog : public cuda::emulation::RequestWatcher {
 public:
  explicit WarpLog(const cuda::plain::Launch& launch);

  void asked(const cuda::emulation::RequestPlace& place,
             const cuda::emulation::Request& request) override;
  void passed(const cuda::emulation::PiecePlace& place, std::uint32_t mask) override;

  /// [{"block", "warp", "steps": [{"file", "line", "mask"}], "more"}]. A step that is a request has
  /// also "space", "access" and the fields of request_json(). `more` further steps were not kept.
  page::Json warps() const;

 private:
  struct Warp {
    cuda::emulation::Dim3 block;
    page::Json steps = page::Json::array();
    std::uint64_t more = 0;
  };
  void keep(const cuda::emulation::Dim3& block, unsigned warp, page::Json step);
  bool is_kept(const cuda::emulation::Dim3& block, unsigned warp) const;

  std::vector<NamedArray> arrays_;
  cuda::emulation::Dim3 grid_;
  std::map<std::pair<bool, unsigned>, Warp> warps_;  ///< by whether the block is not the first
};

}  // namespace triptych::web
