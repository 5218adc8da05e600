// Lab 6, "CUDA without a GPU": compiles a student's kernels for convolution and attention and runs
// them on the emulator. It checks values, faults and memory counters.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/random.h"
#include "experiments/labs/all_labs.h"

namespace triptych::labs {
namespace {

std::int64_t parts(std::int64_t all, std::int64_t each) { return (all + each - 1) / each; }

std::vector<float> random_numbers(std::int64_t count, float largest, RandomStream& random) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::ranges::generate(numbers, [&] { return random.uniform(-largest, largest); });
  return numbers;
}

/// Arguments of a kernel, and values that it should write.
struct Launch {
  std::string kernel, said;
  std::vector<std::string> arguments, grid_and_block;
  int output = 0;  ///< number of the argument, from 1
  std::vector<float> expected;
  double tolerance = 1e-4;
};

/// Text about the first element outside the tolerance. Empty: none.
std::string first_difference(const Tensor& got, const Launch& launch) {
  const auto values = to_doubles(got);
  if (values.size() != launch.expected.size())
    return fmt::format("{} elements, and not {}", values.size(), launch.expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = launch.expected[i];
    if (std::abs(values[i] - expected) <= launch.tolerance * std::max(1.0, std::abs(expected)))
      continue;
    std::string index;
    auto rest = static_cast<std::int64_t>(i);
    for (auto axis = got.shape().rank(); axis-- > 0; rest /= got.shape()[axis])
      index.insert(0, fmt::format("[{}]", rest % got.shape()[axis]));
    return fmt::format("element {} should be {:.6g}, and is {:.6g}", index, expected, values[i]);
  }
  return {};
}

/// Counts of the emulator. A problem ends all counting.
struct Counted {
  std::string problem;
  double blocks = 0, load_requests = 0, load_sectors = 0, store_requests = 0, store_sectors = 0,
         shared_requests = 0, wavefronts = 0;
};

constexpr int kMissing = 3;  // exit code of this program: the machine lacks something

/// A file of kernels, compiled once.
class Kernels {
 public:
  Kernels(const Submission& submission, Bench& bench, std::string name)
      : bench_(bench), name_(std::move(name)) {
    try {
      bench_.put(name_ + ".cu", submission.text(name_ + ".cu"));
      const auto ending = bench_.run(
          {"triptych", "kernel", "build", name_ + ".cu", "--out", name_ + ".so", "--overwrite"});
      if (ending.cause == Cause::Exited && ending.status == kMissing)
        throw DeviceError(wrong_end(ending));
      if (!ending.good()) problem_ = wrong_end(ending);
    } catch (const DeviceError&) {
      throw;
    } catch (const Error& error) {
      problem_ = error.what();
    }
  }

  Counted run(const Launch& launch) const {
    Counted counted;
    counted.problem = problem_;
    if (!problem_.empty()) return counted;
    std::vector<std::string> command = {"triptych", "kernel", "run", name_ + ".so"};
    command.insert(command.end(), launch.arguments.begin(), launch.arguments.end());
    command.insert(command.end(), launch.grid_and_block.begin(), launch.grid_and_block.end());
    command.insert(command.end(),
                   {"--kernel", launch.kernel, "--out",
                    fmt::format("{}=written.npy", launch.output), "--overwrite", "--json"});
    const auto ending = bench_.run(command);
    try {
      read(Bench::result(ending), counted);
      if (counted.problem.empty())
        counted.problem = first_difference(bench_.array("written.npy"), launch);
    } catch (const std::exception&) {  // no document, or none of its form
      counted.problem = wrong_end(ending);
    }
    if (!counted.problem.empty())
      counted.problem = fmt::format("{} with {}: {}", launch.kernel, launch.said, counted.problem);
    return counted;
  }

 private:
  std::string wrong_end(const Ending& ending) const {
    const auto words = first_lines(ending.error, 4, bench_.folder().string());
    return words.empty() ? ending.said(kCheckLimits) : words;
  }

  static void read(const page::Json& result, Counted& counted) {
    if (!result.at("findings").empty()) {
      const auto& finding = result.at("findings").front();
      counted.problem = fmt::format(
          "{} at line {}, block {}, thread {}: {}", finding.at("kind").get<std::string>(),
          finding.at("line").dump(), finding.at("block").dump(), finding.at("thread").dump(),
          finding.at("message").get<std::string>());
      return;
    }
    const auto& counters = result.at("counters");
    const auto& global = counters.at("global");
    const auto& shared = counters.at("shared");
    counted.blocks = counters.at("blocks");
    counted.load_requests = global.at("load").at("requests");
    counted.load_sectors = global.at("load").at("sectors");
    counted.store_requests = global.at("store").at("requests");
    counted.store_sectors = global.at("store").at("sectors");
    for (const char* access : {"load", "store", "atomic"}) {
      counted.shared_requests += shared.at(access).at("requests").get<double>();
      counted.wavefronts += shared.at(access).at("wavefronts").get<double>();
    }
  }

  Bench& bench_;
  std::string name_, problem_;
};

struct ConvShape {
  std::int64_t channels_in = 1, channels_out = 1, height = 1, width = 1;

  std::int64_t depth() const { return 9 * channels_in; }
  std::string said() const {
    return fmt::format("C = {}, K = {}, H = {}, W = {}", channels_in, channels_out, height, width);
  }
};

/// y of the handout's formula, summed in double precision.
std::vector<float> convolve(const ConvShape& shape, const std::vector<float>& x,
                            const std::vector<float>& weights) {
  const auto [channels_in, channels_out, height, width] = shape;
  std::vector<float> y;
  for (std::int64_t k = 0; k < channels_out; ++k) {
    for (std::int64_t at = 0; at < height * width; ++at) {
      double sum = 0;
      for (std::int64_t d = 0; d < shape.depth(); ++d) {
        const auto row = at / width + d % 9 / 3 - 1, column = at % width + d % 3 - 1;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        sum += double{weights[static_cast<std::size_t>(k * shape.depth() + d)]} *
               x[static_cast<std::size_t>((d / 9 * height + row) * width + column)];
      }
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

/// Writes the arrays of a convolution to the bench. Returns the launch of `kernel`.
Launch conv_launch(const ConvShape& shape, const std::string& name, Bench& bench,
                   RandomStream& random) {
  const auto [c, k, h, w] = shape;
  const auto x = random_numbers(c * h * w, 1, random);
  const auto weights = random_numbers(k * shape.depth(), 1, random);
  bench.put(name + "_x.npy", Tensor(Shape{c, h, w}, x));
  bench.put(name + "_weights.npy", Tensor(Shape{k, c, 3, 3}, weights));
  Launch launch;
  launch.said = shape.said();
  launch.output = 3;
  launch.expected = convolve(shape, x, weights);
  launch.arguments = {
      name + "_x.npy",   name + "_weights.npy", fmt::format("f32:{}x{}x{}", k, h, w),
      std::to_string(c), std::to_string(k),     std::to_string(h),
      std::to_string(w)};
  return launch;
}

Launch of_kernel(Launch launch, const std::string& kernel, const ConvShape& shape) {
  const auto [c, k, h, w] = shape;
  launch.kernel = kernel;
  launch.grid_and_block = {"--grid",
                           kernel == "gemm" ? fmt::format("{},{}", parts(h * w, 32), parts(k, 32))
                                            : fmt::format("{},{},{}", parts(w, 32), parts(h, 8), k),
                           "--block", "32,8"};
  return launch;
}

/// Empty when a is at most b. Otherwise the counters as text.
std::string too_many(double a, double b, const std::string& what) {
  return a <= b ? std::string()
                : fmt::format("{:.0f} {}, and at most {:.0f} are asked for", a, what, b);
}

constexpr const char* kOnlyIfRight = "counts when the kernel is right";

void add_counted(Report& report, const Counted& counted, const std::string& id, int points,
                 const std::string& problem) {
  report.exact(id, points, counted.problem.empty() ? problem : kOnlyIfRight);
}

/// Bank conflicts may cost a twentieth.
std::string bank_problem(const Counted& counted) {
  return too_many(counted.wavefronts, 1.05 * counted.shared_requests,
                  fmt::format("passes through the banks for {:.0f} requests of shared memory",
                              counted.shared_requests));
}

std::string naive_problem(const Counted& counted) {
  auto problem =
      too_many(counted.load_sectors, 4 * counted.load_requests,
               fmt::format("sectors of 32 bytes loaded by {:.0f} requests", counted.load_requests));
  if (problem.empty())
    problem = too_many(counted.store_sectors, 5 * counted.store_requests,
                       fmt::format("sectors stored by {:.0f} requests", counted.store_requests));
  return problem.empty() ? problem : problem + "; which element has the lane next to this one?";
}

void grade_convolutions(const Kernels& kernels, Bench& bench, RandomStream& hidden,
                        Report& report) {
  const ConvShape shown = {2, 3, 13, 37};
  const ConvShape drawn = {3 + hidden.below(4), 33 + hidden.below(8), 9 + hidden.below(12),
                           33 + hidden.below(18)};
  const auto first = conv_launch(shown, "shown", bench, hidden);
  const auto second = conv_launch(drawn, "drawn", bench, hidden);
  const auto run = [&](const char* kernel) {
    auto counted = kernels.run(of_kernel(first, kernel, shown));
    return counted.problem.empty() ? kernels.run(of_kernel(second, kernel, drawn)) : counted;
  };
  const auto add_values = [&](const char* kernel, const Counted& counted) {
    report.exact(fmt::format("{}: values", kernel), 5, counted.problem);
  };
  const auto channels = static_cast<double>(drawn.channels_in);
  const auto naive = run("naive");
  // One item: it is handed out with the right values.
  report.exact("naive", 12, naive.problem.empty() ? naive_problem(naive) : naive.problem);
  const auto tiled = run("tiled");
  add_values("tiled", tiled);
  add_counted(report, tiled, "tiled: sectors", 6,
              too_many(tiled.load_sectors, 80 * tiled.blocks * channels,
                       fmt::format("sectors loaded by {:.0f} blocks of {} channels", tiled.blocks,
                                   drawn.channels_in)));
  add_counted(report, tiled, "tiled: banks", 4, bank_problem(tiled));
  const auto gemm = run("gemm");
  add_values("gemm", gemm);
  const auto depths = static_cast<double>(parts(drawn.depth(), 32));
  add_counted(report, gemm, "gemm: sectors", 6,
              too_many(gemm.load_sectors, 320 * gemm.blocks * depths,
                       fmt::format("sectors loaded by {:.0f} blocks of {:.0f} tiles in depth",
                                   gemm.blocks, depths)));
  add_counted(report, gemm, "gemm: banks", 4, bank_problem(gemm));
}

constexpr std::int64_t kColumns = 32, kQueries = 64;

/// softmax(scale q k^T) v, row by row, in double precision.
std::vector<float> attend(std::int64_t n, const std::vector<float>& q, const std::vector<float>& k,
                          const std::vector<float>& v, float scale) {
  const auto at = [](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(row * kColumns + column);
  };
  std::vector<float> out(q.size());
  std::vector<double> scores(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    double largest = -std::numeric_limits<double>::infinity(), all = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < kColumns; ++d) score += double{q[at(i, d)]} * k[at(j, d)];
      largest = std::max(largest, scores[static_cast<std::size_t>(j)] = score * scale);
    }
    for (auto& score : scores) all += score = std::exp(score - largest);
    for (std::int64_t d = 0; d < kColumns; ++d) {
      double sum = 0;
      for (std::int64_t j = 0; j < n; ++j) sum += scores[static_cast<std::size_t>(j)] * v[at(j, d)];
      out[at(i, d)] = static_cast<float>(sum / all);
    }
  }
  return out;
}

Launch flash_launch(std::int64_t n, float largest, Bench& bench, RandomStream& random) {
  constexpr float kScale = 0.176776695F;  // 1 / sqrt(32)
  const auto q = random_numbers(n * kColumns, largest, random);
  const auto k = random_numbers(n * kColumns, largest, random);
  const auto v = random_numbers(n * kColumns, 1, random);
  const Shape shape{n, kColumns};
  bench.put("q.npy", Tensor(shape, q));
  bench.put("k.npy", Tensor(shape, k));
  bench.put("v.npy", Tensor(shape, v));
  return {.kernel = "flash",
          .said = fmt::format("n = {}, q and k up to {}", n, largest),
          .arguments = {"q.npy", "k.npy", "v.npy", fmt::format("f32:{}x{}", n, kColumns),
                        std::to_string(n), "0.176776695"},
          .grid_and_block = {"--grid", std::to_string(parts(n, kQueries)), "--block", "64"},
          .output = 4,
          .expected = attend(n, q, k, v, kScale),
          .tolerance = largest > 1 ? 1e-3 : 1e-4};
}

void grade_flash(const Kernels& kernels, Bench& bench, RandomStream& hidden, Report& report) {
  auto counted = kernels.run(flash_launch(70, 1, bench, hidden));
  const auto n = 130 + hidden.below(70);
  // Scores above 88, without a finite exponential.
  if (counted.problem.empty()) counted = kernels.run(flash_launch(n, 12, bench, hidden));
  report.exact("flash: values", 8, counted.problem);
  const auto bytes = static_cast<double>(kColumns * 4 * (2 * n + 2 * n * parts(n, kQueries)));
  add_counted(report, counted, "flash: bytes", 6,
              too_many(32 * (counted.load_sectors + counted.store_sectors), 1.05 * bytes,
                       fmt::format("bytes of global memory, in whole sectors, with n = {}", n)));
  add_counted(report, counted, "flash: banks", 4, bank_problem(counted));
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  RandomStream hidden(submission.seed(), 6);
  grade_convolutions(Kernels(submission, bench, "conv"), bench, hidden, report);
  grade_flash(Kernels(submission, bench, "flash"), bench, hidden, report);
}

std::vector<Prediction> predictions(Bench&) {
  return {{"sectors_of_a_row", 4, 32 * 4 / 32, 0},
          {"sectors_of_a_column", 4, 32, 0},
          {"passes_of_a_column_32", 4, 32, 0},
          {"passes_of_a_column_33", 4, 1, 0},
          // A block's 256 outputs load 9 inputs each, or the block loads 34 x 10.
          {"tile_saves", 4, 9.0 * 256 / (34 * 10), 0.1}};
}

constexpr Explanation kExplanations[] = {
    {"q1", 4, "d114ed941c255851a9ac724965fcfbf13fc65575e94fab6b8509b859b813685e",
     "count the sectors of 32 bytes that the 32 lanes of one load touch"},
    {"q2", 4, "f49f4a97160533028abdf46bd73dd4bcd24dc6bcc33522c745b433344c6a4ca7",
     "who reads the tile after the barrier, and who may already write the next one?"},
    {"q3", 4, "e45051e92a00f24056cea8b878ac560de56f277af7fdd3a2d03daf3b67cf450d",
     "element (row, column) lies in bank (row * width + column) % 32"},
    {"q4", 4, "18448b2b0cec646e4dc1af7c24b114257de842984a9c21ede71393696453df73",
     "how many blocks of output channels read the same input, and how large is a block?"},
    {"q5", 4, "ade12da8fa86c400e905e1e55230dd48ee8c01a36a936d10b46a63cd4802cf20",
     "what must be true of numbers that were added under an older largest score?"},
};

}  // namespace

Lab lab_6_cuda() {
  return {.number = 6,
          .slug = "cuda",
          .title = "CUDA without a GPU",
          .question = "coalescing, banks, divergence, races; what does SRAM buy?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kExplanations};
}

}  // namespace triptych::labs
