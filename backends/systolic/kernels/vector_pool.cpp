// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/vector_pool.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backends/systolic/kernels/vector_windows.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;
using Tap = PooledPlanes::Tap;
using Taps = PooledPlanes::Taps;

/// Pixels of all windows, beyond which a program would be too long.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 20;

/// Two runs, a divisor, its prepared form, and the scratch of a quotient.
constexpr std::uint32_t kMeanBlocks = 10;

AxisLines lines_of(std::int64_t planes, const std::int64_t (&size)[2]) {
  return {.outer = planes, .count = size[0] * size[1]};
}

std::uint64_t behind(std::uint64_t address, const VectorLines& lines) {
  return address + static_cast<std::uint64_t>(lines.scratch_bytes());
}

void load_run(VectorProgram& program, const LineTile& tile, std::uint64_t tensor,
              std::int64_t position, VectorBlock to) {
  program.load(tile.address(tensor, position), tile.lines, program.lanes(), to);
}

void store_run(VectorProgram& program, const LineTile& tile, VectorBlock from, std::uint64_t tensor,
               std::int64_t position) {
  program.store(from, tile.lines, program.lanes(), tile.address(tensor, position));
}

/// The largest pixel of a window and its number, with blocks to find them.
struct Winner {
  VectorBlock largest, number, pixel, better, scratch;

  explicit Winner(VectorProgram& program)
      : largest(program.allocate()),
        number(program.allocate()),
        pixel(program.allocate()),
        better(program.allocate()),
        scratch(program.allocate()) {}

  void find(VectorProgram& program, const LineTile& tile, std::uint64_t x,
            const std::vector<Tap>& window, bool numbered) const {
    load_run(program, tile, x, window.front().position, largest);
    if (numbered)
      program.apply(VectorOperation::Fill, number, {}, static_cast<float>(window.front().number));
    for (auto tap = window.begin() + 1; tap != window.end(); ++tap) {
      load_run(program, tile, x, tap->position, pixel);
      outranks(program, pixel, largest, better, scratch);
      program.apply(VectorOperation::Select, largest, pixel, largest, better);
      if (!numbered) continue;
      program.apply(VectorOperation::Xor, better, better, VectorOperand::bits(~0U));
      program.apply(VectorOperation::Select, number, number, static_cast<float>(tap->number),
                    better);
    }
  }
};

/// sum = 0 + the runs at the positions of `taps`, in their order.
void add_runs(VectorProgram& program, const LineTile& tile, std::uint64_t tensor,
              const std::vector<Tap>& taps, VectorBlock term, VectorBlock sum) {
  program.apply(VectorOperation::Fill, sum, {}, 0.0F);
  for (const Tap& tap : taps) {
    load_run(program, tile, tensor, tap.position, term);
    program.apply(VectorOperation::Add, sum, sum, term);
  }
}

/// Calls body(window, divisor) for all windows. Each divisor is prepared once.
template <class Body>
void for_each_divisor(VectorProgram& program, const std::vector<float>& divisors,
                      const Body& body) {
  std::map<float, std::vector<std::size_t>> windows;
  for (std::size_t i = 0; i < divisors.size(); ++i) windows[divisors[i]].push_back(i);
  const VectorBlock number = program.allocate();
  for (const auto& [divisor, of_divisor] : windows) {
    program.use_rows(program.block_rows());
    program.apply(VectorOperation::Fill, number, {}, divisor);
    const VectorDivisor prepared = program.prepare(number);
    body(of_divisor, prepared);
    program.release(prepared);
  }
  program.release(number);
}

}  // namespace

Verdict accepts_windows(const Window& window) {
  if (window.out[0] * window.out[1] * window.taps() > kMostPixels)
    return Verdict::no("the vector unit pools windows of at most 2^20 pixels together");
  std::vector<bool> meets(static_cast<std::size_t>(window.out[0] * window.out[1]));
  for_each_tap(window,
               [&](auto output, auto, auto) { meets[static_cast<std::size_t>(output)] = true; });
  if (std::ranges::count(meets, false) > 0)
    return Verdict::no("the vector unit pools no windows of padding alone");
  return Verdict::yes();
}

PooledPlanes::PooledPlanes(const Window& window, std::int64_t planes,
                           const mmu::MachineConfig& machine)
    : window_(window),
      image_(lines_of(planes, window.in), machine),
      results_(lines_of(planes, window.out), machine),
      rows_(vector_rows_of(planes, machine)) {}

Taps PooledPlanes::pixels_of_windows() const {
  Taps taps(static_cast<std::size_t>(results_.elements()));
  for_each_tap(window_, [&](auto output, auto input, auto number) {
    taps[static_cast<std::size_t>(output)].push_back({input, number});
  });
  return taps;
}

Taps PooledPlanes::windows_of_pixels() const {
  Taps taps(static_cast<std::size_t>(image_.elements()));
  for_each_tap(window_, [&](auto output, auto input, auto number) {
    taps[static_cast<std::size_t>(input)].push_back({output, number});
  });
  return taps;
}

VectorTask PooledPlanes::task(std::uint32_t blocks, std::int64_t scratch_bytes) const {
  return {.blocks = blocks, .rows = rows_, .scratch_bytes = scratch_bytes};
}

VectorTask PooledPlanes::maxima() const {
  VectorTask result = task(6, image_.scratch_bytes() + results_.scratch_bytes());
  result.emit = [planes = *this](VectorProgram& program, const VectorAddresses& at) {
    const std::uint64_t x = planes.image_.gather(program, at.inputs[0], at.scratch);
    const std::uint64_t own = behind(at.scratch, planes.image_);
    const std::uint64_t y = planes.results_.target(at.outputs[0], own);
    const Taps windows = planes.pixels_of_windows();
    const Winner winner(program);
    planes.image_.for_each_tile(program, [&](const LineTile& tile) {
      for (std::size_t i = 0; i < windows.size(); ++i) {
        winner.find(program, tile, x, windows[i], false);
        store_run(program, tile, winner.largest, y, static_cast<std::int64_t>(i));
      }
    });
    planes.results_.scatter(program, own, at.outputs[0]);
  };
  return result;
}

VectorTask PooledPlanes::maxima_gradient() const {
  const std::int64_t numbers_bytes = 4 * results_.lines() * results_.elements();
  VectorTask result =
      task(8, 2 * image_.scratch_bytes() + results_.scratch_bytes() + numbers_bytes);
  result.emit = [=, planes = *this](VectorProgram& program, const VectorAddresses& at) {
    const std::uint64_t numbers = at.scratch;
    const std::uint64_t x_copy = numbers + static_cast<std::uint64_t>(numbers_bytes);
    const std::uint64_t dy_copy = behind(x_copy, planes.image_);
    const std::uint64_t dx_copy = behind(dy_copy, planes.results_);
    const std::uint64_t x = planes.image_.gather(program, at.inputs[0], x_copy);
    const std::uint64_t dy = planes.results_.gather(program, at.inputs[1], dy_copy);
    const std::uint64_t dx = planes.image_.target(at.outputs[0], dx_copy);
    const Taps windows = planes.pixels_of_windows(), pixels = planes.windows_of_pixels();
    const Winner winner(program);
    const VectorBlock sum = program.allocate(), term = program.allocate();
    planes.image_.for_each_tile(program, [&](const LineTile& tile) {
      for (std::size_t i = 0; i < windows.size(); ++i) {
        winner.find(program, tile, x, windows[i], true);
        store_run(program, tile, winner.number, numbers, static_cast<std::int64_t>(i));
      }
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        program.apply(VectorOperation::Fill, sum, {}, 0.0F);
        for (const Tap& window : pixels[i]) {
          load_run(program, tile, numbers, window.position, winner.number);
          load_run(program, tile, dy, window.position, term);
          program.apply(VectorOperation::Equal, winner.better, winner.number,
                        static_cast<float>(window.number));
          program.apply(VectorOperation::And, term, term, winner.better);
          program.apply(VectorOperation::Add, sum, sum, term);
        }
        store_run(program, tile, sum, dx, static_cast<std::int64_t>(i));
      }
    });
    planes.image_.scatter(program, dx_copy, at.outputs[0]);
  };
  return result;
}

VectorTask PooledPlanes::means(std::vector<float> divisors) const {
  VectorTask result = task(kMeanBlocks, image_.scratch_bytes() + results_.scratch_bytes());
  result.emit = [planes = *this, divisors = std::move(divisors)](VectorProgram& program,
                                                                 const VectorAddresses& at) {
    const std::uint64_t x = planes.image_.gather(program, at.inputs[0], at.scratch);
    const std::uint64_t own = behind(at.scratch, planes.image_);
    const std::uint64_t y = planes.results_.target(at.outputs[0], own);
    const Taps windows = planes.pixels_of_windows();
    const VectorBlock sum = program.allocate(), term = program.allocate();
    for_each_divisor(program, divisors, [&](const auto& of_divisor, const VectorDivisor& divisor) {
      planes.image_.for_each_tile(program, [&](const LineTile& tile) {
        for (const std::size_t i : of_divisor) {
          add_runs(program, tile, x, windows[i], term, sum);
          program.divide(sum, divisor, term);
          store_run(program, tile, term, y, static_cast<std::int64_t>(i));
        }
      });
    });
    planes.results_.scatter(program, own, at.outputs[0]);
  };
  return result;
}

VectorTask PooledPlanes::means_gradient(std::vector<float> divisors) const {
  const std::int64_t shares_bytes = 4 * results_.lines() * results_.elements();
  VectorTask result =
      task(kMeanBlocks, shares_bytes + image_.scratch_bytes() + results_.scratch_bytes());
  result.emit = [=, planes = *this, divisors = std::move(divisors)](VectorProgram& program,
                                                                    const VectorAddresses& at) {
    const std::uint64_t shares = at.scratch;
    const std::uint64_t dy_copy = shares + static_cast<std::uint64_t>(shares_bytes);
    const std::uint64_t dx_copy = behind(dy_copy, planes.results_);
    const std::uint64_t dy = planes.results_.gather(program, at.inputs[0], dy_copy);
    const std::uint64_t dx = planes.image_.target(at.outputs[0], dx_copy);
    const Taps pixels = planes.windows_of_pixels();
    const VectorBlock sum = program.allocate(), term = program.allocate();
    for_each_divisor(program, divisors, [&](const auto& of_divisor, const VectorDivisor& divisor) {
      planes.image_.for_each_tile(program, [&](const LineTile& tile) {
        for (const std::size_t i : of_divisor) {
          load_run(program, tile, dy, static_cast<std::int64_t>(i), term);
          program.divide(term, divisor, sum);
          store_run(program, tile, sum, shares, static_cast<std::int64_t>(i));
        }
      });
    });
    planes.image_.for_each_tile(program, [&](const LineTile& tile) {
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        add_runs(program, tile, shares, pixels[i], term, sum);
        store_run(program, tile, sum, dx, static_cast<std::int64_t>(i));
      }
    });
    planes.image_.scatter(program, dx_copy, at.outputs[0]);
  };
  return result;
}

}  // namespace triptych::systolic
