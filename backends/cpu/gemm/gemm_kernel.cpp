// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm_kernel.h"

#include <limits>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/gemm/microkernel.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {

Verdict accepts_gemm(const KernelQuery& query) {
  if (query.contract == Contract::Int8) {
    return Verdict::no("computes in float32; int8 needs integer operands");
  }
  if (query.contract == Contract::Bf16Exact && !microkernels().fused) {
    return Verdict::no("bf16-exact needs fused multiply-add, which this processor does not have");
  }
  return Verdict::yes();
}

Verdict accepts_dots(const KernelQuery& query) {
  const bool rounds = query.contract == Contract::Bf16Exact || query.contract == Contract::Bf16;
  return rounds ? accepts_gemm(query) : Verdict::no("computes under bf16 and bf16-exact only");
}

Verdict accepts_image_gemm(const KernelQuery& query) {
  const auto& x = query.inputs[0].spec.shape;
  if (x.elements_between(2, x.rank()) > std::numeric_limits<std::int32_t>::max()) {
    return Verdict::no("has planes of 2^31 elements or more");
  }
  return accepts_gemm(query);
}

Verdict accepts_image_dots(const KernelQuery& query) {
  const auto verdict = accepts_dots(query);
  return verdict.accepted ? accepts_image_gemm(query) : verdict;
}

int device_threads(const Device& device) {
  return dynamic_cast<const CpuDevice&>(device).threads();
}

const Tensor* constant_input(const KernelQuery& query, std::size_t index) {
  return index < query.constants.size() ? query.constants[index] : nullptr;
}

template <class From, class To>
BasicPackedOperand<From, To>::BasicPackedOperand(std::int64_t size, Pack pack,
                                                 const Tensor* constant, Device& device)
    : bytes_(static_cast<std::size_t>(
          checked_mul(round_up(size, kAlignment / sizeof(To)), sizeof(To)))),
      pack_(std::move(pack)) {
  if (constant == nullptr) return;
  resident_ = allocate_aligned(bytes_);
  device.submit(0, [&](Stream*) {
    pack_(constant->as<From>().data(), reinterpret_cast<To*>(resident_.get()));
  });
}

template <class From, class To>
const To* BasicPackedOperand<From, To>::ready(const From* from, std::byte* scratch) const {
  if (resident_) return reinterpret_cast<const To*>(resident_.get());
  auto* to = reinterpret_cast<To*>(scratch);
  pack_(from, to);
  return to;
}

template class BasicPackedOperand<float, float>;
template class BasicPackedOperand<float, std::uint32_t>;
template class BasicPackedOperand<std::int8_t, std::uint32_t>;
template class BasicPackedOperand<std::int8_t, PairWord>;

}  // namespace triptych::cpu
