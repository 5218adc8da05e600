// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace triptych {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TEST(Shape, of_rank_0_is_a_scalar) {
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(Shape, counts_its_elements) {
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).elements(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).elements_between(1, 3), 12);
  EXPECT_EQ((Shape{2, 3, 4}).elements_between(1, 1), 1);
}

TEST(Shape, refuses_negative_sizes_and_counts_that_overflow) {
  EXPECT_THROW(Shape({2, -1}), InvalidArgument);
  EXPECT_THROW(Shape({kHuge, kHuge}), InvalidArgument);
  EXPECT_THROW(Shape({kHuge, kHuge, 0}), InvalidArgument);
}

TEST(Shape, has_row_major_strides) {
  EXPECT_THAT((Shape{2, 3, 4}).strides(), ElementsAre(12, 4, 1));
  EXPECT_THAT(Shape{}.strides(), ElementsAre());
}

TEST(Shape, takes_axes_from_both_ends) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(normalize_axis(-3, 3), 0);
  EXPECT_THROW(shape.dim(3), InvalidArgument);
  EXPECT_THROW(normalize_axis(-4, 3), InvalidArgument);
  EXPECT_THROW(normalize_axis(0, 0), InvalidArgument);
}

TEST(Shape, broadcasts_as_numpy_does) {
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), (Shape{0}));
  EXPECT_THROW(broadcast_shapes({2}, {3}), InvalidArgument);
  EXPECT_THROW(broadcast_shapes({2}, {0}), InvalidArgument);
}

TEST(Shape, reads_broadcast_axes_with_stride_0) {
  EXPECT_THAT(broadcast_strides({3, 1}, {2, 3, 4}), ElementsAre(0, 1, 0));
  EXPECT_THAT(broadcast_strides({}, {2}), ElementsAre(0));
}

TEST(Shape, visits_indices_in_row_major_order) {
  const Shape shape{2, 3};
  std::vector<std::int64_t> order;
  for_each_index(shape, [&](const Dims& p) { order.push_back(flat_index(p, shape.strides())); });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Shape, visits_a_scalar_once_and_an_empty_shape_never) {
  int visits = 0;
  for_each_index(Shape{}, [&](const Dims& p) { visits += p.empty() ? 1 : 100; });
  EXPECT_EQ(visits, 1);
  for_each_index(Shape{3, 0}, [&](const Dims&) { ++visits; });
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace triptych
