// Nodes through which the graphs of a run's ranks meet: their exchanges. All ranks of the
// mesh axis have such a node. Any number of tensors travel as one message. Sums are of f32, other
// collectives of any dtype. As the only rank of its axis, which the references are, a rank sends to
// itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/base/choice.h"
#include "core/ops/op.h"

namespace triptych {

/// How the values of ranks are added, which decides the bits of sums.
enum class ReductionOrder : std::uint8_t {
  RankOrdered,  ///< ((0+1)+2)+3
  ShardTree,    ///< (0+1)+(2+3)
  Ring,         ///< each part begins at another rank
  Library,      ///< as the transport's library pleases
};

template <>
inline constexpr auto kNamesOf<ReductionOrder> =
    std::to_array<std::pair<ReductionOrder, std::string_view>>(
        {{ReductionOrder::RankOrdered, "rank-ordered"},
         {ReductionOrder::ShardTree, "shard-tree"},
         {ReductionOrder::Ring, "ring"},
         {ReductionOrder::Library, "library"}});

/// Visits the attribute "order", which is a name in files: `order` of an operator, const where the
/// visitor writes. Throws InvalidArgument for another name.
void visit_order(auto& visitor, auto& order) {
  std::string name(name_of(order));
  visitor("order", name);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(order)>>) {
    try {
      order = value_of<ReductionOrder>(name);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(std::string("the attribute order ") + error.what());
    }
  }
}

/// y_i = scale * the sum of x_i over all ranks of the axis, added in that order.
struct AllReduce : OpOf<AllReduce> {
  static constexpr std::string_view kName = "AllReduce";
  static constexpr std::string_view kSummary = "y_i = scale * sum of x_i over all ranks";

  std::string axis = "dp";
  ReductionOrder order = ReductionOrder::RankOrdered;
  float scale = 1;
  std::string label;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visit_order(visitor, self.order);
    visitor("scale", self.scale);
    visitor("label", self.label);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool collective() const override { return true; }
};

/// Elements of each rank's part of a tensor that `parts` ranks share: they are as long as the
/// first, and where the tensor does not divide, zeros fill the last.
constexpr std::int64_t shard_elements(std::int64_t elements, std::int64_t parts) {
  return (elements + parts - 1) / parts;
}

/// The shape of one part of a tensor that is cut as `split` of ReduceScatter says. Throws
/// InvalidArgument, naming `who`, when that axis does not divide.
Shape part_shape(std::string_view who, const Shape& whole, std::int64_t parts, std::int64_t split);

/// y_i = this rank's part of scale * the sum of x_i over all ranks of the axis. `order` as in
/// AllReduce: RankOrdered or Ring. A part is shard_elements of the tensor read row
/// by row, [elements], or with `split` >= 0 the rank's share of the tensor's axis of that number,
/// which the ranks divide evenly.
struct ReduceScatter : OpOf<ReduceScatter> {
  static constexpr std::string_view kName = "ReduceScatter";
  static constexpr std::string_view kSummary =
      "y_i = this rank's part of scale * sum of x_i over all ranks";

  std::string axis = "dp";
  ReductionOrder order = ReductionOrder::RankOrdered;
  float scale = 1;
  std::int64_t parts = 1;  ///< ranks of the axis
  std::int64_t split = -1;
  std::string label;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visit_order(visitor, self.order);
    visitor("scale", self.scale);
    visitor("parts", self.parts);
    visitor("split", self.split);
    visitor("label", self.label);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool collective() const override { return true; }
};

/// y_i = the parts x_i of all ranks of the axis together, as a tensor of the i-th shape of
/// `shapes`: for each its rank and then its dimensions. Parts are as in ReduceScatter. All inputs
/// have one dtype. Flat parts are f32.
struct AllGather : OpOf<AllGather> {
  static constexpr std::string_view kName = "AllGather";
  static constexpr std::string_view kSummary = "y_i = the parts x_i of all ranks";

  std::string axis = "dp";
  std::int64_t parts = 1;
  std::int64_t split = -1;
  std::vector<std::int64_t> shapes;
  std::string label;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("parts", self.parts);
    visitor("split", self.split);
    visitor("shapes", self.shapes);
    visitor("label", self.label);
  }
  void add_shape(const Shape& shape);
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool collective() const override { return true; }
};

/// Offers x_i to rank `to` of the axis, without waiting for it. y: their number, a scalar.
struct Send : OpOf<Send> {
  static constexpr std::string_view kName = "Send";
  static constexpr std::string_view kSummary = "sends x_i to rank `to`; y = their number";

  std::string axis = "pp";
  std::int64_t to = 0;
  std::string label;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("to", self.to);
    visitor("label", self.label);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool collective() const override { return true; }
};

/// y_i is the i-th tensor that rank `from` of the axis sent. `shapes` has the shapes as AllGather
/// does. `dtypes` names the dtypes, separated by spaces. Empty means f32. The reference has no
/// sender and gives zeros.
struct Receive : OpOf<Receive> {
  static constexpr std::string_view kName = "Receive";
  static constexpr std::string_view kSummary = "y_i = what rank `from` sent";

  std::string axis = "pp";
  std::int64_t from = 0;
  std::vector<std::int64_t> shapes;
  std::string dtypes;
  std::string label;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("from", self.from);
    visitor("shapes", self.shapes);
    visitor("dtypes", self.dtypes);
    visitor("label", self.label);
  }
  void add(const TensorSpec& spec);
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool collective() const override { return true; }
};

}  // namespace triptych
