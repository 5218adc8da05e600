// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <type_traits>

#include "core/base/checked_math.h"
#include "core/base/memory_budget.h"

namespace triptych {

std::size_t TensorSpec::bytes() const {
  return static_cast<std::size_t>(
      checked_mul(shape.elements(), static_cast<std::int64_t>(dtype_size(dtype))));
}

std::string to_string(const TensorSpec& spec) {
  return std::string(to_string(spec.dtype)) + to_string(spec.shape);
}

namespace {

/// Asks for huge pages where the block contains whole ones: the processor then translates addresses
/// less often, which limits the streaming of weights. Where the system has none, nothing changes.
void prefer_huge_pages([[maybe_unused]] std::byte* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr std::size_t page = std::size_t{1} << 21U;
  const auto skipped = (page - reinterpret_cast<std::uintptr_t>(memory) % page) % page;
  if (bytes < skipped + page) return;
  madvise(memory + skipped, (bytes - skipped) / page * page, MADV_HUGEPAGE);
#endif
}

/// Record before an aligned block.
struct Origin {
  void* block;        ///< of calloc()
  std::size_t bytes;  ///< that the budget counts
};

Origin& origin_of(std::byte* memory) { return *(reinterpret_cast<Origin*>(memory) - 1); }

}  // namespace

void AlignedDeleter::operator()(std::byte* memory) const {
  if (memory == nullptr) return;
  const auto [block, bytes] = origin_of(memory);
  std::free(block);
  memory_budget().give_back(bytes);
}

AlignedBytes allocate_aligned(std::size_t bytes) {
  constexpr auto extra = kAlignment + sizeof(Origin);
  if (bytes > std::numeric_limits<std::size_t>::max() - extra) throw std::bad_alloc();
  const auto all = bytes + extra;
  memory_budget().take(all, "a block of numbers");
  // calloc gives large blocks as pages that take memory only once written.
  void* block = std::calloc(1, all);
  if (block == nullptr) {
    memory_budget().give_back(all);
    throw std::bad_alloc();
  }
  auto* first = static_cast<std::byte*>(block) + sizeof(Origin);
  const auto beyond = reinterpret_cast<std::uintptr_t>(first) % kAlignment;
  auto* memory = first + (kAlignment - beyond) % kAlignment;
  origin_of(memory) = {block, all};
  prefer_huge_pages(memory, bytes);
  return AlignedBytes(memory);
}

Tensor::Tensor(TensorSpec spec) : spec_(std::move(spec)), data_(allocate_aligned(spec_.bytes())) {}

Tensor Tensor::clone() const {
  Tensor copy(spec_);
  std::copy(bytes().begin(), bytes().end(), copy.bytes().begin());
  return copy;
}

Tensor Tensor::reshaped(Shape shape) && {
  if (shape.elements() != elements()) {
    throw InvalidArgument("cannot reshape " + to_string(spec_.shape) + " to " + to_string(shape));
  }
  spec_.shape = std::move(shape);
  return std::move(*this);
}

void Tensor::require(DType dtype) const {
  if (dtype != spec_.dtype) {
    throw InvalidArgument("tensor is " + std::string(to_string(spec_.dtype)) + ", read as " +
                          std::string(to_string(dtype)));
  }
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.elements()));
  visit_dtype(tensor.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto source = tensor.as<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        values[i] = static_cast<double>(source[i]);
      } else {
        values[i] = static_cast<double>(static_cast<float>(source[i]));
      }
    }
  });
  return values;
}

namespace {

template <class T>
T round_to(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(std::max(value, static_cast<double>(std::numeric_limits<T>::min())));
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

}  // namespace

Tensor from_doubles(const TensorSpec& spec, std::span<const double> values) {
  Tensor tensor(spec);
  TRIPTYCH_ASSERT(values.size() == static_cast<std::size_t>(tensor.elements()));
  visit_dtype(spec.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto target = tensor.as<T>();
    for (std::size_t i = 0; i < values.size(); ++i) target[i] = round_to<T>(values[i]);
  });
  return tensor;
}

}  // namespace triptych
