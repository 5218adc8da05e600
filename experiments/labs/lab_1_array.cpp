// Lab 1: a student's array in SystemVerilog, between memories that count. Its log says when which
// row was read and which result came. All points depend on it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "core/base/random.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/lab_texts.h"
#include "experiments/labs/rtl_bench.h"

namespace triptych::labs {
namespace {

/// A product that the array is to compute.
struct Product {
  char name = 'a';
  int size = 4, rows = 4;  ///< S, M
  std::vector<int> x, w;   ///< row by row

  int y(int m, int c) const {
    int sum = 0;
    for (int k = 0; k < size; ++k) sum += x[at(m, k)] * w[at(k, c)];
    return sum;
  }
  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(std::int64_t{row} * size + column);
  }
  /// "product b (array 4 x 4, 13 rows of x)"
  std::string said() const {
    return fmt::format("product {} (array {} x {}, {} row{} of x)", name, size, size, rows,
                       rows == 1 ? "" : "s");
  }
};

/// A result that came: of column `column`, its `row`-th.
struct Result {
  int cycle = 0, row = 0, column = 0, value = 0;
};

/// The log of a product.
struct Log {
  std::vector<int> x_reads, w_reads;  ///< rows, in the order of the requests
  std::vector<Result> results;
  std::map<int, int> delivered;  ///< by column

  bool complete(const Product& product) const {
    for (int c = 0; c < product.size; ++c) {
      const auto found = delivered.find(c);
      if (found == delivered.end() || found->second < product.rows) return false;
    }
    return true;
  }
  const Result* find(int row, int column) const {
    const auto found = std::ranges::find_if(
        results, [&](const Result& each) { return each.row == row && each.column == column; });
    return found == results.end() ? nullptr : &*found;
  }
  int cycles() const {
    int last = -1;
    for (const auto& each : results) last = std::max(last, each.cycle);
    return last + 1;
  }
};

Product first_product() {
  Product product;
  for (int m = 0; m < 4; ++m)
    for (int k = 0; k < 4; ++k) product.x.push_back(4 * m + k - 6);
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < 4; ++c) product.w.push_back(3 * k - 2 * c + 1);
  return product;
}

Product hidden_product(char name, int size, int rows, RandomStream& random) {
  Product product = {name, size, rows, {}, {}};
  const auto number = [&] { return static_cast<int>(random.below(256)) - 128; };
  for (int i = 0; i < rows * size; ++i) product.x.push_back(number());
  for (int i = 0; i < size * size; ++i) product.w.push_back(number());
  // The extremes of the range. Their product needs all bits.
  product.x.front() = product.w.front() = -128;
  return product;
}

std::vector<Product> products(std::uint64_t seed) {
  RandomStream random(seed, 1);
  const int more_rows = 9 + static_cast<int>(random.below(16));
  constexpr std::array sizes = {3, 5, 6, 7};
  const int size = sizes[static_cast<std::size_t>(random.below(4))];
  const int few_rows = 1 + static_cast<int>(random.below(3));
  return {first_product(), hidden_product('b', 4, more_rows, random),
          hidden_product('c', size, few_rows, random)};
}

std::string memory_text(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += fmt::format("{:02x}\n", number & 0xFF);
  return text;
}

/// The module above all cases.
std::string top_module(const std::vector<Product>& cases) {
  std::string text = fmt::format(
      "module lab_bench (input logic clk_i, input logic rst_i, output logic done_o);\n"
      "  logic [{}:0] done;\n  assign done_o = &done;\n",
      cases.size() - 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& product = cases[i];
    text += fmt::format(
        "  lab_case #(.Size({}), .Rows({}), .Most({}), .Name(\"{}\")) u_{} (.clk_i, .rst_i, "
        ".done_o(done[{}]));\n",
        product.size, product.rows, 100 + 20 * (product.rows + product.size), product.name,
        product.name, i);
  }
  return text + "endmodule\n";
}

Log read_log(const std::string& text) {
  Log log;
  std::istringstream stream(text);
  char kind = 0;
  int cycle = 0, place = 0, value = 0;
  while (stream >> kind >> cycle >> place >> value) {
    if (kind == 'x') log.x_reads.push_back(place);
    if (kind == 'w') log.w_reads.push_back(place);
    if (kind == 'y') log.results.push_back({cycle, log.delivered[place]++, place, value});
  }
  return log;
}

std::string not_complete(const Product& product, const Log& log) {
  std::string columns;
  for (int c = 0; c < product.size; ++c) {
    const auto found = log.delivered.find(c);
    columns +=
        fmt::format("{}{}", c == 0 ? "" : ", ", found == log.delivered.end() ? 0 : found->second);
  }
  return fmt::format("{}: each column should show {} results, they showed {} before time was up",
                     product.said(), product.rows, columns);
}

/// Numbers of 8 bits without a sign.
int unsigned_of(int number) { return number & 0xFF; }

/// y[m][c] of an array with this input order. Without skew, x[m + k][k] meets w[k][c].
template <class X, class W>
int mistaken(const Product& product, int m, int c, const X& x, const W& w, bool skewed) {
  int sum = 0;
  for (int k = 0; k < product.size; ++k) {
    const int row = skewed ? m : m + k;
    if (row >= product.rows) return product.y(m, c);  // it would be nobody's x
    sum += x(product.x[product.at(row, k)]) * w(product.w[product.at(k, c)]);
  }
  return sum;
}

/// Text about the mistake that explains the values of column `c`, to follow them in a message.
/// Empty: none that is known.
std::string likely_cause(const Product& product, const Log& log, int c) {
  using Value = std::function<int(int m)>;
  const auto as_it_is = [](int number) { return number; };
  const std::pair<const char*, Value> mistakes[] = {
      {"y_valid_o begins a cycle too early: what should be y[0] comes second",
       [&](int m) { return m == 0 ? log.find(0, c)->value : product.y(m - 1, c); }},
      {"y_valid_o begins a cycle too late: what should be y[1] comes first",
       [&](int m) { return m + 1 == product.rows ? log.find(m, c)->value : product.y(m + 1, c); }},
      {"it is the product of an x without sign",
       [&](int m) { return mistaken(product, m, c, unsigned_of, as_it_is, true); }},
      {"it is the product of weights without sign",
       [&](int m) { return mistaken(product, m, c, as_it_is, unsigned_of, true); }},
      {"it is the product of an x and weights without sign",
       [&](int m) { return mistaken(product, m, c, unsigned_of, unsigned_of, true); }},
  };
  for (const auto& [cause, value] : mistakes) {
    bool all = product.rows > 1;
    for (int m = 0; m < product.rows; ++m) all = all && log.find(m, c)->value == value(m);
    if (all) return fmt::format("; {}", cause);
  }
  const auto unskewed = mistaken(product, 0, c, as_it_is, as_it_is, false);
  if (unskewed != product.y(0, c) && log.find(0, c)->value == unskewed)
    return "; it is x[0][0] w[0] + x[1][1] w[1] + ..., as if each x entered its row without skew";
  return {};
}

std::string wrong_bits(const Product& product, const Log& log) {
  if (!log.complete(product)) return not_complete(product, log);
  for (int m = 0; m < product.rows; ++m) {
    for (int c = 0; c < product.size; ++c) {
      const auto* result = log.find(m, c);
      if (result->value != product.y(m, c))
        return fmt::format("{}: y[{}][{}] should be {}, and column {} showed {} in cycle {}{}",
                           product.said(), m, c, product.y(m, c), c, result->value, result->cycle,
                           likely_cause(product, log, c));
    }
  }
  return {};
}

/// The problem with one memory: each of `rows` rows is to be read once.
std::string wrong_reads(const Product& product, const char* memory, const std::vector<int>& reads,
                        int rows) {
  if (static_cast<int>(reads.size()) != rows)
    return fmt::format(
        "{}: {} has {} rows of {} numbers, and {} were read ({} reads instead of {})",
        product.said(), memory, rows, product.size, reads.size(),
        reads.size() * static_cast<std::size_t>(product.size), rows * product.size);
  for (int row = 0; row < rows; ++row) {
    const auto times = std::ranges::count(reads, row);
    if (times != 1)
      return fmt::format("{}: row {} of {} was read {} times, once is enough", product.said(), row,
                         memory, times);
  }
  return {};
}

std::string wrong_reads(const Product& product, const Log& log) {
  const auto of_w = wrong_reads(product, "w", log.w_reads, product.size);
  return of_w.empty() ? wrong_reads(product, "x", log.x_reads, product.rows) : of_w;
}

std::string wrong_wave(const Product& product, const Log& log) {
  for (int m = 0; m < product.rows; ++m) {
    for (int c = 1; c < product.size; ++c) {
      const int before = log.find(m, c - 1)->cycle, now = log.find(m, c)->cycle;
      if (now != before + 1)
        return fmt::format(
            "{}: y[{}][{}] came in cycle {} and y[{}][{}] in cycle {}; x goes through one column "
            "in a cycle, so it should be {}",
            product.said(), m, c - 1, before, m, c, now, before + 1);
    }
  }
  return {};
}

std::string too_slow(const Product& product, const Log& log, int allowed, const char* formula) {
  if (log.cycles() <= allowed) return {};
  return fmt::format("{}: the last y came in cycle {}, so it took {} cycles; {} = {} are allowed",
                     product.said(), log.cycles() - 1, log.cycles(), formula, allowed);
}

/// The first problem of any product. One that is not complete is a problem.
template <class Judge>
std::string first_problem(const std::vector<Product>& cases, const std::vector<Log>& logs,
                          const Judge& judge) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!logs[i].complete(cases[i])) return "counts when all results come: see above";
    auto problem = judge(cases[i], logs[i]);
    if (!problem.empty()) return problem;
  }
  return {};
}

/// Builds and runs. Without a problem, fills `logs`.
RtlRun run(const Submission& submission, Bench& bench, const std::vector<Product>& cases,
           std::vector<Log>& logs) {
  for (const auto& product : cases) {
    bench.put(fmt::format("{}.x", product.name), memory_text(product.x));
    bench.put(fmt::format("{}.w", product.name), memory_text(product.w));
  }
  bench.put("array.sv", submission.text("array.sv"));
  bench.put("array_bench.sv", lab_text("benches/array_bench.sv"));
  bench.put("lab_bench.sv", top_module(cases));
  auto result =
      build_and_run(bench, {"array.sv", "array_bench.sv", "lab_bench.sv"}, submission.seed());
  if (!result.problem.empty()) return result;
  for (const auto& product : cases)
    logs.push_back(read_log(bench.text(fmt::format("{}.log", product.name))));
  return result;
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  const auto cases = products(submission.seed());
  std::vector<Log> logs;
  const auto result = run(submission, bench, cases, logs);
  report.printed = result.printed;
  auto broken = result.problem;
  const auto judge = [&](const char* id, int points, const auto& problem) {
    report.exact(id, points, broken.empty() ? problem() : broken);
    if (!broken.empty()) broken = "nothing ran: see above";
  };
  judge("bits_4x4", 15, [&] { return wrong_bits(cases[0], logs[0]); });
  judge("bits_hidden", 15, [&] {
    const auto problem = wrong_bits(cases[1], logs[1]);
    return problem.empty() ? wrong_bits(cases[2], logs[2]) : problem;
  });
  judge("reads", 10, [&] {
    return first_problem(cases, logs,
                         [](auto& product, auto& log) { return wrong_reads(product, log); });
  });
  judge("wave", 10, [&] { return first_problem(cases, logs, wrong_wave); });
  judge("cycles", 5, [&] {
    return first_problem(cases, logs, [](const Product& product, const Log& log) {
      return too_slow(product, log, product.rows + 3 * product.size, "M + 3 S");
    });
  });
  judge("overlap", 5, [&] {
    return first_problem(cases, logs, [](const Product& product, const Log& log) {
      return too_slow(product, log, product.rows + 2 * product.size + 1, "M + 2 S + 1");
    });
  });
}

std::vector<Prediction> predictions(Bench& /*bench*/) {
  constexpr int size = 4, rows = 16;
  return {{"reads_without", 5, 2 * rows * size * size},
          {"reads_with", 5, size * size + rows * size},
          {"cycles", 5, rows + 3 * size},
          {"macs_per_read", 5, 256}};
}

constexpr Explanation kQuestions[] = {
    {"why_skew", 5, "505222899b8979e7c9067fa72358e0915a85940613d46b481dd7311b11ff2412",
     "follow one sum down a column, and see which x it meets"},
    {"who_reuses_x", 5, "88efd62ad6f8b74112874eeafd39283a4d2ea4194ed4ac6138cbe05993fee999",
     "follow one x from the left edge to the right one"},
    {"who_reuses_w", 5, "1078a3f193a081d02383512dfd8dc9e62852a8dc310054a2381f23612d641653",
     "watch one cell: what does it do in each cycle?"},
    {"one_row", 5, "22ebdd2f989165c89a2213ba97dc85f65542740858013c7625b3954a66bb0b8b",
     "which part of the cycles that the array takes has no M in it?"}};

}  // namespace

Lab lab_1_array() {
  return {.number = 1,
          .slug = "array",
          .title = "An array by hand",
          .question = "why so few reads?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kQuestions};
}

}  // namespace triptych::labs
