// Dropout with counter-based random numbers: the same mask on every backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/exact_math.h"
#include "core/base/random.h"
#include "core/ops/op.h"

namespace triptych {

/// Training: keep[i] = random_uniform(seed, stream + 2^32 step, first_element + i) >= ratio
/// (core/base/random.h), y = keep ? x / (1 - ratio) : 0. Outputs y and keep (bool). Inputs x (f32)
/// and step (i64 scalar, the number of finished updates). first_element: the position of x in the
/// tensor of the whole batch, of which x may be a part. Inference (training_mode 0): y = x, keep
/// all true. Step may be omitted.
struct Dropout : OpOf<Dropout> {
  static constexpr std::string_view kName = "Dropout";
  static constexpr std::string_view kSummary =
      "y = x / (1 - ratio) where a random number is at least ratio, else 0";
  float ratio = 0.5F;
  bool training_mode = false;
  std::int64_t seed = 0;
  std::int64_t stream = 0;
  std::int64_t first_element = 0;

  static void visit(auto& self, auto& visitor) {
    visitor("ratio", self.ratio);
    visitor("training_mode", self.training_mode);
    visitor("seed", self.seed);
    visitor("stream", self.stream);
    visitor("first_element", self.first_element);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// Dropout in training as kernels compute it.
struct DropoutFormula {
  std::uint64_t seed = 0, stream = 0, first = 0;
  float ratio = 0, scale = 1;

  explicit DropoutFormula(const Dropout& op)
      : seed(static_cast<std::uint64_t>(op.seed)),
        stream(static_cast<std::uint64_t>(op.stream)),
        first(static_cast<std::uint64_t>(op.first_element)),
        ratio(op.ratio),
        scale(static_cast<float>(1 / (1 - double{op.ratio}))) {}

  /// Elements of the first four random numbers that come before this tensor.
  TRIPTYCH_ALWAYS_INLINE std::size_t skipped() const { return static_cast<std::size_t>(first % 4); }
  /// The random numbers of elements 4 quad - skipped() to 4 quad - skipped() + 3.
  TRIPTYCH_ALWAYS_INLINE RandomQuad bits(std::int64_t step, std::int64_t quad) const {
    return random_quad(seed, stream + (static_cast<std::uint64_t>(step) << 32),
                       first / 4 + static_cast<std::uint64_t>(quad));
  }
  /// The random numbers of elements 4 quad to 4 quad + 3.
  TRIPTYCH_ALWAYS_INLINE RandomQuad aligned_bits(std::int64_t step, std::int64_t quad) const {
    const auto own = bits(step, quad);
    if (skipped() == 0) return own;
    const auto next = bits(step, quad + 1);
    RandomQuad aligned{};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto at = i + skipped();
      aligned.words[i] = at < 4 ? own.words[at] : next.words[at - 4];
    }
    return aligned;
  }
  TRIPTYCH_ALWAYS_INLINE bool keeps(std::uint32_t random) const {
    return uniform_from_bits(random) >= ratio;
  }
  TRIPTYCH_ALWAYS_INLINE float value(float x, bool kept) const {
    return exact::select(kept, exact::canonical(x * scale), 0);
  }
};

}  // namespace triptych
