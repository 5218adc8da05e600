// SPDX-License-Identifier: Apache-2.0
#include "core/conformance/near_windows.h"

namespace triptych::conformance {
namespace {

using Numbers = std::vector<std::int64_t> NearWindow::*;

/// Adds the windows with one number of `member` one less, when it stays at least `least`, or one
/// more.
void vary(std::vector<NearWindow>& list, const std::string& name, Numbers member,
          std::int64_t least) {
  for (std::size_t i = 0; i < (list.front().*member).size(); ++i) {
    for (const std::int64_t change : {-1, 1}) {
      auto other = list.front();
      auto& number = (other.*member)[i];
      number += change;
      if (number < least) continue;
      other.name += "_" + name + std::to_string(i) + "_is_" + std::to_string(number);
      list.push_back(std::move(other));
    }
  }
}

/// Adds the window with the first `count` numbers of `member` one more.
void vary_together(std::vector<NearWindow>& list, const std::string& name, Numbers member,
                   std::size_t count) {
  auto other = list.front();
  for (std::size_t i = 0; i < count; ++i) (other.*member)[i] += 1;
  other.name += "_" + name + "_one_more";
  list.push_back(std::move(other));
}

}  // namespace

std::vector<NearWindow> near_windows(const NearWindow& window) {
  std::vector<NearWindow> list = {window};
  vary(list, "kernel", &NearWindow::kernel, 1);
  vary(list, "stride", &NearWindow::strides, 1);
  vary(list, "pad", &NearWindow::pads, 0);
  for (std::size_t axis = 0; axis < window.kernel.size(); ++axis) {
    if (window.kernel[axis] == 1) continue;  // of one tap, dilation means nothing
    auto other = window;
    other.dilations[axis] += 1;
    other.name +=
        "_dilation" + std::to_string(axis) + "_is_" + std::to_string(other.dilations[axis]);
    list.push_back(std::move(other));
  }
  const auto axes = window.kernel.size();
  vary_together(list, "kernel", &NearWindow::kernel, axes);
  vary_together(list, "strides", &NearWindow::strides, axes);
  vary_together(list, "begins", &NearWindow::pads, axes);
  return list;
}

}  // namespace triptych::conformance
