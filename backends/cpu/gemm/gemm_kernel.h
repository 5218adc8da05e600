// Common part of the kernels that are matrix products: whom they refuse, and operands that are
// packed once when they are constant and at each run when they are not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/runtime/device.h"

namespace triptych::cpu {

/// Refuses the contracts that float32 microkernels cannot honour here.
Verdict accepts_gemm(const KernelQuery& query);

/// As accepts_gemm, for kernels that multiply pairs of bfloat16.
Verdict accepts_dots(const KernelQuery& query);

/// As accepts_gemm, for operators with an image as input 0: also refuses planes with more elements
/// than 32 bits can count.
Verdict accepts_image_gemm(const KernelQuery& query);
Verdict accepts_image_dots(const KernelQuery& query);

/// Threads of this backend's `device`.
int device_threads(const Device& device);

/// Input `index` when it is known at plan time, else nullptr.
const Tensor* constant_input(const KernelQuery& query, std::size_t index);

/// An operand of elements From, packed as elements To of 4 bytes.
template <class From, class To>
class BasicPackedOperand {
 public:
  /// Writes the packed form of the operand at `from`.
  using Pack = std::function<void(const From* from, To* to)>;

  /// `size`: elements of the packed form. A `constant` is packed in the constructor.
  BasicPackedOperand(std::int64_t size, Pack pack, const Tensor* constant, Device& device);

  std::size_t scratch_bytes() const { return resident_ ? 0 : bytes_; }
  std::size_t resident_bytes() const { return resident_ ? bytes_ : 0; }
  /// The packed operand: the stored one, or `from` packed into `scratch`.
  const To* ready(const From* from, std::byte* scratch) const;

 private:
  std::size_t bytes_;
  Pack pack_;
  AlignedBytes resident_;
};
using PackedOperand = BasicPackedOperand<float, float>;

}  // namespace triptych::cpu
