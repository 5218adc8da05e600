// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "core/base/error.h"

namespace triptych::machines {
namespace {

/// PCI Express Base Specifications 3.0, 4.0 and 5.0: transfers per second of a lane, and 128 of 130
/// bits that are data.
constexpr double kTransfers[] = {8e9, 16e9, 32e9};
constexpr double kCode = 128.0 / 130;

Link pcie(int generation, int lanes) {
  const double rate = kTransfers[generation - 3];
  const auto source = fmt::format("PCI Express {}.0: {:g} GT/s a lane, {} lanes, 128b/130b code",
                                  generation, rate * 1e-9, lanes);
  return {.alpha = {0, TimeKind::Modelled, "no standard states a latency"},
          .beta = {rate * lanes * kCode / 8,
                   TimeKind::Modelled,
                   source,
                   {rate, static_cast<double>(lanes), kCode, 1.0 / 8}}};
}

}  // namespace

Link link_of(std::string_view name, const MachineFigures& figures) {
  const std::string text(name);
  int generation = 0, lanes = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "pcie%dx%d%c", &generation, &lanes, &rest) == 2 &&
      generation >= 3 && generation <= 5 && lanes >= 1 && lanes <= 16) {
    return pcie(generation, lanes);
  }
  const auto own = figures.links.find(text);
  if (own != figures.links.end()) return own->second;
  std::vector<std::string> names;
  for (const auto& [link, figure] : figures.links) names.push_back(link);
  throw InvalidArgument(fmt::format(
      "no link \"{}\"; choose pcieGxL (generation 3 to 5, 1 to 16 lanes: pcie3x8){}{} of {}", name,
      names.empty() ? "" : " or one of: ", fmt::join(names, ", "), figures.name));
}

}  // namespace triptych::machines
