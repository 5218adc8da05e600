// Lab 3: a product that is larger than the array, as a program written by hand. The program runs on
// the twin. The values that come back are compared with chains of multiply-adds computed here.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/random.h"
#include "experiments/labs/all_labs.h"

namespace triptych::labs {
namespace {

constexpr int kRows = 16, kInner = 8, kColumns = 8;        // x is kRows x kInner
constexpr int kStraight = 171, kEarly = 162, kLean = 152;  // cycles
constexpr double kWeightBytes = 2 * kInner * kColumns;

struct Matrices {
  Tensor x, w, y;  ///< y: the expected result
  std::vector<float>
      rounding;  ///< the possible change due to another order of additions, for each element of y
};

Tensor matrix(int rows, int columns, const std::vector<float>& values) {
  return {Shape({rows, columns}), values};
}

/// ReLU of x w, each element one chain of multiply-adds in ascending k.
Tensor product(const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> y;
  for (std::size_t m = 0; m < kRows; ++m) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      float sum = 0;
      for (std::size_t k = 0; k < kInner; ++k)
        sum = std::fma(x[m * kInner + k], w[k * kColumns + c], sum);
      y.push_back(sum > 0 ? sum : 0.0F);
    }
  }
  return matrix(kRows, kColumns, y);
}

Matrices matrices(const std::vector<float>& x, const std::vector<float>& w) {
  Matrices all = {matrix(kRows, kInner, x), matrix(kInner, kColumns, w), product(x, w), {}};
  for (std::size_t i = 0; i < std::size_t{kRows} * kColumns; ++i) {
    float size = 0;
    for (std::size_t k = 0; k < kInner; ++k)
      size += std::abs(x[i / kColumns * kInner + k] * w[k * kColumns + i % kColumns]);
    all.rounding.push_back(size * kInner * 0x1p-23F);
  }
  return all;
}

/// The numbers that numbers.py of the handout writes.
Matrices known() {
  std::vector<float> x, w;
  for (int i = 0; i < kRows * kInner; ++i) x.push_back(static_cast<float>(i * 5 % 17 - 8));
  for (int i = 0; i < kInner * kColumns; ++i) w.push_back(static_cast<float>(i * 3 % 11 - 5));
  return matrices(x, w);
}

/// Numbers of 8 significant bits, as bf16 has them, of very unlike sizes: another order of
/// additions has other bits.
Matrices hidden(std::uint64_t seed) {
  RandomStream random(seed, 3);
  const auto number = [&] {
    const auto significand = static_cast<float>(random.below(511) - 255);
    return std::ldexp(significand, static_cast<int>(random.below(16)) - 12);
  };
  std::vector<float> x(std::size_t{kRows} * kInner), w(std::size_t{kInner} * kColumns);
  std::ranges::generate(x, number);
  std::ranges::generate(w, number);
  return matrices(x, w);
}

/// A run of the program.
struct Run {
  std::string problem;  ///< why there is no result. Empty: there is one
  std::map<std::string, double> counters;
  Tensor y;
};

Run run(const Submission& submission, Bench& bench, const Matrices& given) {
  bench.put("product.s", submission.text("product.s"));
  bench.put("x.npy", given.x);
  bench.put("w.npy", given.w);
  bench.remove("y.npy");
  const auto ending =
      bench.run({"triptych", "mmu", "run", "product.s", "--machine", "mmu4", "--dram", "x=x.npy",
                 "--dram", "w=w.npy", "--out", "y=y.npy", "--json"});
  Run run;
  if (!ending.good()) {
    run.problem = bench.why(ending);
    return run;
  }
  run.counters = Bench::result(ending).at("counters").get<std::map<std::string, double>>();
  run.y = bench.array("y.npy");
  return run;
}

/// Words about the first element that is wrong. For a y with fewer columns, too, so that half of
/// the program can be tried.
std::string wrong_bits(const Run& run, const Matrices& given, const char* which) {
  if (!run.problem.empty()) return run.problem;
  const auto& shape = run.y.shape();
  if (run.y.dtype() != DType::F32 || shape.rank() != 2 || shape[0] != kRows || shape[1] > kColumns)
    return fmt::format("y should be {}, and is {}", to_string(given.y.spec()),
                       to_string(run.y.spec()));
  const auto got = run.y.as<float>(), expected = given.y.as<float>();
  const auto columns = static_cast<std::size_t>(shape[1]);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto row = i / columns, column = i % columns, at = row * kColumns + column;
    const auto bits = std::bit_cast<std::uint32_t>(got[i]);
    const auto expected_bits = std::bit_cast<std::uint32_t>(expected[at]);
    if (bits == expected_bits) continue;
    const bool nearly = std::abs(got[i] - expected[at]) <= given.rounding[at];
    return fmt::format(
        "{}: y[{}][{}] should be {:g} (0x{:08x}), and is {:g} (0x{:08x}){}", which, row, column,
        expected[at], expected_bits, got[i], bits,
        nearly ? ", which is nearly right: are the additions in the order k = 0, 1, ..., 7?" : "");
  }
  if (columns == kColumns) return {};
  return fmt::format("{}: y has {} columns, which are right, and should have {}", which, columns,
                     kColumns);
}

/// Why the program does not write all of y. Empty: it does.
std::string incomplete(const Run& run, const Matrices& given) {
  if (!run.problem.empty() || run.y.spec() == given.y.spec()) return run.problem;
  return fmt::format("y should be {}, and is {}", to_string(given.y.spec()),
                     to_string(run.y.spec()));
}

double counter(const Run& run, const char* name) { return run.counters.at(name); }

void grade(const Submission& submission, Bench& bench, Report& report) {
  const auto first = known(), second = hidden(submission.seed());
  const auto run_known = run(submission, bench, first);
  const auto run_hidden = run(submission, bench, second);
  const auto& problem = run_known.problem;
  report.exact("runs", 10, incomplete(run_known, first));
  const auto later = [&](std::string said) {
    return problem.empty() ? said : std::string("it does not run: see above");
  };
  const auto bits = wrong_bits(run_known, first, "x and w of numbers.py");
  report.exact("bits", 15, later(bits));
  report.exact("bits_hidden", 15, later(wrong_bits(run_hidden, second, "other x and w")));
  const auto judge = [&](const char* id, double got, double allowed, const std::string& what) {
    const auto said =
        got <= allowed ? "" : fmt::format("{}: {:g}, {:g} are allowed", what, got, allowed);
    report.exact(id, 5, later(bits.empty() ? said : "counts when the bits are right"));
  };
  const bool ran = problem.empty();
  const double cycles = ran ? counter(run_known, "cycles") : 0;
  judge("weights_once", ran ? counter(run_known, "dram_weights_bytes") : 0, kWeightBytes,
        "bytes of weights that were read (dram_weights_bytes)");
  for (const int allowed : {kStraight, kEarly, kLean})
    judge(fmt::format("cycles_{}", allowed).c_str(), cycles, allowed, "cycles");
  if (ran && bits.empty()) report.standings.push_back({"cycles", cycles});
}

/// Counts of this product, and a matmul's time by the manual.
std::vector<Prediction> predictions(Bench& /*bench*/) {
  constexpr int side = 4, tiles = kInner / side * (kColumns / side);
  return {{"tiles", 5, tiles},
          {"macs", 5, kRows * kInner * kColumns},
          {"issue_cycles", 5, tiles * kRows},
          {"matmul_cycles", 5, kRows + side + side + 2}};
}

constexpr Explanation kQuestions[] = {
    {"why_token", 5, "45cc6ea3a025a3d0b1b2b37ac6268ffb46b91837f8675569c6d2c367960a4d02",
     "leave wait=load out and read what mmu run says"},
    {"why_accumulate", 5, "00d6bc3c118bdbd882d4b7c2cebbe5d95a104ccdaf44a128d991580289c976d1",
     "write down the sum for y[0][0], and which tile of w has which of its weights"},
    {"first_fifty", 5, "f6e9d7214176f42d31c424cdd1147ef54f25e629c3d4a12cd30bb97597bf31e9",
     "see when the first load and the first weight_load end"},
    {"what_keep", 5, "34343e5ecdd54fb2cf3c93c4142003ca8dbdf481ce496461cf498b49fee1b22a",
     "which tile does the second part stream through? Leave keep=1 out and read what mmu run "
     "says"}};

}  // namespace

Lab lab_3_compiler() {
  return {.number = 3,
          .slug = "compiler",
          .title = "Be the compiler",
          .question = "what does the machine really run?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kQuestions};
}

}  // namespace triptych::labs
