// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/placement.h"

#include <gmock/gmock.h>

#include "core/ops/binary.h"
#include "core/ops/reshape.h"
#include "core/ops/unary.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using namespace testing_device;

/// Refuses everything.
struct Fussy : ReferenceKernel<false> {
  using ReferenceKernel::ReferenceKernel;
  static Verdict accepts(const KernelQuery&) { return Verdict::no("not today"); }
};

/// Wants its second input to be known.
struct WantsConstant : ReferenceKernel<false> {
  using ReferenceKernel::ReferenceKernel;
  static Verdict accepts(const KernelQuery& query) {
    return query.constants[1] != nullptr ? Verdict::yes() : Verdict::no("input 1 varies");
  }
};

Graph relu_graph() {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 3}});
  graph.add_node(make_op(Unary(UnaryKind::Relu)), std::vector{x}, "act");
  return graph;
}

std::vector<std::size_t> devices_of(const std::vector<NodePlacement>& placements) {
  std::vector<std::size_t> list;
  for (const auto& placement : placements) list.push_back(placement.device);
  return list;
}

TEST(Placement, takes_the_first_kernel_that_accepts_and_says_who_refused) {
  ReferenceDevice device("toy", {kernel_entry<Fussy>("Relu", "fussy"),
                                 kernel_entry<ReferenceKernel<false>>("Relu", "plain"),
                                 kernel_entry<ReferenceKernel<true>>("Relu", "last")});
  Device* const devices[] = {&device};
  const auto placements = place(relu_graph(), devices, {});
  ASSERT_EQ(placements.size(), 1u);
  EXPECT_EQ(placements[0].kernel->name, "plain");
  ASSERT_EQ(placements[0].refusals.size(), 1u);
  EXPECT_EQ(to_string(placements[0].refusals[0]), "kernel \"fussy\": not today");
}

TEST(Placement, an_error_names_node_operator_operands_contract_reasons_and_the_flag) {
  ReferenceDevice device("toy:0", {kernel_entry<Fussy>("Relu", "fussy")});
  Device* const devices[] = {&device};
  const auto graph = relu_graph();
  const auto message = message_of<UnsupportedError>(
      [&] { place(graph, devices, {.contract = Contract::Bf16Exact}); });
  EXPECT_EQ(message,
            "node \"act\" cannot run: Relu, inputs f32[2, 3], outputs f32[2, 3], contract "
            "bf16-exact\n"
            "  toy:0: kernel \"fussy\": not today\n"
            "add the option fallback cpu to run it on the CPU");
}

TEST(Placement, a_backend_without_the_operator_is_named) {
  ReferenceDevice device("toy:0", {});
  Device* const devices[] = {&device};
  const auto graph = relu_graph();
  EXPECT_THAT(message_of<UnsupportedError>([&] { place(graph, devices, {}); }),
              HasSubstr("the backend toy has no kernel for Relu"));
}

TEST(Placement, the_flag_is_not_advised_where_it_cannot_help) {
  ReferenceDevice cpu("cpu", {});
  ReferenceDevice toy("toy", {});
  Device* const alone[] = {&cpu};
  Device* const both[] = {&toy, &cpu};
  const auto graph = relu_graph();
  EXPECT_THAT(message_of<UnsupportedError>([&] { place(graph, alone, {}); }),
              Not(HasSubstr("the option fallback")));
  EXPECT_THAT(message_of<UnsupportedError>([&] { place(graph, both, {}); }),
              Not(HasSubstr("the option fallback")));
}

TEST(Placement, a_fallback_takes_only_what_the_first_device_cannot) {
  ReferenceDevice toy("toy", reference_kernels({"Add"}));
  ReferenceDevice cpu("cpu", reference_kernels({"Relu", "Add"}));
  Device* const devices[] = {&toy, &cpu};
  auto graph = relu_graph();
  const auto y = graph.find("act");
  graph.add_node(make_op(Binary()), std::vector{y, y});
  graph.add_node(make_op(Identity{}), std::vector{y});
  EXPECT_THAT(devices_of(place(graph, devices, {})), ElementsAre(1, 0, 1));
}

TEST(Placement, a_host_takes_what_the_device_has_no_kernel_for_or_optional_ones_refuse) {
  KernelEntry optional = kernel_entry<Fussy>("Relu", "optional");
  optional.optional = true;
  ReferenceDevice host("host", {kernel_entry<ReferenceKernel<false>>("Relu", "plain")});
  for (const auto& kernels : {std::vector<KernelEntry>{}, std::vector{optional}}) {
    ReferenceDevice device("toy", kernels);
    Device* const devices[] = {&device, &host};
    const auto placements = place(relu_graph(), devices, {.host = 1});
    EXPECT_THAT(devices_of(placements), ElementsAre(1));
    ASSERT_EQ(placements[0].refusals.size(), 1u);
    EXPECT_EQ(to_string(placements[0].refusals[0]), kernels.empty()
                                                        ? "the backend toy has no kernel for Relu"
                                                        : "kernel \"optional\": not today");
  }
}

TEST(Placement, a_host_takes_nothing_that_another_kernel_refuses) {
  KernelEntry optional = kernel_entry<Fussy>("Relu", "optional");
  optional.optional = true;
  ReferenceDevice host("host", {kernel_entry<ReferenceKernel<false>>("Relu", "plain")});
  ReferenceDevice device("toy", {optional, kernel_entry<Fussy>("Relu", "fussy")});
  Device* const devices[] = {&device, &host};
  EXPECT_THROW(place(relu_graph(), devices, {.host = 1}), UnsupportedError);
}

TEST(Placement, an_optional_kernel_that_accepts_keeps_its_node_from_the_host) {
  KernelEntry optional = kernel_entry<ReferenceKernel<false>>("Relu", "optional");
  optional.optional = true;
  ReferenceDevice host("host", {kernel_entry<ReferenceKernel<false>>("Relu", "plain")});
  ReferenceDevice device("toy", {optional});
  Device* const devices[] = {&device, &host};
  EXPECT_THAT(devices_of(place(relu_graph(), devices, {.host = 1})), ElementsAre(0));
}

TEST(Placement, a_view_needs_no_kernel) {
  ReferenceDevice device("toy", {});
  Device* const devices[] = {&device};
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 3}});
  graph.add_node(make_op(Identity{}), std::vector{x});
  EXPECT_EQ(place(graph, devices, {})[0].kernel, nullptr);
}

TEST(Placement, kernels_see_constants_but_not_states) {
  ReferenceDevice device("toy", {kernel_entry<WantsConstant>("Add", "packed")});
  Device* const devices[] = {&device};
  Graph constant;
  auto x = constant.add_input("x", {DType::F32, {2}});
  auto w = constant.constant(filled({2}, 1));
  constant.add_node(make_op(Binary()), std::vector{x, w});
  EXPECT_NO_THROW(place(constant, devices, {}));
  Graph state;
  x = state.add_input("x", {DType::F32, {2}});
  w = state.add_state("w", filled({2}, 1));
  state.add_node(make_op(Binary()), std::vector{x, w});
  EXPECT_THROW(place(state, devices, {}), UnsupportedError);
}

TEST(Placement, a_forced_kernel_is_taken_before_better_ones) {
  ReferenceDevice device("toy", {kernel_entry<ReferenceKernel<false>>("Relu", "fast"),
                                 kernel_entry<ReferenceKernel<false>>("Relu", "slow")});
  Device* const devices[] = {&device};
  const PlacementOptions options{.forced_kernels = {{"Relu", "slow"}}};
  EXPECT_EQ(place(relu_graph(), devices, options)[0].kernel->name, "slow");
}

KernelEntry not_worth_it(std::string_view name) {
  auto entry = kernel_entry<ReferenceKernel<false>>("Relu", name);
  entry.worth = [](const KernelQuery&) { return Verdict::no("is for larger ones"); };
  return entry;
}

TEST(Placement, a_kernel_that_is_not_worth_it_is_passed_over_unless_it_is_forced) {
  ReferenceDevice device(
      "toy", {not_worth_it("large"), kernel_entry<ReferenceKernel<false>>("Relu", "plain")});
  Device* const devices[] = {&device};
  const auto placed = place(relu_graph(), devices, {});
  EXPECT_EQ(placed[0].kernel->name, "plain");
  ASSERT_EQ(placed[0].refusals.size(), 1U);
  EXPECT_EQ(to_string(placed[0].refusals[0]), "kernel \"large\": is for larger ones");
  const PlacementOptions forced{.forced_kernels = {{"Relu", "large"}}};
  EXPECT_EQ(place(relu_graph(), devices, forced)[0].kernel->name, "large");
}

TEST(Placement, a_kernel_can_name_the_unit_that_it_runs_on) {
  auto entry = kernel_entry<ReferenceKernel<false>>("Relu", "fast");
  entry.worth = [](const KernelQuery&) { return Verdict{true, "runs on the tile unit"}; };
  ReferenceDevice device("toy", {not_worth_it("large"), entry});
  Device* const devices[] = {&device};
  EXPECT_EQ(place(relu_graph(), devices, {})[0].choice, "runs on the tile unit");
}

TEST(Placement, what_transforms_its_operands_is_left_out_where_it_is_not_wanted) {
  auto fast = kernel_entry<ReferenceKernel<false>>("Relu", "fast");
  fast.accuracy = Accuracy::Transformed;
  ReferenceDevice device("toy", {fast, kernel_entry<ReferenceKernel<false>>("Relu", "winograd")});
  Device* const devices[] = {&device};
  EXPECT_EQ(place(relu_graph(), devices, {})[0].kernel->name, "fast");
  EXPECT_EQ(place(relu_graph(), devices, {.transformed = false})[0].kernel->name, "winograd")
      << "a name says nothing";
}

TEST(Placement, a_forced_kernel_that_refuses_is_an_error_even_with_a_fallback) {
  ReferenceDevice toy("toy", {kernel_entry<Fussy>("Relu", "fussy"),
                              kernel_entry<ReferenceKernel<false>>("Relu", "plain")});
  ReferenceDevice cpu("cpu", {kernel_entry<ReferenceKernel<false>>("Relu", "fussy")});
  Device* const devices[] = {&toy, &cpu};
  const auto graph = relu_graph();
  const PlacementOptions options{.forced_kernels = {{"Relu", "fussy"}}};
  EXPECT_THAT(message_of<UnsupportedError>([&] { place(graph, devices, options); }),
              HasSubstr("kernel \"fussy\": not today"));
}

TEST(Placement, a_forced_kernel_that_nobody_has_is_an_error_that_lists_the_others) {
  ReferenceDevice device("toy", reference_kernels({"Relu"}));
  Device* const devices[] = {&device};
  const auto graph = relu_graph();
  const PlacementOptions options{.forced_kernels = {{"Relu", "gemm"}}};
  EXPECT_THAT(message_of<UnsupportedError>([&] { place(graph, devices, options); }),
              HasSubstr("no kernel \"gemm\" for Relu; its kernels: reference"));
}

}  // namespace
}  // namespace triptych
