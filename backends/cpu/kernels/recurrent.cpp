// The steps of a recurrent layer in one loop: a product of the state with packed weights, then the
// gates, row by row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/recurrent.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

/// Multiply-adds that are worth a task of their own.
constexpr std::int64_t kProductGrain = 1 << 17;

/// y[i] = x[i] + (sum[i] + bias[i]). y may be `sum`.
void add_three(const float* x, const float* sum, const float* bias, float* y, std::int64_t count) {
  simd([=] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] + (sum[i] + bias[i]);
  });
}

/// y[i] += a[i] b[i].
void add_product(const float* a, const float* b, float* y, std::int64_t count) {
  simd([=] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] += a[i] * b[i];
  });
}

class RecurrentKernel : public Kernel {
 public:
  RecurrentKernel(const KernelQuery& query, Device& device)
      : op_(query.as<Recurrent>()),
        g_(RecurrentGeometry::of(op_, specs_of(query))),
        resets_(g_.cell == RecurrentCell::Gru && !op_.linear_before_reset),
        rows_((resets_ ? 2 : g_.gates) * g_.hidden),
        pitch_(resets_ ? rows_ + round_up(g_.hidden, microkernels().columns)
                       : round_up(rows_, microkernels().columns)),
        weights_(
            packed_columns(rows_, g_.hidden) + (resets_ ? packed_columns(g_.hidden, g_.hidden) : 0),
            [this](const float* from, float* to) { pack(from, to); }, constant_input(query, 1),
            device) {
    for (const auto kind : g_.activations) activations_.push_back(row_of(Unary(kind), DType::F32));
  }

  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    if (query.contract != Contract::F32)
      return Verdict::no("computes in float32 and rounds no state between the steps");
    return Verdict::yes();
  }

  std::size_t scratch_bytes() const override {
    return weights_.scratch_bytes() +
           kFloatBytes * static_cast<std::size_t>(checked_mul(g_.batch, pitch_ + 2 * g_.hidden));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const Run run(*this, args);
    const auto state = g_.batch * g_.hidden;
    const bool has_cell = g_.cell == RecurrentCell::Lstm;
    if (has_cell) std::copy_n(args.in<float>(4), state, args.out<float>(2));
    const auto* h = args.in<float>(3);
    for (std::int64_t i = 0; i < g_.steps; ++i) {
      const auto t = op_.reverse ? g_.steps - 1 - i : i;
      auto* y = args.out<float>(0) + t * state;
      run.step(args.in<float>(0) + t * g_.batch * g_.gates * g_.hidden, h, y);
      h = y;
    }
    std::copy_n(h, state, args.out<float>(1));
  }

 private:
  static constexpr std::size_t kFloatBytes = sizeof(float);

  static std::vector<TensorSpec> specs_of(const KernelQuery& query) {
    std::vector<TensorSpec> specs;
    for (const auto& input : query.inputs) specs.push_back(input.spec);
    return specs;
  }

  /// The gates of the product with h, then the candidate's where it is one of its own.
  void pack(const float* from, float* to) const {
    const Range k = {0, g_.hidden};
    pack_columns(from, g_.hidden, true, k, {0, rows_}, to, Rounding::None);
    if (!resets_) return;
    pack_columns(from + rows_ * g_.hidden, g_.hidden, true, k, k, to + reset_panels(),
                 Rounding::None);
  }
  std::int64_t reset_panels() const { return packed_columns(rows_, g_.hidden); }

  void activate(std::size_t number, const float* x, float* y, std::int64_t count) const {
    activations_[number](reinterpret_cast<const std::byte*>(x), reinterpret_cast<std::byte*>(y),
                         count, {});
  }

  /// The operands of one run.
  class Run {
   public:
    Run(const RecurrentKernel& kernel, const KernelArgs& args)
        : kernel_(kernel),
          g_(kernel.g_),
          panels_(kernel.weights_.ready(args.in<float>(1), args.scratch)),
          bias_(args.in<float>(2)),
          peepholes_(g_.has_peepholes ? args.in<float>(5) : nullptr),
          c_(g_.cell == RecurrentCell::Lstm ? args.out<float>(2) : nullptr),
          sums_(reinterpret_cast<float*>(args.scratch + kernel.weights_.scratch_bytes())),
          transposed_(sums_ + g_.batch * kernel.pitch_),
          reset_(transposed_ + g_.batch * g_.hidden) {}

    /// `h`: the state before, `y`: after.
    void step(const float* x, const float* h, float* y) const {
      multiply(h, panels_, kernel_.rows_, 0);
      each_row([&](std::int64_t b) { first_part(b, x, h, y); });
      if (!kernel_.resets_) return;
      multiply(reset_, panels_ + kernel_.reset_panels(), g_.hidden, kernel_.rows_);
      each_row([&](std::int64_t b) { candidate(b, x, h, y); });
    }

   private:
    template <class Body>
    void each_row(const Body& body) const {
      const auto grain = grain_of(kSlowOperation * g_.gates * g_.hidden);
      parallel_for(g_.batch, grain, [&](std::int64_t begin, std::int64_t end) {
        for (auto b = begin; b < end; ++b) body(b);
      });
    }

    /// Sums of row b, from column `first`: state[b] times the columns of the panels.
    void multiply(const float* state, const float* panels, std::int64_t columns,
                  std::int64_t first) const {
      const auto& kernels = microkernels();
      const auto panel = g_.hidden * kernels.columns;
      const auto tile_at = [&, a = transposed(state)](std::int64_t b, std::int64_t p) {
        return MicroTile{.a = a + b,
                         .b = panels + p * panel,
                         .c = sums_ + b * kernel_.pitch_ + first + p * kernels.columns,
                         .c_stride = kernel_.pitch_,
                         .k_inner = g_.hidden,
                         .a_step = g_.batch,
                         .b_inner = kernels.columns};
      };
      const auto run = [&](std::int64_t p, std::int64_t end) {
        if (g_.batch <= kMostFewRows) {
          for (; p + kernels.few_panels <= end; p += kernels.few_panels)
            kernels.run_few[static_cast<std::size_t>(g_.batch)](tile_at(0, p), panel);
        }
        for (; p < end; ++p) {
          for (std::int64_t b = 0; b < g_.batch; b += kernels.max_rows)
            kernels.run_tile(std::min<std::int64_t>(kernels.max_rows, g_.batch - b), tile_at(b, p));
        }
      };
      parallel_for(ceil_div(columns, std::int64_t{kernels.columns}),
                   kProductGrain / (panel * g_.batch) + 1, run);
    }

    /// state[b][k] as [k][b].
    const float* transposed(const float* state) const {
      if (g_.batch == 1) return state;
      transpose_matrix({state, g_.hidden, g_.batch, g_.hidden}, transposed_, g_.batch,
                       Rounding::None);
      return transposed_;
    }

    void first_part(std::int64_t b, const float* x, const float* h, float* y) const {
      x += b * g_.gates * g_.hidden;
      h += b * g_.hidden;
      y += b * g_.hidden;
      auto* v = sums_ + b * kernel_.pitch_;
      if (g_.cell == RecurrentCell::Lstm) return lstm(x, v, c_ + b * g_.hidden, y);
      if (g_.cell == RecurrentCell::Gru) return gru(b, x, v, h, y);
      add_three(x, v, bias_, v, g_.hidden);
      kernel_.activate(0, v, y, g_.hidden);
    }

    void lstm(const float* x, float* v, float* c, float* y) const {
      const auto n = g_.hidden;
      auto *in = v, *out = v + n, *forget = v + 2 * n, *fresh = v + 3 * n;
      add_three(x, v, bias_, v, 4 * n);
      if (peepholes_ != nullptr) {
        add_product(peepholes_, c, in, n);
        add_product(peepholes_ + 2 * n, c, forget, n);
      }
      // The output gate with the others, unless it waits for the new cell.
      kernel_.activate(0, in, in, peepholes_ == nullptr ? 3 * n : n);
      if (peepholes_ != nullptr) kernel_.activate(0, forget, forget, n);
      kernel_.activate(1, fresh, fresh, n);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t j = 0; j < n; ++j) c[j] = forget[j] * c[j] + in[j] * fresh[j];
      });
      if (peepholes_ != nullptr) {
        add_product(peepholes_ + n, c, out, n);
        kernel_.activate(0, out, out, n);
      }
      kernel_.activate(2, c, fresh, n);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t j = 0; j < n; ++j) y[j] = out[j] * fresh[j];
      });
    }

    void gru(std::int64_t b, const float* x, float* v, const float* h, float* y) const {
      const auto n = g_.hidden;
      add_three(x, v, bias_, v, 2 * n);
      kernel_.activate(0, v, v, 2 * n);
      const float *r = v + n, *bias = bias_ + 2 * n;
      if (kernel_.resets_) {
        auto* reset = reset_ + b * n;
        simd([=] {
#pragma GCC ivdep
          for (std::int64_t j = 0; j < n; ++j) reset[j] = r[j] * h[j];
        });
        return;
      }
      auto* own = v + 2 * n;
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t j = 0; j < n; ++j) own[j] = x[2 * n + j] + r[j] * (own[j] + bias[j]);
      });
      mix(v, h, y);
    }

    void candidate(std::int64_t b, const float* x, const float* h, float* y) const {
      const auto n = g_.hidden;
      auto* v = sums_ + b * kernel_.pitch_;
      add_three(x + (3 * b + 2) * n, v + 2 * n, bias_ + 2 * n, v + 2 * n, n);
      mix(v, h + b * n, y + b * n);
    }

    /// y = (1 - z) activation(candidate) + z h.
    void mix(float* v, const float* h, float* y) const {
      const auto n = g_.hidden;
      const float* z = v;
      auto* fresh = v + 2 * n;
      kernel_.activate(1, fresh, fresh, n);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t j = 0; j < n; ++j) y[j] = (1 - z[j]) * fresh[j] + z[j] * h[j];
      });
    }

    const RecurrentKernel& kernel_;
    const RecurrentGeometry& g_;
    const float* panels_;
    const float *bias_, *peepholes_;
    float* c_;
    float *sums_, *transposed_, *reset_;  ///< [batch][pitch], [hidden][batch], [batch][hidden]
  };

  Recurrent op_;
  RecurrentGeometry g_;
  bool resets_;         ///< the candidate has a product of its own
  std::int64_t rows_;   ///< of the weights that multiply h
  std::int64_t pitch_;  ///< of the sums
  PackedOperand weights_;
  std::vector<UnaryRow> activations_;
};

}  // namespace

void add_recurrent_kernels(KernelList& list) {
  list.push_back(kernel_entry<RecurrentKernel>(Recurrent::kName, "loop"));
}

}  // namespace triptych::cpu
