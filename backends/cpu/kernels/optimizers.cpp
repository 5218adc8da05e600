// SPDX-License-Identifier: Apache-2.0
#include "core/ops/optimizers.h"

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/ops/scalar_math.h"

namespace triptych::cpu {
namespace {

/// All parameters as one list of pieces, so that many small ones share one parallel loop.
class UpdateKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

 protected:
  struct Piece {
    std::size_t parameter;
    std::int64_t begin, end;
  };

  UpdateKernel(const KernelQuery& query, int parameters)
      : parameters_(static_cast<std::size_t>(parameters)) {
    for (std::size_t p = 0; p < parameters_; ++p) {
      const auto elements = query.inputs[2 + p].spec.shape.elements();
      for (std::int64_t begin = 0; begin < elements; begin += kGrainElements) {
        pieces_.push_back({p, begin, std::min(begin + kGrainElements, elements)});
      }
    }
  }

  /// Calls update(piece) for every piece in parallel, then counts the step.
  template <class Update>
  void run_pieces(const KernelArgs& args, const Update& update) const {
    parallel_for(static_cast<std::int64_t>(pieces_.size()), 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto i = begin; i < end; ++i) update(pieces_[static_cast<std::size_t>(i)]);
                 });
    *args.out<std::int64_t>(0) = *args.in<std::int64_t>(1) + 1;
  }

  /// The operand of `piece` in a group of n inputs or outputs: parameters, gradients, moments.
  const float* input(const KernelArgs& args, std::size_t group, const Piece& piece) const {
    return args.in<float>(2 + group * parameters_ + piece.parameter) + piece.begin;
  }
  float* output(const KernelArgs& args, std::size_t group, const Piece& piece) const {
    return args.out<float>(1 + group * parameters_ + piece.parameter) + piece.begin;
  }

 private:
  std::size_t parameters_;
  std::vector<Piece> pieces_;
};

class SgdKernel : public UpdateKernel {
 public:
  SgdKernel(const KernelQuery& query, Device&)
      : UpdateKernel(query,
                     query.as<SgdUpdate>().parameter_count(static_cast<int>(query.inputs.size()))),
        op_(query.as<SgdUpdate>()) {}

  void run(const KernelArgs& args) override {
    scalar::Sgd sgd = {
        .momentum = op_.momentum, .weight_decay = op_.weight_decay, .nesterov = op_.nesterov};
    sgd.begin_step(*args.in<float>(0), *args.in<std::int64_t>(1));
    run_pieces(args, [&](const Piece& piece) {
      const auto *p = input(args, 0, piece), *g = input(args, 1, piece);
      auto* p_new = output(args, 0, piece);
      const auto count = piece.end - piece.begin;
      if (op_.momentum == 0) {
        simd([=] {
#pragma GCC ivdep
          for (std::int64_t i = 0; i < count; ++i) {
            float parameter = p[i], velocity = 0;
            sgd.update(parameter, g[i], velocity);
            p_new[i] = parameter;
          }
        });
        return;
      }
      const auto* v = input(args, 2, piece);
      auto* v_new = output(args, 1, piece);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) {
          float parameter = p[i], velocity = v[i];
          sgd.update(parameter, g[i], velocity);
          p_new[i] = parameter;
          v_new[i] = velocity;
        }
      });
    });
  }

 private:
  SgdUpdate op_;
};

class AdamKernel : public UpdateKernel {
 public:
  AdamKernel(const KernelQuery& query, Device&)
      : UpdateKernel(query,
                     query.as<AdamUpdate>().parameter_count(static_cast<int>(query.inputs.size()))),
        op_(query.as<AdamUpdate>()) {}

  void run(const KernelArgs& args) override {
    scalar::Adam adam = {.beta1 = op_.beta1,
                         .beta2 = op_.beta2,
                         .epsilon = op_.epsilon,
                         .weight_decay = op_.weight_decay,
                         .decoupled = op_.decoupled};
    adam.begin_step(*args.in<float>(0), *args.in<std::int64_t>(1));
    run_pieces(args, [&](const Piece& piece) {
      const auto *p = input(args, 0, piece), *g = input(args, 1, piece);
      const auto *m = input(args, 2, piece), *v = input(args, 3, piece);
      auto *p_new = output(args, 0, piece), *m_new = output(args, 1, piece);
      auto* v_new = output(args, 2, piece);
      const auto count = piece.end - piece.begin;
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) {
          float parameter = p[i], first = m[i], second = v[i];
          adam.update(parameter, g[i], first, second);
          p_new[i] = parameter;
          m_new[i] = first;
          v_new[i] = second;
        }
      });
    });
  }

 private:
  AdamUpdate op_;
};

}  // namespace

void add_optimizers_kernels(KernelList& list) {
  list.push_back(kernel_entry<SgdKernel>("SgdUpdate", "fused"));
  list.push_back(kernel_entry<AdamKernel>("AdamUpdate", "fused"));
}

}  // namespace triptych::cpu
