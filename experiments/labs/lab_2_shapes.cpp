// Lab 2, "Starving shapes": for which shapes a systolic array has nothing to do, and what a batch
// or another array changes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/strict_json.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/array_counters.h"
#include "experiments/labs/sheet.h"

namespace triptych::labs {
namespace {

using Arguments = std::vector<std::string>;

Arguments conv(const std::string& shape, int window, const std::string& machine = "mmu16",
               const std::string& pass = "forward") {
  return {"conv",      "--shape", shape,    "--window", std::to_string(window),
          "--machine", machine,   "--pass", pass};
}

Arguments product(std::int64_t m, std::int64_t k, std::int64_t n,
                  const std::string& machine = "mmu16") {
  return {
      "matmul",    "--m",  std::to_string(m), "--k", std::to_string(k), "--n", std::to_string(n),
      "--machine", machine};
}

const Arguments kFirstLayer = conv("3,16,32,32", 3), kHead = conv("8,1,64,64", 1);

/// A measured value of the sheet: stalls of one kind, or all.
void grade_measured(const Sheet& sheet, Bench& bench, Report& report) {
  struct Value {
    const char *name, *counter;  ///< no counter: all stalls
    Arguments arguments;
  };
  const Value values[] = {
      {"first_layer_stalls", nullptr, kFirstLayer},
      {"first_layer_wide_stalls", nullptr, conv("3,16,32,32", 3, "tpu-v2-core")},
      {"head_stalls", nullptr, kHead},
      {"transposed_stalls",
       nullptr,
       {"--model", "unet-s", "--backend", "systolic", "--machine", "mmu16", "--contract", "bf16",
        "--node", "up1.transpose"}},
      {"batch_1_weight_stalls", "stall_weights_cycles", product(1, 256, 256)},
      {"batch_64_weight_stalls", "stall_weights_cycles", product(64, 256, 256)}};
  for (const auto& value : values) {
    const ArrayCounters counters(bench, value.arguments);
    const auto expected = value.counter == nullptr ? counters.stalls() : counters[value.counter];
    report.exact(value.name, 3,
                 sheet.problem_of_value(value.name, expected,
                                        value.counter == nullptr
                                            ? "it is cycles less issue_cycles, as step 2 shows them"
                                            : "it is stall_weights_cycles of step 2"));
  }
}

constexpr std::pair<const char*, int> kSquare[] = {{"mmu8", 8}, {"mmu16", 16}, {"mmu32", 32}};

/// Values of the two formulas of a convolution, on hidden shapes and machines.
void grade_conv_formulas(const Sheet& sheet, Bench& bench, RandomStream& hidden, Report& report) {
  std::vector<Sample> issue, filled;
  for (int i = 0; i < 4; ++i) {
    const auto [machine, side] = kSquare[hidden.below(3)];
    const int window = hidden.below(3) == 0 ? 1 : 3;
    // Few channels without a neighbourhood would be padded to a group.
    const auto channels = std::int64_t{1} << (window == 1 ? 5 + hidden.below(2) : hidden.below(7));
    const auto filters = 1 + hidden.below(70);
    const auto height = 5 + hidden.below(12), width = 5 + hidden.below(12);
    const ArrayCounters counters(
        bench, conv(fmt::format("{},{},{},{}", channels, filters, height, width), window, machine));
    const Variables at = {{"R", side},
                          {"C", side},
                          {"channels", static_cast<double>(channels)},
                          {"filters", static_cast<double>(filters)},
                          {"positions", static_cast<double>(height * width)},
                          {"taps", window * window}};
    const auto slots = static_cast<double>(counters["issue_cycles"]);
    issue.push_back({at, slots});
    filled.push_back({at, static_cast<double>(counters["macs"]) / (slots * side * side)});
  }
  report.exact("formula issue_cycles", 8,
               sheet.problem_of_formula("issue_cycles", issue,
                                        "how many tiles of R x C weights are there, and how long "
                                        "does each stay? Parts of a tile take as long as a tile"));
  report.exact("formula filled", 8,
               sheet.problem_of_formula("filled", filled,
                                        "of the R C cells, which have a weight, averaged over the "
                                        "tiles?"));
}

void grade_weight_formula(const Sheet& sheet, Bench& bench, RandomStream& hidden, Report& report) {
  std::vector<Sample> samples;
  for (int i = 0; i < 3; ++i) {
    const auto [machine, side] = kSquare[hidden.below(3)];
    const auto m = 1 + hidden.below(12), k = 20 + hidden.below(280), n = 20 + hidden.below(280);
    const ArrayCounters counters(bench, product(m, k, n, machine));
    samples.push_back({{{"R", side},
                        {"C", side},
                        {"m", static_cast<double>(m)},
                        {"k", static_cast<double>(k)},
                        {"n", static_cast<double>(n)}},
                       static_cast<double>(counters["weight_reads"])});
  }
  report.exact("formula weights_moved", 8,
               sheet.problem_of_formula("weights_moved", samples,
                                        "every tile is moved whole, once, however few rows of "
                                        "activations meet it"));
}

/// True when nine tenths of the cycles of that batch put something into the array.
bool is_fed(Bench& bench, std::int64_t batch) {
  const ArrayCounters counters(bench, product(batch, 256, 256));
  return 10 * counters["issue_cycles"] >= 9 * counters.cycles();
}

std::string batch_problem(const Sheet& sheet, Bench& bench) {
  std::int64_t batch = 0;
  std::string problem;
  if (!sheet.read_whole("smallest_batch", batch, problem)) return problem;
  if (batch < 1 || batch > 4096) return fmt::format("a batch of {} is not from 1 to 4096", batch);
  if (!is_fed(bench, batch))
    return fmt::format("with {} rows less than nine tenths of the cycles are issue_cycles", batch);
  if (batch > 1 && is_fed(bench, batch - 1))
    return fmt::format("{} rows feed the array, but {} do, too", batch, batch - 1);
  return {};
}

constexpr std::int64_t kCells = 256, kBudget = 18'100;

/// The first reason for which `machine` is not the shipped one with other sides. Empty: it is.
std::string sides_problem(const Json& machine, const Json& shipped) {
  for (const auto& [key, value] : shipped.items()) {
    if (key == "name" || key == "rows" || key == "columns") continue;
    if (machine.value(key, Json()) != value)
      return fmt::format(
          "\"{}\" of machine.json is not that of mmu16; rows and columns are yours "
          "to change",
          key);
  }
  const auto rows = machine.value("rows", Json()), columns = machine.value("columns", Json());
  if (!rows.is_number_integer() || !columns.is_number_integer() || rows < 1 || columns < 1 ||
      rows > kCells || columns > kCells ||
      rows.get<std::int64_t>() * columns.get<std::int64_t>() > kCells)
    return fmt::format("machine.json has {} rows and {} columns, and {} cells are paid for",
                       rows.dump(), columns.dump(), kCells);
  return {};
}

std::string machine_problem(const Submission& submission, Bench& bench) {
  try {
    const auto text = submission.text("machine.json");
    const auto machine = parse_strict<Json>(text);
    const auto shipped =
        Bench::result(bench.run({"triptych", "machine", "show", "mmu16", "--json"})).at("machine");
    if (!machine.is_object()) return "machine.json is no object {...}";
    if (auto problem = sides_problem(machine, shipped); !problem.empty()) return problem;
    bench.put("machine.json", text);
    const Arguments layers[] = {
        conv("3,8,32,32", 3, "machine.json"), conv("8,1,64,64", 1, "machine.json"),
        conv("64,4,16,16", 3, "machine.json"), conv("16,8,32,32", 3, "machine.json", "data")};
    std::int64_t cycles = 0;
    for (const auto& layer : layers) cycles += ArrayCounters(bench, layer).cycles();
    if (cycles <= kBudget) return {};
    return fmt::format("{} x {} cells take {} cycles for the four layers, and {} are the budget",
                       machine.at("rows").dump(), machine.at("columns").dump(), cycles, kBudget);
  } catch (const Error& error) {
    return fmt::format("machine.json: {}", error.what());
  }
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  RandomStream hidden(submission.seed(), 2);
  const Sheet sheet(submission, "formulas.json");
  grade_measured(sheet, bench, report);
  grade_conv_formulas(sheet, bench, hidden, report);
  grade_weight_formula(sheet, bench, hidden, report);
  report.exact("smallest_batch", 9, batch_problem(sheet, bench));
  report.exact("machine", 9, machine_problem(submission, bench));
}

/// Products of the layer, of all that the cells could have done, in per cent.
double percent(const ArrayCounters& counters, double products) {
  return 100 * products / (static_cast<double>(counters.cycles()) * 16 * 16);
}

std::vector<Prediction> predictions(Bench& bench) {
  const ArrayCounters one(bench, product(1, 256, 256)), sixteen(bench, product(16, 256, 256));
  return {{"first_layer_percent", 5, percent(ArrayCounters(bench, kFirstLayer), 27.0 * 16 * 1024),
           0.25},
          {"head_percent", 5, percent(ArrayCounters(bench, kHead), 8.0 * 4096), 0.25},
          {"batch_1_percent", 5, percent(one, 256.0 * 256), 0.4},
          {"batch_16_times_as_long", 5,
           static_cast<double>(sixteen.cycles()) / static_cast<double>(one.cycles()), 0.1}};
}

constexpr Explanation kExplanations[] = {
    {"q1", 4, "e9124167ebc2ed89532793952942f273cddf90262d482217bf67f075134838a0",
     "27 is how many tiles of 16, and how full is the last one?"},
    {"q2", 4, "73e8c021ac977e4a9e9e947b723e351b587a7b8134121d1b0c12dc05c6300a71",
     "step 2 has the counter that says what the array waits for"},
    {"q3", 4, "7665e0a6220523de2d2813177b2b4caa7cc9ad461b05418444ce91f6b29f1496",
     "how many columns of the array have a weight?"},
    {"q4", 4, "34a0c5f7fb9a41d0b889b2cd5db7c9de948134916e53265dbc806eeee599d3cf",
     "a tile needs R cycles to enter; for how many does the one before it work?"},
    {"q5", 4, "b169dcfcf1ecbae7938e68cc486de248e156cb126a231fcdc41c703dfb8e525d",
     "how many columns do the four layers need, and how deep are their sums?"},
};

}  // namespace

Lab lab_2_shapes() {
  return {.number = 2,
          .slug = "shapes",
          .title = "Starving shapes",
          .question = "when is a TPU not fast?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kExplanations};
}

}  // namespace triptych::labs
