// Windows just outside the conditions of kernels that are specialised for one window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triptych::conformance {

/// The attributes of a window over two axes, and a name for the cases that use it.
struct NearWindow {
  std::string name;
  std::vector<std::int64_t> kernel = {1, 1};
  std::vector<std::int64_t> strides = {1, 1};
  std::vector<std::int64_t> dilations = {1, 1};
  std::vector<std::int64_t> pads = {0, 0, 0, 0};
};

/// `window`, each window that differs from it by 1 in one number, and those with a larger kernel,
/// larger strides or more padding before both axes. A kernel that forgets one of its conditions
/// gives wrong values for at least one of them.
std::vector<NearWindow> near_windows(const NearWindow& window);

}  // namespace triptych::conformance
