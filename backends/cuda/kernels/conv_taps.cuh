// The taps of a convolution's window in the order of its kernels, and the final operation on a
// float sum.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/device_table.h"
#include "backends/cuda/kernels/platform.h"
#include "core/base/exact_math.h"
#include "core/ops/conv_geometry.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// One position of the kernel: where it reads, from the position's first input, and its number.
struct Tap {
  std::int32_t dy = 0, dx = 0, number = 0;
};

/// End of a finished float sum: bias, and a cut at 0 where asked.
struct FloatFinish {
  using In = float;
  using Value = float;
  using Out = float;
  Global<const float> bias;
  bool has_bias = false, relu = false;

  FloatFinish(const KernelArgs& args, std::int64_t channels, bool cut) : relu(cut) {
    has_bias = args.inputs.size() > 2;
    if (has_bias) bias = {args.in<float>(2), channels};
  }
  __device__ float operator()(std::int64_t channel, float sum) const {
    if (has_bias) sum = exact::canonical(sum + bias[channel]);
    return relu ? exact::relu(sum) : sum;
  }
};

/// The taps of one axis that meet outputs of a transposed convolution at remainder + stride * j, as
/// (tap, input position minus j). Those of a convolution have stride 1 there.
struct WindowTap {
  std::int64_t tap, offset;
};

inline std::vector<WindowTap> phase_taps(const Window& w, int axis, std::int64_t remainder) {
  std::vector<WindowTap> taps;
  for (std::int64_t tap = 0; tap < w.kernel[axis]; ++tap) {
    const auto distance = remainder + w.pad_begin[axis] - tap * w.dilation[axis];
    if (distance % w.stride[axis] == 0) taps.push_back({tap, distance / w.stride[axis]});
  }
  return taps;
}

inline std::vector<WindowTap> window_taps(const Window& w, int axis) {
  std::vector<WindowTap> taps;
  for (std::int64_t tap = 0; tap < w.kernel[axis]; ++tap) {
    taps.push_back({tap, tap * w.dilation[axis] - w.pad_begin[axis]});
  }
  return taps;
}

/// The taps of a window, row by row, in the device's memory.
class TapTable {
 public:
  TapTable(Device& device, const std::vector<WindowTap>& rows,
           const std::vector<WindowTap>& columns, std::int64_t kernel_width) {
    std::vector<Tap> taps;
    for (const auto& row : rows) {
      for (const auto& column : columns) {
        taps.push_back({static_cast<std::int32_t>(row.offset),
                        static_cast<std::int32_t>(column.offset),
                        static_cast<std::int32_t>(row.tap * kernel_width + column.tap)});
      }
    }
    table_ = copy_to_device(device, taps);
    size_ = static_cast<std::int64_t>(taps.size());
  }
  Global<const Tap> global() const { return {reinterpret_cast<const Tap*>(table_->data()), size_}; }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return table_->size(); }

 private:
  std::unique_ptr<DeviceBuffer> table_;
  std::int64_t size_ = 0;
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
