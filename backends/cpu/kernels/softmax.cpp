// SPDX-License-Identifier: Apache-2.0
#include "core/ops/softmax.h"

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/softmax_lines.h"

namespace triptych::cpu {
namespace {

struct Probability {
  [[gnu::always_inline]] float operator()(float x, float largest, float sum) const {
    return scalar::probability(x, largest, sum);
  }
  static float prepare(float sum) { return sum; }
};

struct LogProbability {
  [[gnu::always_inline]] float operator()(float x, float largest, float log_sum) const {
    return scalar::log_probability(x, largest, log_sum);
  }
  static float prepare(float sum) { return exact::log(sum); }
};

template <class OpType, class Formula>
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelQuery& query, Device&) {
    const auto& shape = query.inputs[0].spec.shape;
    lines_ = {AxisLines::along(shape, normalize_axis(query.as<OpType>().axis, shape.rank()))};
  }
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

  void run(const KernelArgs& args) override {
    const auto* x = args.in<float>(0);
    auto* y = args.out<float>(0);
    if (lines_.inner == 1 && are_short(lines_.outer, lines_.count)) return run_short(x, y);
    lines_.for_each_chunk([&](std::int64_t, std::int64_t start, std::int64_t width) {
      compute(lines_, x + start, y + start, width);
    });
  }

 private:
  void run_short(const float* x, float* y) const {
    const auto count = lines_.count, at_once = short_lines_at_once(count);
    parallel_for(lines_.outer, grain_of(kSlowOperation * count), [&](auto begin, auto end) {
      float columns[kShortBlock];
      for (auto line = begin; line < end; line += at_once) {
        const auto width = std::min(at_once, end - line);
        const Lines side_by_side{{1, count, width}};
        transpose_matrix({x + line * count, count, width, count}, columns, width, Rounding::None);
        compute(side_by_side, columns, columns, width);
        transpose_matrix({columns, width, count, width}, y + line * count, count, Rounding::None);
      }
    });
  }

  static void compute(const Lines& lines, const float* x, float* y, std::int64_t width) {
    LineStatistics statistics(lines, x, width);
    for (std::int64_t w = 0; w < width; ++w) {
      statistics.sum[w] = Formula::prepare(statistics.sum[w]);
    }
    write(lines, x, y, width, statistics);
  }

  static void write(const Lines& lines, const float* x, float* y, std::int64_t width,
                    const LineStatistics& statistics) {
    const auto *largest = statistics.largest, *sum = statistics.sum;
    const auto count = lines.count, inner = lines.inner;
    if (inner == 1) {
      simd([x, y, count, first = *largest, total = *sum] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) y[i] = Formula()(x[i], first, total);
      });
      return;
    }
    simd([=] {
      for (std::int64_t i = 0; i < count; ++i) {
#pragma GCC ivdep
        for (std::int64_t w = 0; w < width; ++w) {
          y[i * inner + w] = Formula()(x[i * inner + w], largest[w], sum[w]);
        }
      }
    });
  }

  Lines lines_;
};

}  // namespace

void add_softmax_kernels(KernelList& list) {
  list.push_back(kernel_entry<SoftmaxKernel<Softmax, Probability>>("Softmax", "lines"));
  list.push_back(kernel_entry<SoftmaxKernel<LogSoftmax, LogProbability>>("LogSoftmax", "lines"));
}

}  // namespace triptych::cpu
