// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "core/base/error.h"

namespace triptych::parallel {

int Mesh::ranks() const {
  int ranks = 1;
  for (const auto& axis : axes_) ranks *= axis.size;
  return ranks;
}

int Mesh::size(std::string_view axis) const {
  const auto found = std::ranges::find(axes_, axis, &MeshAxis::name);
  return found == axes_.end() ? 1 : found->size;
}

int Mesh::stride(std::string_view axis) const {
  int stride = 1;
  for (auto own = axes_.rbegin(); own != axes_.rend(); ++own) {
    if (own->name == axis) return stride;
    stride *= own->size;
  }
  return 0;
}

int Mesh::place(std::string_view axis, int rank) const {
  const int apart = stride(axis);
  return apart == 0 ? 0 : rank / apart % size(axis);
}

std::vector<int> Mesh::line(std::string_view axis, int rank) const {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(size(axis)));
  const int first = rank - place(axis, rank) * stride(axis);
  for (int i = 0; i < size(axis); ++i) ranks.push_back(first + i * stride(axis));
  return ranks;
}

Mesh mesh_from_string(std::string_view text) {
  std::vector<MeshAxis> axes;
  auto rest = text;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const auto equals = part.find('=');
    MeshAxis axis = {std::string(part.substr(0, equals)), 0};
    const auto number = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), axis.size);
    const bool is_number = error == std::errc{} && end == number.data() + number.size();
    const bool is_new = std::ranges::find(axes, axis.name, &MeshAxis::name) == axes.end();
    if (!is_number || axis.size < 1 || axis.size > 4096 || axis.name.empty() || !is_new)
      throw InvalidArgument(fmt::format("no mesh \"{}\"; write axes as dp=2,pp=2", text));
    axes.push_back(axis);
  }
  return Mesh(std::move(axes));
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const auto& [name, size] : mesh.axes())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

}  // namespace triptych::parallel
