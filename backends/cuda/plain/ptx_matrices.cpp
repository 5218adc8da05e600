// ldmatrix, stmatrix and mma.sync of inline PTX: the lanes of a warp leave their operands, and the
// last one does the work of all. Fragments lie as the PTX manual has them. Sums are one chain in
// the order of k, as those of wmma.h. Linked with libraries of kernels that have such instructions.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>

#include "backends/cuda/plain/ptx_running.h"
#include "backends/cuda/program/narrow_bits.h"

namespace triptych::cuda::plain {
namespace {

using emulation::WarpWork;

constexpr unsigned kLanes = 32, kRows = 8, kRowBytes = 16;
constexpr std::size_t kMostRows = 16, kMostColumns = 8, kMostInner = 32;

struct Row {
  volatile std::byte* address;
  const RunningPtx* running;

  std::uint16_t element(unsigned i) const {
    return static_cast<std::uint16_t>(static_cast<unsigned>(address[2 * i]) |
                                      static_cast<unsigned>(address[2 * i + 1]) << 8);
  }
  void set(unsigned i, std::uint32_t value) const {
    address[2 * i] = static_cast<std::byte>(value);
    address[2 * i + 1] = static_cast<std::byte>(value >> 8);
  }
};

/// Lanes 8 i to 8 i + 7 have the addresses of the rows of matrix i. A lane has two neighbours of
/// row lane / 4, or of that column.
void move_matrices(const Row* const* rows, unsigned matrices, bool is_transposed, bool is_load) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned row = lane / 4, column = lane % 4 * 2;
    for (unsigned i = 0; i < matrices; ++i) {
      const auto* const* matrix = rows + kRows * i;
      const RunningPtx& running = *rows[lane]->running;
      const Row &first = is_transposed ? *matrix[column] : *matrix[row],
                &second = is_transposed ? *matrix[column + 1] : *matrix[row];
      const unsigned at = is_transposed ? row : column, next = is_transposed ? row : column + 1;
      if (is_load) {
        running.set(i, first.element(at) | std::uint32_t{second.element(next)} << 16);
      } else {
        first.set(at, running.word(i + 1));
        second.set(next, running.word(i + 1) >> 16);
      }
    }
  }
}

/// Each lane with a row accesses its 16 bytes.
void run_rows(const RunningPtx& r) {
  const bool is_load = r.code.operation == PtxOperation::LoadMatrices;
  const auto matrices = static_cast<unsigned>(r.count()) - 1;
  const auto* address = r.address(is_load ? matrices : 0, true);
  const Row mine = {const_cast<volatile std::byte*>(address), &r};
  if (services->lane_index() < kRows * matrices) {
    services->touch_at(is_load ? Touch::Load : Touch::Store, const_cast<const std::byte*>(address),
                       kRowBytes, r.where);
  }
  if (!services->exchange(~0U, emulation::to_word(&mine), r.where, WarpWork::LoadMatrix)) return;
  const Row* rows[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    rows[lane] = emulation::from_word<const Row*>(services->exchanged(~0U, lane, r.where));
  }
  move_matrices(rows, matrices, r.code.detail != 0, is_load);
}

/// An element of a factor. `part`: its number in the register.
template <class Sum>
Sum element_of(std::uint64_t bits, PtxElement type, int part) {
  const auto half = static_cast<std::uint16_t>(bits >> 16 * (part & 3));
  switch (type) {
    case PtxElement::Half:
      return static_cast<Sum>(program::float_of_half(half));
    case PtxElement::Bfloat:
      return static_cast<Sum>(program::float_of_bfloat16(half));
    case PtxElement::Tf32:  // the product ignores the lower bits
      return static_cast<Sum>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) & 0xFFFFE000U));
    case PtxElement::Signed8:
      return static_cast<Sum>(static_cast<std::int8_t>(bits >> 8 * part));
    case PtxElement::Unsigned8:
      return static_cast<Sum>(static_cast<std::uint8_t>(bits >> 8 * part));
    case PtxElement::Double:
      return static_cast<Sum>(std::bit_cast<double>(bits));
  }
  return {};
}

float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
std::uint32_t multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return a * b + c; }

template <class Sum>
struct Product {
  PtxShape shape;
  Sum a[kMostRows][kMostInner], b[kMostInner][kMostColumns], c[kMostRows][kMostColumns];

  std::size_t first_a() const { return static_cast<std::size_t>(shape.registers_c()); }
  std::size_t first_b() const { return first_a() + static_cast<std::size_t>(shape.registers_a()); }
  std::size_t first_c() const { return first_b() + static_cast<std::size_t>(shape.registers_b()); }

  void take_factors(const RunningPtx& of, int lane) {
    const int group = lane / 4, place = lane % 4;
    const int parts = shape.register_bits() / shape.bits(), halves = shape.m / 8;
    for (int i = 0; i < shape.registers_a(); ++i) {
      const int row = group + i % halves * 8, k = i / halves * 4 * parts + place * parts;
      for (int part = 0; part < parts; ++part) {
        a[row][k + part] =
            element_of<Sum>(of.value(first_a() + static_cast<std::size_t>(i)), shape.a, part);
      }
    }
    for (int i = 0; i < shape.registers_b(); ++i) {
      const int k = i * 4 * parts + place * parts;
      for (int part = 0; part < parts; ++part) {
        b[k + part][group] =
            element_of<Sum>(of.value(first_b() + static_cast<std::size_t>(i)), shape.b, part);
      }
    }
  }

  /// Calls work(register, part, sum) for the sums of a lane.
  template <class Work>
  void for_each_sum(int lane, const Work& work) {
    for (int i = 0; i < shape.m / 8; ++i) {
      for (int part = 0; part < 2; ++part) {
        const int at = shape.has_half_sums ? i : 2 * i + part;
        work(static_cast<std::size_t>(at), part, c[lane / 4 + 8 * i][lane % 4 * 2 + part]);
      }
    }
  }

  void take_sums(const RunningPtx& of, int lane) {
    for_each_sum(lane, [&](std::size_t at, int part, Sum& sum) {
      const auto bits = of.value(first_c() + at);
      if (shape.has_half_sums) {
        sum = element_of<Sum>(bits, PtxElement::Half, part);
      } else if constexpr (sizeof(Sum) == 8) {
        sum = std::bit_cast<Sum>(bits);
      } else {
        sum = std::bit_cast<Sum>(static_cast<std::uint32_t>(bits));
      }
    });
  }

  void give_sums(const RunningPtx& to, int lane) {
    std::uint64_t halves[2] = {};
    for_each_sum(lane, [&](std::size_t at, int part, Sum& sum) {
      if (shape.has_half_sums) {
        halves[at] |= std::uint64_t{program::bits_of_half(static_cast<float>(sum))} << 16 * part;
        to.put(at, halves[at]);
      } else if constexpr (sizeof(Sum) == 8) {
        to.put(at, std::bit_cast<std::uint64_t>(sum));
      } else {
        to.put(at, std::bit_cast<std::uint32_t>(sum));
      }
    });
  }

  void multiply() {
    for (int m = 0; m < shape.m; ++m) {
      for (int k = 0; k < shape.k; ++k) {
        for (int n = 0; n < shape.n; ++n) c[m][n] = multiply_add(a[m][k], b[k][n], c[m][n]);
      }
    }
  }
};

template <class Sum>
void multiply_all(const RunningPtx* const* lanes) {
  Product<Sum> product = {PtxShape::unpacked(lanes[0]->code.detail)};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    product.take_factors(*lanes[lane], static_cast<int>(lane));
    product.take_sums(*lanes[lane], static_cast<int>(lane));
  }
  product.multiply();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    product.give_sums(*lanes[lane], static_cast<int>(lane));
  }
}

/// Counts as products of 16 x 8 x 16, one at least.
void run_product(const RunningPtx& r) {
  const auto shape = PtxShape::unpacked(r.code.detail);
  if (services->exchange(~0U, emulation::to_word(&r), r.where, WarpWork::Multiply)) {
    const RunningPtx* lanes[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      lanes[lane] =
          emulation::from_word<const RunningPtx*>(services->exchanged(~0U, lane, r.where));
    }
    if (shape.a == PtxElement::Double) {
      multiply_all<double>(lanes);
    } else if (shape.bits() == 8) {
      multiply_all<std::uint32_t>(lanes);
    } else {
      multiply_all<float>(lanes);
    }
  }
  for (int i = 1; i < shape.m * shape.n * shape.k / (16 * 8 * 16); ++i) {
    services->exchange(~0U, 0, r.where, WarpWork::Multiply);
  }
}

}  // namespace

void run_matrices(const RunningPtx& r) {
  return r.code.operation == PtxOperation::MultiplyMatrices ? run_product(r) : run_rows(r);
}

}  // namespace triptych::cuda::plain
