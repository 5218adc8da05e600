// A chain of elementwise operators in one launch: it reads each input once and writes the output
// once. Intermediate values stay in registers. The steps are data, the same for all threads, so
// that one kernel serves every chain. The formulas are those of the operators' own kernels.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fused_elementwise.h"

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

inline constexpr int kMostSteps = static_cast<int>(FusedElementwise::kMostSteps);
inline constexpr int kMostInputs = static_cast<int>(FusedElementwise::kMostInputs);

/// ChainStep as a kernel takes it.
struct Step {
  bool is_unary = true;
  UnaryKind unary = UnaryKind::Relu;
  BinaryKind binary = BinaryKind::Add;
  int a = ChainStep::kPrevious, b = ChainStep::kPrevious;
  scalar::UnaryParameters parameters;
};

struct ChainProblem {
  int count = 0;  ///< steps
  Step steps[kMostSteps];
  Global<const float> x[kMostInputs];
  Global<float> y;
  bool single[kMostInputs] = {};  ///< one element of x for all of y
};

/// The elements that a thread holds at once.
template <int kEach>
using Held = Vector<float, kEach>;

template <UnaryKind kKind, int kEach>
__device__ Held<kEach> each(const scalar::UnaryParameters& parameters, const Held<kEach>& x) {
  Held<kEach> y;
#pragma unroll
  for (int e = 0; e < kEach; ++e) y[e] = scalar::unary<kKind>(x[e], parameters);
  return y;
}

template <BinaryKind kKind, int kEach>
__device__ Held<kEach> each(const Held<kEach>& a, const Held<kEach>& b) {
  Held<kEach> y;
#pragma unroll
  for (int e = 0; e < kEach; ++e) y[e] = scalar::binary<kKind>(a[e], b[e]);
  return y;
}

template <int kEach>
__device__ Held<kEach> apply(UnaryKind kind, const scalar::UnaryParameters& parameters,
                             const Held<kEach>& x) {
  using enum UnaryKind;
  switch (kind) {
    case Relu:
      return each<Relu>(parameters, x);
    case LeakyRelu:
      return each<LeakyRelu>(parameters, x);
    case Sigmoid:
      return each<Sigmoid>(parameters, x);
    case Tanh:
      return each<Tanh>(parameters, x);
    case Gelu:
      return each<Gelu>(parameters, x);
    case Exp:
      return each<Exp>(parameters, x);
    case Log:
      return each<Log>(parameters, x);
    case Sqrt:
      return each<Sqrt>(parameters, x);
    case Reciprocal:
      return each<Reciprocal>(parameters, x);
    case Neg:
      return each<Neg>(parameters, x);
    case Abs:
      return each<Abs>(parameters, x);
    case Sign:
      return each<Sign>(parameters, x);
    case Erf:
      return each<Erf>(parameters, x);
    case Clip:
      return each<Clip>(parameters, x);
    case Elu:
      return each<Elu>(parameters, x);
    case Softplus:
      return each<Softplus>(parameters, x);
    case Softsign:
      return each<Softsign>(parameters, x);
    default:
      return x;
  }
}

template <int kEach>
__device__ Held<kEach> apply(BinaryKind kind, const Held<kEach>& a, const Held<kEach>& b) {
  using enum BinaryKind;
  switch (kind) {
    case Add:
      return each<Add>(a, b);
    case Sub:
      return each<Sub>(a, b);
    case Mul:
      return each<Mul>(a, b);
    case Div:
      return each<Div>(a, b);
    case Pow:
      return each<Pow>(a, b);
    case Min:
      return each<Min>(a, b);
    case Max:
      return each<Max>(a, b);
    case ReluGradient:
      return each<ReluGradient>(a, b);
    case SigmoidGradient:
      return each<SigmoidGradient>(a, b);
    case TanhGradient:
      return each<TanhGradient>(a, b);
    default:
      return a;
  }
}

/// The whole chain. fetch(i) reads input i.
template <int kEach, class Fetch>
__device__ Held<kEach> run_chain(const ChainProblem& problem, const Fetch& fetch) {
  Held<kEach> y = fetch(0);
  for (int s = 0; s < problem.count; ++s) {
    const Step& step = problem.steps[s];
    if (step.is_unary) {
      y = apply(step.unary, step.parameters, y);
    } else {
      const Held<kEach> a = step.a == ChainStep::kPrevious ? y : fetch(step.a);
      const Held<kEach> b = step.b == ChainStep::kPrevious ? y : fetch(step.b);
      y = apply(step.binary, a, b);
    }
  }
  return y;
}

using ChainOffsets = ElementOffsets<1 + kMostInputs>;

/// Where input k's element lies.
__device__ inline std::int64_t place_of(const std::int64_t (&at)[1 + kMostInputs], int k) {
  std::int64_t from = at[1];
#pragma unroll  // a place that is computed would put them all into local memory
  for (int other = 1; other < kMostInputs; ++other) from = k == other ? at[1 + other] : from;
  return from;
}

/// One element per thread.
__global__ void fused_kernel(const __grid_constant__ ChainProblem problem,
                             const __grid_constant__ ChainOffsets offsets) {
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[1 + kMostInputs];
    offsets.at(i, at);
    const Held<1> y =
        run_chain<1>(problem, [&](int k) { return Held<1>{{problem.x[k][place_of(at, k)]}}; });
    problem.y[at[0]] = y[0];
  }
}

/// The same where elements lie in fours, or inputs are one element: four per thread and access.
__global__ void fused_fours_kernel(const __grid_constant__ ChainProblem problem,
                                   const __grid_constant__ ChainOffsets offsets) {
  const std::int64_t count = offsets.elements;
  for (auto i = 4 * global_thread(); i < count; i += 4 * all_threads()) {
    if (i + 4 <= count) {
      std::int64_t at[1 + kMostInputs];
      offsets.at(i, at);
      const Held<4> y = run_chain<4>(problem, [&](int k) {
        if (!problem.single[k]) return problem.x[k].load<4>(place_of(at, k));
        const float all = problem.x[k][0];
        return Held<4>{{all, all, all, all}};
      });
      problem.y.store<4>(at[0], y);
      continue;
    }  // else there is one axis
    for (auto j = i; j < count; ++j) {
      problem.y[j] = run_chain<1>(
          problem, [&](int k) { return Held<1>{{problem.x[k][problem.single[k] ? 0 : j]}}; })[0];
    }
  }
}

ChainOffsets chain_offsets(const KernelQuery& query) {
  const Shape& y = query.outputs[0].spec.shape;
  std::array<Dims, 1 + kMostInputs> strides;
  strides.fill(Dims(static_cast<std::size_t>(y.rank()), 0));
  strides[0] = operand_strides(query.outputs[0], y);
  for (std::size_t k = 0; k < query.inputs.size(); ++k) {
    strides[1 + k] = operand_strides(query.inputs[k], y);
  }
  return ChainOffsets(BroadcastWalk<1 + kMostInputs>(y, strides));
}

class FusedKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  FusedKernel(const KernelQuery& query, Device&)
      : inputs_(query.inputs.size()), offsets_(chain_offsets(query)) {
    for (const auto& step : query.as<FusedElementwise>().chain(inputs_)) {
      auto& next = problem_.steps[problem_.count++];
      const Unary unary = step.unary.value_or(Unary());
      next = {step.unary.has_value(),
              unary.kind,
              step.binary,
              step.a,
              step.b,
              {unary.alpha, unary.min, unary.max}};
    }
    in_fours_ = offsets_.in_fours();
    for (std::size_t k = 0; k < inputs_; ++k) {
      problem_.single[k] = offsets_.single(1 + static_cast<int>(k));
    }
  }

  void run(const KernelArgs& args) override {
    if (offsets_.elements == 0) return;
    auto problem = problem_;
    bool aligned = is_aligned<16>(args.outputs[0]);
    for (std::size_t k = 0; k < inputs_; ++k) {
      problem.x[k] = {args.in<float>(k), offsets_.reach(1 + static_cast<int>(k))};
      aligned = aligned && (problem.single[k] || is_aligned<16>(args.inputs[k]));
    }
    problem.y = {args.out<float>(0), offsets_.reach(0)};
    if (in_fours_ && aligned) {
      launch(args.stream, "fused_fours", one_dimension((offsets_.elements + 3) / 4),
             fused_fours_kernel, problem, offsets_);
    } else {
      launch(args.stream, "fused", one_dimension(offsets_.elements), fused_kernel, problem,
             offsets_);
    }
  }

 private:
  std::size_t inputs_;
  ChainOffsets offsets_;
  ChainProblem problem_;
  bool in_fours_ = false;
};

}  // namespace

void add_fused_elementwise_kernels(KernelList& list) {
  list.push_back(kernel_entry<FusedKernel>(FusedElementwise::kName, "chain"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
