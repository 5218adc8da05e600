// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/stream_problem.h"

#include <algorithm>

namespace triptych::systolic {
namespace {

// The address generator's coordinates have 16 bits. Larger images count from the box's corner.
constexpr std::int64_t kCoordinates = 16384;

/// The input position that the address generator calls 0, `range` being in the buffer.
std::int64_t zero_of(const StreamAxis& axis, Range range) {
  if (axis.in <= kCoordinates || range.begin == 0) return 0;
  return range.size() == 0 ? range.begin - 1 : range.begin;
}

/// The size of the input as the address generator tests it.
std::int64_t seen(const StreamAxis& axis, Range range, std::int64_t zero) {
  return axis.in <= kCoordinates ? axis.in : std::max<std::int64_t>(1, range.end - zero);
}

}  // namespace

Range StreamAxis::reads(Range outputs) const {
  const auto last = (taps - 1) * step;
  Range range = {outputs.begin * stride + first + std::min<std::int64_t>(0, last),
                 (outputs.end - 1) * stride + first + std::max<std::int64_t>(0, last) + 1};
  range = {std::clamp<std::int64_t>(range.begin, 0, in),
           std::clamp<std::int64_t>(range.end, 0, in)};
  return range;
}

StreamAxis StreamAxis::only(std::int64_t tap) const {
  auto axis = *this;
  axis.first += tap * step;
  axis.taps = 1;
  axis.step = 0;
  return axis;
}

StreamProblem flattened(StreamProblem problem) {
  if (!problem.is_pointwise()) return problem;
  problem.x.in = problem.x.out = problem.positions();
  problem.y.in = problem.y.out = problem.images = 1;
  return problem;
}

std::int64_t padded_channels(std::int64_t channels, std::int64_t group) {
  return (channels + group - 1) / group * group;
}

std::vector<Slice> slices_of(const StreamProblem& problem, const Slicing& slicing) {
  const auto step = slicing.channels > 0 ? slicing.channels : problem.channels;
  std::vector<Slice> slices;
  const auto cut_channels = [&](const StreamProblem& part, std::int64_t first_value) {
    for (std::int64_t c = 0; c < problem.channels; c += step) {
      slices.push_back({part, {c, std::min(c + step, problem.channels)}, first_value + c});
    }
  };
  if (!slicing.one_tap) {
    cut_channels(problem, 0);
    return slices;
  }
  for (std::int64_t ky = 0; ky < problem.y.taps; ++ky) {
    for (std::int64_t kx = 0; kx < problem.x.taps; ++kx) {
      auto part = problem;
      part.y = problem.y.only(ky);
      part.x = problem.x.only(kx);
      cut_channels(part, (ky * problem.x.taps + kx) * problem.channels);
    }
  }
  return slices;
}

BoxView::BoxView(const Slice& slice, const Box& box)
    : slice_(slice),
      box_(box),
      images_(box.images.size()),
      y_(slice.problem.y.reads(box.y)),
      x_(slice.problem.x.reads(box.x)),
      zero_y_(zero_of(slice.problem.y, y_)),
      zero_x_(zero_of(slice.problem.x, x_)),
      pointwise_(slice.problem.is_pointwise()) {}

std::int64_t BoxView::inputs_for(std::int64_t positions) const {
  const auto last = positions - 1;
  const auto y = last / box_.x.size() % box_.y.size();
  const auto until = [](const StreamAxis& axis, Range outputs, std::int64_t last_output,
                        Range inputs) {
    const auto end = axis.reads({outputs.begin, outputs.begin + last_output + 1}).end;
    return std::clamp<std::int64_t>(end - inputs.begin, 0, inputs.size());
  };
  if (rows() > 1) {
    const auto images = last / box_.x.size() / box_.y.size();
    return (images * y_.size() + until(slice_.problem.y, box_.y, y, y_)) * x_.size();
  }
  if (rows() == 0 || box_.y.size() > 1) return inputs();
  return until(slice_.problem.x, box_.x, last, x_);
}

std::vector<mmu::Load> BoxView::loads(std::uint32_t address, Range inputs, Range units) const {
  const auto& p = slice_.problem;
  const auto position_bytes = slice_.channels.size() * p.element_bytes;
  const auto unit_bytes = p.group * p.element_bytes;
  const auto earlier_slices = p.images * p.y.in * p.x.in * slice_.channels.begin * p.element_bytes;
  const bool whole = units.size() == this->units();
  std::vector<mmu::Load> loads;
  // Rows follow one another evenly, also from image to image where the buffer has all of them.
  const auto run = y_.size() == p.y.in ? this->inputs() : y_.size() * x_.size();
  for (auto i = inputs.begin; i < inputs.end;) {
    const auto end = std::min(inputs.end, (i / run + 1) * run);
    const auto row = i / x_.size();
    const auto from =
        ((box_.images.begin + row / y_.size()) * p.y.in + y_.begin + row % y_.size()) * p.x.in +
        x_.begin + i % x_.size();
    mmu::Load load = {
        .address = u32(address + earlier_slices + from * position_bytes + units.begin * unit_bytes),
        .buffer_row = u32(i * this->units() + units.begin),
        .log2_group = log2_group(p.group)};
    const auto width = std::min(x_.size(), end - i);
    load.pitch = u32((whole ? p.x.in : 1) * position_bytes);
    load.buffer_pitch = u32((whole ? width : 1) * this->units());
    load.units = u32(whole ? width * this->units() : units.size());
    load.lines = u32(whole ? (end - i) / width : end - i);
    loads.push_back(load);
    i = end;
  }
  return loads;
}

mmu::SetStream BoxView::stream() const {
  const auto& p = slice_.problem;
  const auto stride_y = p.y.out > 1 ? p.y.stride : 0;
  const auto stride_x = p.x.out > 1 ? p.x.stride : 0;
  const auto back = (box_.x.size() - 1) * stride_x;
  mmu::SetStream set = {.in_height = 1, .in_width = 1, .out_height = 1, .out_width = 1};
  set.step_x = i32(offset(0, stride_x));
  // Boxes share one descriptor where they can: changing it drains the array.
  const bool wraps = box_.x.size() == p.x.out || box_.y.size() * images_ > 1;
  if (wraps) {
    set.out_width = u32(box_.x.size());
    set.wrap_y = i32(offset(stride_y, -back));
  }
  if (images_ > 1) {
    set.out_height = u32(box_.y.size());
    set.wrap_n = i32(offset(y_.size() - (box_.y.size() - 1) * stride_y, -back));
  }
  if (pointwise_) return set;  // all positions are inside: coordinates stand still
  set.in_height = u32(seen(p.y, y_, zero_y_));
  set.in_width = u32(seen(p.x, x_, zero_x_));
  set.stride_y = i32(stride_y);
  set.stride_x = i32(stride_x);
  if (wraps) set.restart_x = i32(box_.x.begin * stride_x - zero_x_);
  if (images_ > 1) set.restart_y = i32(box_.y.begin * stride_y - zero_y_);
  return set;
}

mmu::SetTaps BoxView::taps() const {
  const auto& p = slice_.problem;
  const auto step_y = p.y.taps > 1 ? p.y.step : 0;
  const auto step_x = p.x.taps > 1 ? p.x.step : 0;
  mmu::SetTaps set = {.channels = u32(slice_.channels.size()),
                      .kernel_width = u32(p.x.taps),
                      .log2_group = log2_group(p.group)};
  set.step_dy = i32(step_y);
  set.step_dx = i32(step_x);
  set.restart_dx = pointwise_ ? 0 : i32(p.x.first);
  set.jump_x = i32(offset(0, step_x) - (units() - 1));
  set.jump_y = i32(offset(step_y, -(p.x.taps - 1) * step_x) - (units() - 1));
  return set;
}

void BoxView::start_at_position(std::int64_t position, mmu::Matmul& matmul) const {
  const auto& p = slice_.problem;
  const auto width = box_.x.size();
  const auto height = box_.y.size();
  const auto x = position % width;
  const auto y = position / width % height;
  const auto image = position / width / height;
  const auto in_y = (box_.y.begin + y) * (p.y.out > 1 ? p.y.stride : 0);
  const auto in_x = (box_.x.begin + x) * (p.x.out > 1 ? p.x.stride : 0);
  matmul.address = i32(offset(image * y_.size() + in_y - y_.begin, in_x - x_.begin));
  matmul.rows_left = u32(height - y);
  matmul.columns_left = u32(width - x);
  if (pointwise_) return;
  matmul.y = i32(in_y - zero_y_);
  matmul.x = i32(in_x - zero_x_);
}

void BoxView::start_at_value(std::int64_t value, mmu::Matmul& matmul) const {
  const auto& p = slice_.problem;
  const auto channel = value % slice_.channels.size();
  const auto tap = value / slice_.channels.size();
  const auto dy = p.y.first + tap / p.x.taps * p.y.step;
  const auto dx = p.x.first + tap % p.x.taps * p.x.step;
  matmul.channel = u32(channel);
  matmul.kernel_x = u32(tap % p.x.taps);
  matmul.offset = i32(offset(dy, dx) + channel / p.group);
  if (pointwise_) return;
  matmul.dy = i32(dy);
  matmul.dx = i32(dx);
}

}  // namespace triptych::systolic
