// Windows of any shape on the vector unit. The planes of the images lie side by side in the lanes,
// so that a pixel of all of them is a run of values, and a program visits the pixels of each
// window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "backends/systolic/kernels/vector_lines.h"
#include "core/ops/conv_geometry.h"

namespace triptych::systolic {

/// Refuses windows without a pixel of the image, and very long programs.
Verdict accepts_windows(const Window& window);

/// Images and the results of their windows.
class PooledPlanes {
 public:
  PooledPlanes(const Window& window, std::int64_t planes, const mmu::MachineConfig& machine);

  /// A place where a window and the image meet: the pixel of a window, or the window of a pixel.
  struct Tap {
    std::int64_t position;
    std::int64_t number;  ///< of the pixel in its window, row-major
  };
  using Taps = std::vector<std::vector<Tap>>;
  Taps pixels_of_windows() const;  ///< for each window, ascending
  Taps windows_of_pixels() const;  ///< for each pixel, ascending

  VectorTask maxima() const;           ///< y of x
  VectorTask maxima_gradient() const;  ///< dx of (x, dy)
  /// y of x and dx of dy. `divisors`: one for each window.
  VectorTask means(std::vector<float> divisors) const;
  VectorTask means_gradient(std::vector<float> divisors) const;

 private:
  VectorTask task(std::uint32_t blocks, std::int64_t scratch_bytes) const;

  Window window_;
  VectorLines image_, results_;  ///< lines are planes
  std::int64_t rows_;
};

}  // namespace triptych::systolic
