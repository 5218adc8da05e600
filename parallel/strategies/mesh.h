// Ranks in rows and columns: a mesh with named axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triptych::parallel {

struct MeshAxis {
  std::string name;
  int size = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// Ranks count along the last axis first: with dp=2, pp=3 the ranks 0 to 2 are one pipeline.
class Mesh {
 public:
  Mesh() = default;
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}

  const std::vector<MeshAxis>& axes() const { return axes_; }
  bool empty() const { return axes_.empty(); }
  int ranks() const;
  /// Size of an axis. 1 when the mesh does not have it.
  int size(std::string_view axis) const;
  /// Where a rank is along an axis. 0 when the mesh does not have it.
  int place(std::string_view axis, int rank) const;
  /// The ranks along an axis that differ from this one in their place on it alone, in order.
  std::vector<int> line(std::string_view axis, int rank) const;
  bool operator==(const Mesh&) const = default;

 private:
  /// How far apart neighbours along the axis are. 0 when the mesh does not have it.
  int stride(std::string_view axis) const;

  std::vector<MeshAxis> axes_;
};

/// "dp=2,pp=2", or "" for an empty text. Throws InvalidArgument for another form.
Mesh mesh_from_string(std::string_view text);
/// The text that mesh_from_string reads.
std::string to_string(const Mesh& mesh);

}  // namespace triptych::parallel
