// Lab 0: who holds what, and when, in a product on a 4 x 4 array. The student's laws are held to
// every multiply-add that the twin makes of hidden products.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/strict_json.h"
#include "experiments/labs/all_labs.h"

namespace triptych::labs {
namespace {

/// A product, and what each cell did for it.
struct Product {
  int rows = 4, inner = 4, columns = 4;  ///< M, K, N
  std::vector<float> x, w;

  static std::size_t at(int row, int width, int column) {
    return static_cast<std::size_t>(std::int64_t{row} * width + column);
  }
  float x_at(int m, int k) const { return x[at(m, inner, k)]; }
  float w_at(int k, int n) const { return w[at(k, columns, n)]; }
  std::string said() const {
    return fmt::format("x {} x {}, w {} x {}", rows, inner, inner, columns);
  }
};

/// A multiply-add of one cell. `cycle` counts from the first of all.
struct Step {
  int cycle = 0, row = 0, column = 0, m = 0;
  double activation = 0, weight = 0, sum = 0;
};

Product known() {
  Product product;
  for (int i = 1; i <= 16; ++i) product.x.push_back(static_cast<float>(i));
  product.w = {1, 2, 0, 1, 0, 1, 3, 1, 2, 0, 1, 1, 1, 1, 0, 2};
  return product;
}

/// Numbers that are all different in x and in w, so that each tells its place, and positive, so
/// that a sum tells its terms.
Product hidden(RandomStream& random, int inner, int columns) {
  Product product = {1 + static_cast<int>(random.below(9)), inner, columns, {}, {}};
  const auto fill = [&](std::vector<float>& numbers, int count) {
    for (int i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i + 1));
    for (auto i = numbers.size(); i-- > 1;)
      std::swap(numbers[i],
                numbers[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i) + 1))]);
  };
  fill(product.x, product.rows * inner);
  fill(product.w, inner * columns);
  return product;
}

std::string program(const Product& product) {
  const int x_end = product.rows * product.inner * 2;
  const int w_at = (x_end + 63) / 64 * 64, y_at = w_at + 64;
  return fmt::format(
      ".input  x address=0  type=bf16 shape={0}x{1}\n"
      ".input  w address={3} type=bf16 shape={1}x{2}\n"
      ".output y address={4} type=f32  shape={0}x{2}\n"
      "load signal=compute address=x pitch={5} buffer_pitch={6} units={6} lines={0} log2_group=0\n"
      "set_stream in_height=1 in_width={0} out_height=1 out_width={0} stride_x=1 step_x={6}\n"
      "set_taps channels={1} kernel_width=1 log2_group=0\n"
      "weight_load address=w pitch={7} rows={1} columns={2}\n"
      "matmul wait=load signal=store count={0} rows_left=1 columns_left={0}\n"
      "set_output out_height=1 out_width={0} step_x={8}\n"
      "store wait=compute address=y count={0} columns={2} rows_left=1 columns_left={0}\n"
      "halt\n",
      product.rows, product.inner, product.columns, w_at, y_at, 2 * product.inner, product.inner,
      2 * product.columns, 4 * product.columns);
}

/// Every multiply-add of the product on mmu4.
std::vector<Step> watch(Bench& bench, const Product& product) {
  bench.put("product.s", program(product));
  bench.put("x.npy", Tensor(Shape({product.rows, product.inner}), product.x));
  bench.put("w.npy", Tensor(Shape({product.inner, product.columns}), product.w));
  bench.remove("cells.json");
  const auto ending =
      bench.run({"triptych", "mmu", "run", "product.s", "--machine", "mmu4", "--dram", "x=x.npy",
                 "--dram", "w=w.npy", "--per-pe", "cells.json", "--json"});
  if (!ending.good())
    throw DeviceError(fmt::format("the array does not run: {}", bench.why(ending)));
  const auto cells = parse_strict<Json>(bench.text("cells.json"));
  std::vector<Step> steps;
  const int first = cells.at("steps").at(0).at("cycle").get<int>();
  for (const auto& each : cells.at("steps"))
    steps.push_back({each.at("cycle").get<int>() - first, each.at("row").get<int>(),
                     each.at("column").get<int>(), each.at("slot").get<int>(),
                     each.at("activation").get<double>(), each.at("weight").get<double>(),
                     each.at("sum_out").get<double>()});
  return steps;
}

int cycles_of(const std::vector<Step>& steps) {
  return std::ranges::max(steps, {}, &Step::cycle).cycle + 1;
}

/// One law of laws.json: a sum of whole multiples of named quantities.
class Law {
 public:
  using Quantities = std::map<std::string, int>;

  /// Throws InvalidArgument naming what is missing.
  Law(const Json& laws, const std::string& name, const std::vector<std::string>& quantities) {
    for (auto quantity : quantities) {
      const auto law = laws.value(name, Json::object());
      const auto value = law.is_object() ? law.value(quantity, Json()) : Json();
      if (!value.is_number_integer() || std::abs(value.get<double>()) > 1000)
        throw InvalidArgument(
            fmt::format("laws.json: \"{}\" has no whole number for \"{}\" yet", name, quantity));
      factors_[quantity] = value.get<int>();
    }
  }
  int operator()(const Quantities& quantities) const {
    int sum = factors_.at("constant");
    for (const auto& [name, value] : quantities) sum += factors_.at(name) * value;
    return sum;
  }

 private:
  std::map<std::string, int> factors_;
};

using Watched = std::vector<std::pair<Product, std::vector<Step>>>;

/// `judge` says what is wrong with the law for a step; the first such thing of all products.
template <class Judge>
std::string first_wrong(const Watched& watched, const Judge& judge) {
  for (const auto& [product, steps] : watched) {
    for (const auto& step : steps) {
      const std::string problem = judge(product, step);
      if (!problem.empty())
        return fmt::format("{}: cell ({}, {}) {}", product.said(), step.row, step.column, problem);
    }
  }
  return {};
}

std::string wrong_index(const Watched& watched, const Law& law, const char* name, bool is_k) {
  return first_wrong(watched, [&](const Product& product, const Step& step) -> std::string {
    const int said = law({{"row", step.row}, {"column", step.column}});
    const int bound = is_k ? product.inner : product.columns;
    bool right = said >= 0 && said < bound;
    if (right && is_k) right = product.x_at(step.m, said) == step.activation;
    if (right && !is_k) {
      right = false;
      for (int k = 0; k < product.inner; ++k) right |= product.w_at(k, said) == step.weight;
    }
    if (right) return {};
    return fmt::format("multiplies {} of x by {} of w in cycle {}; with {} = {} it would not",
                       step.activation, step.weight, step.cycle, name, said);
  });
}

std::string wrong_cycle(const Watched& watched, const Law& law) {
  return first_wrong(watched, [&](const Product&, const Step& step) -> std::string {
    const int said = law({{"m", step.m}, {"row", step.row}, {"column", step.column}});
    if (said == step.cycle) return {};
    return fmt::format("works on row {} of x in cycle {}, your law says {}", step.m, step.cycle,
                       said);
  });
}

std::string wrong_terms(const Watched& watched, const Law& law) {
  return first_wrong(watched, [&](const Product& product, const Step& step) -> std::string {
    const int said = law({{"row", step.row}, {"column", step.column}});
    double sum = 0;
    for (int k = 0; k < std::clamp(said, 0, product.inner); ++k)
      sum += static_cast<double>(product.x_at(step.m, k)) * product.w_at(k, step.column);
    if (said >= 0 && said <= product.inner && sum == step.sum) return {};
    return fmt::format("hands down {} in cycle {}, which is not the sum of {} products", step.sum,
                       step.cycle, said);
  });
}

std::string wrong_cycles(const Watched& watched, const Law& law) {
  for (const auto& [product, steps] : watched) {
    const int said = law({{"M", product.rows}, {"K", product.inner}, {"N", product.columns}});
    if (said != cycles_of(steps))
      return fmt::format("{}: cells work in {} cycles, your law says {}", product.said(),
                         cycles_of(steps), said);
  }
  return {};
}

/// The problem with a law, which may be that it is not complete.
template <class Judge>
std::string judged(const Json& laws, const char* name, std::vector<std::string> quantities,
                   const Judge& judge) {
  quantities.emplace_back("constant");
  try {
    return judge(Law(laws, name, quantities));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  Json laws = Json::object();
  std::string broken;
  try {
    laws = parse_strict<Json>(submission.text("laws.json"));
  } catch (const IoError& error) {
    broken = fmt::format("laws.json: {}", error.what());
  }
  RandomStream random(submission.seed(), 2);
  Watched watched;
  for (const auto& [inner, columns] : {std::pair{4, 4}, {3, 2}, {2, 4}}) {
    auto product = hidden(random, inner, columns);
    auto steps = watch(bench, product);
    watched.emplace_back(std::move(product), std::move(steps));
  }
  const auto item = [&](const char* name, int points, std::vector<std::string> quantities,
                        const auto& judge) {
    report.exact(name, points,
                 broken.empty() ? judged(laws, name, std::move(quantities), judge) : broken);
    if (!broken.empty()) broken = "laws.json cannot be read: see above";
  };
  item("k", 10, {"row", "column"},
       [&](const Law& law) { return wrong_index(watched, law, "k", true); });
  item("n", 10, {"row", "column"},
       [&](const Law& law) { return wrong_index(watched, law, "n", false); });
  item("cycle", 20, {"m", "row", "column"},
       [&](const Law& law) { return wrong_cycle(watched, law); });
  item("terms", 10, {"row", "column"}, [&](const Law& law) { return wrong_terms(watched, law); });
  item("cycles", 10, {"M", "K", "N"}, [&](const Law& law) { return wrong_cycles(watched, law); });
}

std::vector<Prediction> predictions(Bench& bench) {
  const auto steps = watch(bench, known());
  double activation = 0, sum = 0;
  for (const auto& step : steps) {
    if (step.row == 0 && step.column == 0 && step.cycle == 2) activation = step.activation;
    if (step.row == 3 && step.column == 1 && step.m == 0) sum = step.sum;
  }
  return {{"activation_00", 5, activation},
          {"cells_3", 5, std::ranges::count(steps, 3, &Step::cycle)},
          {"sum_31", 5, sum},
          {"cycles", 5, cycles_of(steps)}};
}

constexpr Explanation kQuestions[] = {
    {"same_row_of_x", 5, "e3d593b07661b0349445d493a0445adae355b1aa9bffd71b933cb174e7d0f34a",
     "mark the cells that multiply 1, 2, 3 or 4, cycle by cycle"},
    {"where_weights", 5, "34db288aabc5c5e46bf1e5e020b910f8ca8d3f9c45aad86d5ef0ef5efe2c7ae2",
     "look at the second number of one cell, in all cycles"},
    {"more_than_four", 5, "50407aaff196776a521e91dcf17f14de19e24b4f7cbcf7a907497b9077cc279a",
     "count the cells that work, cycle by cycle"},
    {"many_rows", 5, "be9021d275444261e7ce1135c62c0fd5713b49fbe4a98c966bd4c6a6b401c1c0",
     "what does your law \"cycles\" say for M = 1000?"}};

}  // namespace

Lab lab_0_watch() {
  return {.number = 0,
          .version = 2,
          .slug = "watch",
          .title = "Watch",
          .question = "what happens in a 4 x 4 product?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kQuestions};
}

}  // namespace triptych::labs
