// SPDX-License-Identifier: Apache-2.0
#include "core/ops/optimizers.h"

#include <array>

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// A parameter with its operands: parameter, gradient and moments in, parameter and moments out, in
/// place or not.
template <int kIn, int kOut>
struct Parameter {
  const float* in[kIn];
  float* out[kOut];
  std::int64_t elements;
  std::int64_t end;  ///< blocks of threads of this parameter and of those before it
};

/// Elements that a block of threads updates.
inline constexpr std::int64_t kPiece = 2048;

/// Bytes of a launch's arguments: the limit of every CUDA version, and that of 12.1 and later. The
/// emulation copies arguments for every thread, and keeps to the first.
inline constexpr std::size_t kPlainBytes = 4096;
#if defined(__CUDACC__) && CUDART_VERSION >= 12010
inline constexpr std::size_t kMostBytes = 32764;
#else
inline constexpr std::size_t kMostBytes = kPlainBytes;
#endif

/// The parameters of one launch. They travel as an argument of the kernel: there is no table to
/// keep in step with the executor's memory.
template <int kIn, int kOut, std::size_t kBytes>
struct ParameterTable {
  static constexpr int kMost = static_cast<int>((kBytes - 64) / sizeof(Parameter<kIn, kOut>));
  static constexpr int kInputs = kIn, kOutputs = kOut;
  int count = 0;
  Parameter<kIn, kOut> parameters[kMost];

  std::int64_t blocks() const { return count == 0 ? 0 : parameters[count - 1].end; }

  /// Number of the parameter that this block of threads owns a piece of.
  __device__ int mine() const {
    int first = 0, last = count - 1;
    while (first < last) {
      const int middle = (first + last) / 2;
      if (blockIdx.x < parameters[middle].end) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return first;
  }
  /// Calls update(in, out) for the elements of this thread, with `in` and `out` as old values and
  /// destinations of the new ones. Moves four neighbours at once where they are aligned.
  template <class Update>
  __device__ void for_each_element(const Update& update) const {
    const int number = mine();
    const auto& parameter = parameters[number];
    const std::int64_t before = number == 0 ? 0 : parameters[number - 1].end;
    const std::int64_t begin = (blockIdx.x - before) * kPiece;
    const std::int64_t end =
        begin + kPiece < parameter.elements ? begin + kPiece : parameter.elements;
    const auto visit = [&](std::int64_t i, auto width) {
      update_group<width()>(parameter, i, update);
    };
    bool aligned = true;
    for (int k = 0; k < kIn; ++k) aligned = aligned && is_aligned<16>(parameter.in[k]);
    for (int k = 0; k < kOut; ++k) aligned = aligned && is_aligned<16>(parameter.out[k]);
    if (aligned) {
      for_each_group<4>(begin + 4 * threadIdx.x, end, 4 * blockDim.x, visit);
    } else {
      for_each_group<1>(begin + threadIdx.x, end, blockDim.x, visit);
    }
  }

 private:
  template <int kEach, class Update>
  __device__ static void update_group(const Parameter<kIn, kOut>& parameter, std::int64_t i,
                                      const Update& update) {
    Vector<float, kEach> in[kIn], out[kOut];
#pragma unroll
    for (int k = 0; k < kIn; ++k) {
      in[k] = Global<const float>(parameter.in[k], parameter.elements).template load<kEach>(i);
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      float values[kIn], results[kOut];
      for (int k = 0; k < kIn; ++k) values[k] = in[k][e];
      update(values, results);
      for (int k = 0; k < kOut; ++k) out[k][e] = results[k];
    }
#pragma unroll
    for (int k = 0; k < kOut; ++k) {
      Global<float>(parameter.out[k], parameter.elements).template store<kEach>(i, out[k]);
    }
  }
};

/// Completes the rule by learning rate and step, which lie in device memory, and counts the step:
/// one thread, before all updates.
template <class Rule>
__global__ void begin_step_kernel(Rule rule, Global<const float> learning_rate,
                                  Global<const std::int64_t> step, Global<std::int64_t> new_step,
                                  Global<Rule> complete) {
  const std::int64_t finished = step[0];
  rule.begin_step(learning_rate[0], finished);
  complete[0] = rule;
  new_step[0] = finished + 1;
}

template <class Table>
__global__ void sgd_kernel(Table table, Global<const scalar::Sgd> rule) {
  const scalar::Sgd sgd = rule[0];
  table.for_each_element([&](const float* in, float* out) {
    float parameter = in[0], velocity = 0;
    if constexpr (Table::kInputs == 3) velocity = in[2];
    sgd.update(parameter, in[1], velocity);
    out[0] = parameter;
    if constexpr (Table::kOutputs == 2) out[1] = velocity;
  });
}

template <class Table>
__global__ void adam_kernel(Table table, Global<const scalar::Adam> rule) {
  const scalar::Adam adam = rule[0];
  table.for_each_element([&](const float* in, float* out) {
    float parameter = in[0], first = in[2], second = in[3];
    adam.update(parameter, in[1], first, second);
    out[0] = parameter;
    out[1] = first;
    out[2] = second;
  });
}

/// All parameters in one launch, or in as few as their table fits into.
template <class Rule>
class UpdateKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }
  std::size_t scratch_bytes() const override { return sizeof(Rule); }

 protected:
  UpdateKernel(const KernelQuery& query, int parameters, const Rule& rule) : rule_(rule) {
    for (int p = 0; p < parameters; ++p) {
      elements_.push_back(query.inputs[2 + static_cast<std::size_t>(p)].spec.shape.elements());
    }
  }

  /// True when this table is too small for all of them, so that a larger one saves launches.
  template <class Table>
  bool exceeds() const {
    return elements_.size() > Table::kMost;
  }

  template <class Table>
  void run_tables(const KernelArgs& args, const char* name,
                  void (*kernel)(Table, Global<const Rule>)) const {
    static_assert(sizeof(Table) + sizeof(Global<const Rule>) <= kMostBytes);
    auto* complete = reinterpret_cast<Rule*>(args.scratch);
    launch(args.stream, "begin_step", {{1}, {1}}, begin_step_kernel<Rule>, rule_,
           Global(args.in<float>(0), 1), Global(args.in<std::int64_t>(1), 1),
           Global(args.out<std::int64_t>(0), 1), Global(complete, 1));
    for (std::size_t first = 0; first < elements_.size(); first += Table::kMost) {
      const auto table = table_from<Table>(args, first);
      if (table.blocks() == 0) continue;
      launch(args.stream, name, {{static_cast<unsigned>(table.blocks())}, {kBlock}}, kernel, table,
             Global<const Rule>(complete, 1));
    }
  }

 private:
  /// The parameters from `first` on, as many as fit.
  template <class Table>
  Table table_from(const KernelArgs& args, std::size_t first) const {
    Table table;
    const auto all = elements_.size();
    for (auto p = first; p < all && table.count < Table::kMost; ++p) {
      auto& parameter = table.parameters[table.count];
      for (std::size_t k = 0; k < Table::kInputs; ++k) {
        parameter.in[k] = args.in<float>(2 + k * all + p);
      }
      for (std::size_t k = 0; k < Table::kOutputs; ++k) {
        parameter.out[k] = args.out<float>(1 + k * all + p);
      }
      parameter.elements = elements_[p];
      parameter.end = table.blocks() + (elements_[p] + kPiece - 1) / kPiece;
      ++table.count;
    }
    return table;
  }

  Rule rule_;
  std::vector<std::int64_t> elements_;
};

class SgdKernel : public UpdateKernel<scalar::Sgd> {
 public:
  SgdKernel(const KernelQuery& query, Device&) : SgdKernel(query, query.as<SgdUpdate>()) {}

  void run(const KernelArgs& args) override {
    has_velocity_ ? run_as<3, 2>(args) : run_as<2, 1>(args);
  }

 private:
  SgdKernel(const KernelQuery& query, const SgdUpdate& op)
      : UpdateKernel(
            query, op.parameter_count(static_cast<int>(query.inputs.size())),
            {.momentum = op.momentum, .weight_decay = op.weight_decay, .nesterov = op.nesterov}),
        has_velocity_(op.momentum != 0) {}

  template <int kIn, int kOut>
  void run_as(const KernelArgs& args) const {
    using Small = ParameterTable<kIn, kOut, kPlainBytes>;
    using Large = ParameterTable<kIn, kOut, kMostBytes>;
    if (exceeds<Small>()) {
      run_tables(args, "sgd_update", sgd_kernel<Large>);
    } else {
      run_tables(args, "sgd_update", sgd_kernel<Small>);
    }
  }

  bool has_velocity_;
};

class AdamKernel : public UpdateKernel<scalar::Adam> {
 public:
  AdamKernel(const KernelQuery& query, Device&) : AdamKernel(query, query.as<AdamUpdate>()) {}

  void run(const KernelArgs& args) override {
    using Small = ParameterTable<4, 3, kPlainBytes>;
    using Large = ParameterTable<4, 3, kMostBytes>;
    if (exceeds<Small>()) {
      run_tables(args, "adam_update", adam_kernel<Large>);
    } else {
      run_tables(args, "adam_update", adam_kernel<Small>);
    }
  }

 private:
  AdamKernel(const KernelQuery& query, const AdamUpdate& op)
      : UpdateKernel(query, op.parameter_count(static_cast<int>(query.inputs.size())),
                     {.beta1 = op.beta1,
                      .beta2 = op.beta2,
                      .epsilon = op.epsilon,
                      .weight_decay = op.weight_decay,
                      .decoupled = op.decoupled}) {}
};

}  // namespace

void add_optimizers_kernels(KernelList& list) {
  list.push_back(kernel_entry<SgdKernel>("SgdUpdate", "fused"));
  list.push_back(kernel_entry<AdamKernel>("AdamUpdate", "fused"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
