// Lab 8, "Ring against server": all-reduces as schedules that a student writes (chunk_schedule.h),
// their bytes and their price.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/random.h"
#include "core/io/strict_json.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/chunk_schedule.h"
#include "experiments/labs/formula.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/collectives/price.h"

namespace triptych::labs {
namespace {

// A sheet of formulas and measured values that a student completes: one JSON object, in a file next
// to answers.json.

std::string said(const Variables& variables) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : variables) parts.push_back(fmt::format("{} = {}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// A value that a formula should give.
struct Sample {
  Variables at;
  double value = 0;
};

class Sheet {
 public:
  /// A missing or broken file is the problem of every question about it.
  Sheet(const Submission& submission, std::string file);

  /// The problem of the formula of that name. Empty if it gives every sample's value within a
  /// relative `tolerance`. Otherwise its description and `hint`.
  std::string problem_of_formula(const std::string& name, const std::vector<Sample>& samples,
                                 const std::string& hint, double tolerance = 1e-9) const;
  /// The same of a number or word, which must be `expected`.
  std::string problem_of_value(const std::string& name, const Json& expected,
                               const std::string& hint) const;

 private:
  /// The reason why the entry is missing. Empty: it exists.
  std::string missing(const std::string& name) const;

  std::string file_, broken_;
  Json json_;
};

Sheet::Sheet(const Submission& submission, std::string file) : file_(std::move(file)) {
  try {
    json_ = parse_strict<Json>(submission.text(file_));
    if (!json_.is_object()) broken_ = fmt::format("{} is no object {{...}}", file_);
  } catch (const Error& error) {
    broken_ = fmt::format("{} cannot be read: {}", file_, error.what());
  }
}

std::string Sheet::missing(const std::string& name) const {
  if (!broken_.empty()) return broken_;
  if (json_.value(name, Json()).is_null())
    return fmt::format("not answered yet: \"{}\" in {}", name, file_);
  return {};
}

std::string Sheet::problem_of_formula(const std::string& name, const std::vector<Sample>& samples,
                                      const std::string& hint, double tolerance) const {
  if (auto problem = missing(name); !problem.empty()) return problem;
  const auto& given = json_.at(name);
  const auto formula = given.is_string() ? given.get<std::string>() : given.dump();
  for (const auto& sample : samples) {
    double value = 0;
    try {
      value = evaluate(formula, sample.at);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    if (std::abs(value - sample.value) <= tolerance * std::abs(sample.value)) continue;
    return fmt::format("\"{}\" gives {:.9g} with {}, and {:.9g} came; {}", triptych::shown(formula),
                       value, said(sample.at), sample.value, hint);
  }
  return {};
}

std::string Sheet::problem_of_value(const std::string& name, const Json& expected,
                                    const std::string& hint) const {
  if (auto problem = missing(name); !problem.empty()) return problem;
  const auto& given = json_.at(name);
  if (given == expected) return {};
  return fmt::format("{} says {}, which is not what the machine gives; {}", name,
                     triptych::shown(given.dump()), hint);
}

using parallel::Interconnect;
using parallel::Link;
using parallel::Schedule;

constexpr std::int64_t kElementBytes = sizeof(float);

struct Answer {
  std::string problem;  ///< empty: the sums are right for every N
  std::string text;
};

/// The numbers of ranks for which schedules are tried: a few that the handout speaks of, and
/// hidden ones.
std::vector<int> world_sizes(RandomStream& hidden) {
  std::vector<int> sizes = {1, 2, 3, 4};
  for (int i = 0; i < 3; ++i) sizes.push_back(static_cast<int>(5 + hidden.below(9)));
  std::ranges::sort(sizes);
  return sizes;
}

/// The first element that is no sum of all ranks' or not the same on all of them, in words.
std::string first_wrong_bit(const std::vector<ChunkStep>& steps, int world_size,
                            RandomStream& hidden) {
  const auto ranks = static_cast<std::size_t>(world_size);
  const auto elements = static_cast<std::size_t>(world_size + hidden.below(4 * world_size + 4));
  std::vector<std::vector<float>> before(ranks, std::vector<float>(elements));
  for (auto& buffer : before) std::ranges::generate(buffer, [&] { return hidden.uniform(-1, 1); });
  const auto after = run_on(steps, before);
  for (std::size_t i = 0; i < elements; ++i) {
    double sum = 0, size = 0;
    for (const auto& buffer : before) {
      sum += buffer[i];
      size += std::abs(buffer[i]);
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const float got = after[rank][i], first = after[0][i];
      if (!(std::abs(got - sum) <= 0x1p-23 * static_cast<double>(ranks) * size))
        return fmt::format("with {} ranks, element {} of rank {} is {:.9g}, and the sum is {:.9g}",
                           world_size, i, rank, got, sum);
      if (std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(first))
        return fmt::format(
            "with {} ranks, element {} is {:.9g} on rank 0 and {:.9g} on rank {}: sums of float32 "
            "depend on their order, and all ranks must get the same one",
            world_size, i, first, got, rank);
    }
  }
  return {};
}

Answer try_sums(const Submission& submission, const std::string& file,
                const std::vector<int>& sizes, RandomStream& hidden) {
  Answer answer;
  try {
    answer.text = submission.text(file);
    for (const int size : sizes) {
      const auto steps = read_chunk_schedule(answer.text, size);
      answer.problem = first_wrong_sum(steps, size);
      if (answer.problem.empty()) answer.problem = first_wrong_bit(steps, size, hidden);
      if (!answer.problem.empty()) break;
    }
  } catch (const Error& error) {
    answer.problem = fmt::format("{}: {}", file, error.what());
  }
  return answer;
}

/// The text of `find` for the first N that has one. Nothing where sums are wrong.
std::string first_problem(
    const Answer& answer, const std::vector<int>& sizes,
    const std::function<std::string(const std::vector<ChunkStep>&, int)>& find) {
  if (!answer.problem.empty()) return "counts when the sums are right";
  for (const int size : sizes) {
    auto problem = find(read_chunk_schedule(answer.text, size), size);
    if (!problem.empty()) return problem;
  }
  return {};
}

/// Elements of a buffer with chunks of equal length.
std::int64_t even_elements(int world_size) { return 1000 * std::int64_t{world_size}; }

std::string server_bytes_problem(const std::vector<ChunkStep>& steps, int world_size) {
  const auto elements = even_elements(world_size), size = elements * kElementBytes;
  const auto bytes = bytes_by_link(steps, world_size, elements);
  for (int from = 0; from < world_size; ++from) {
    for (int to = 0; to < world_size; ++to) {
      const auto expected = from != to && (from == 0 || to == 0) ? size : 0;
      const auto sent = bytes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
      if (sent == expected) continue;
      return fmt::format(
          "with {} ranks and S = {}, rank {} sends {} bytes to rank {}, and {} are "
          "enough when rank 0 alone adds",
          world_size, size, from, sent, to, expected);
    }
  }
  return {};
}

std::string ring_bytes_problem(const std::vector<ChunkStep>& steps, int world_size) {
  const auto elements = even_elements(world_size), size = elements * kElementBytes;
  const auto bytes = bytes_by_link(steps, world_size, elements);
  const auto most = 2 * (world_size - 1) * size / world_size;
  for (int from = 0; from < world_size; ++from) {
    const auto& sent = bytes[static_cast<std::size_t>(from)];
    for (int to = 0; to < world_size; ++to) {
      if (to == (from + 1) % world_size || sent[static_cast<std::size_t>(to)] == 0) continue;
      return fmt::format("with {} ranks, rank {} sends to rank {}, which is not its next one",
                         world_size, from, to);
    }
    const auto all = std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
    if (all > most)
      return fmt::format(
          "with {} ranks and S = {}, rank {} sends {} bytes, and 2 (N - 1) / N S = "
          "{} are enough",
          world_size, size, from, all, most);
  }
  return {};
}

constexpr Link kWire = {.alpha_s = 2e-6, .bytes_per_s = 5e9};

std::string ring_time_problem(const std::vector<ChunkStep>& steps, int world_size) {
  const auto elements = even_elements(world_size);
  const auto schedules = to_schedules(steps, world_size, elements);
  const auto wires = Interconnect::ring(world_size, kWire);
  const double got = parallel::price(schedules, kElementBytes, wires).seconds;
  const auto chunk_bytes = elements / world_size * kElementBytes;
  const auto chunk = static_cast<double>(chunk_bytes);
  const double best = 2 * (world_size - 1) * (kWire.alpha_s + chunk / kWire.bytes_per_s);
  if (got <= best * (1 + 1e-9)) return {};
  return fmt::format(
      "with {} ranks it takes {:.3f} us (modelled), and {:.3f} are enough: in each "
      "of 2 (N - 1) steps every wire carries one chunk",
      world_size, got * 1e6, best * 1e6);
}

std::vector<Schedule> ring_schedules(int world_size, std::int64_t elements) {
  std::vector<Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank)
    schedules.push_back(parallel::make_schedule(parallel::Collective::AllReduce,
                                                parallel::Algorithm::Ring,
                                                {.world_size = world_size,
                                                 .rank = rank,
                                                 .elements = elements,
                                                 .segment_elements = elements}));
  return schedules;
}

std::vector<Schedule> server_schedules(int world_size, std::int64_t elements) {
  ChunkStep gather, spread;
  for (int rank = 1; rank < world_size; ++rank) {
    gather.push_back({.from = rank, .to = 0, .chunk = kAllChunks, .adds = true});
    spread.push_back({.from = 0, .to = rank, .chunk = kAllChunks, .adds = false});
  }
  return to_schedules({gather, spread}, world_size, elements);
}

/// A case for the formulas.
struct Case {
  int world_size = 2;
  std::int64_t elements = 0;
  Link link;
  double late_s = 0;
  std::int64_t every = 1;  ///< steps between two averages

  double bytes() const { return static_cast<double>(elements * kElementBytes); }
  Variables variables() const {
    return {{"N", world_size},          {"S", bytes()},   {"alpha", link.alpha_s},
            {"beta", link.bytes_per_s}, {"late", late_s}, {"H", static_cast<double>(every)}};
  }
  double seconds(const std::vector<Schedule>& schedules, const Interconnect& wires,
                 double late) const {
    std::vector<std::vector<parallel::Delay>> delays(static_cast<std::size_t>(world_size));
    if (late > 0) delays[1] = {{.before = 0, .seconds = late}};
    return parallel::price(schedules, kElementBytes, wires, 0, delays).seconds;
  }
  double ring_seconds(double late) const {
    return seconds(ring_schedules(world_size, elements), Interconnect::ring(world_size, link),
                   late);
  }
  double server_seconds(double late) const {
    return seconds(server_schedules(world_size, elements), Interconnect::switched(world_size, link),
                   late);
  }
  double ring_bytes() const { return 2.0 * (world_size - 1) * bytes() / world_size; }
};

std::vector<Case> formula_cases(RandomStream& hidden) {
  std::vector<Case> cases;
  for (int i = 0; i < 3; ++i) {
    const int ranks = static_cast<int>(3 + hidden.below(14));
    cases.push_back({.world_size = ranks,
                     .elements = ranks * (1000 + hidden.below(4000)),
                     .link = {static_cast<double>(1 + hidden.below(20)) * 1e-6,
                              static_cast<double>(1 + hidden.below(50)) * 1e9},
                     .late_s = static_cast<double>(1 + hidden.below(9)),
                     .every = 2 + hidden.below(31)});
  }
  return cases;
}

struct FormulaItem {
  const char *name, *hint;
  double (*value)(const Case&);
};

constexpr FormulaItem kFormulas[] = {
    {"ring_bytes", "a rank sends one chunk of S / N in each of its steps",
     [](const Case& c) { return c.ring_bytes(); }},
    {"server_bytes", "all but the server send all they have",
     [](const Case& c) { return (c.world_size - 1) * c.bytes(); }},
    {"ring_seconds", "how many steps follow one another, and how long is a chunk?",
     [](const Case& c) { return c.ring_seconds(0); }},
    {"server_seconds",
     "there and back; each message crosses two wires, and all of them share the server's",
     [](const Case& c) { return c.server_seconds(0); }},
    {"ring_late_seconds", "every sum waits for the late rank, and goes all the way round after it",
     [](const Case& c) { return c.ring_seconds(c.late_s); }},
    {"server_late_seconds",
     "the late message has the server's wire for itself; the way back is as before",
     [](const Case& c) { return c.server_seconds(c.late_s); }},
    {"local_bytes", "one all-reduce in H steps",
     [](const Case& c) { return c.ring_bytes() / static_cast<double>(c.every); }},
};

void grade_formulas(const Sheet& sheet, RandomStream& hidden, Report& report) {
  const auto cases = formula_cases(hidden);
  for (const auto& item : kFormulas) {
    std::vector<Sample> samples;
    samples.reserve(cases.size());
    for (const auto& each : cases) samples.push_back({each.variables(), item.value(each)});
    report.exact(fmt::format("formula {}", item.name), 2,
                 sheet.problem_of_formula(item.name, samples, item.hint));
  }
}

/// The first twelve digits of the weights' fingerprint, as the program's table shows them.
std::string trained_weights(Bench& bench, const std::string& strategy) {
  const auto ending = bench.run({"triptych",
                                 "train",
                                 "--contract",
                                 "bf16-exact",
                                 "--synthetic-images",
                                 "32",
                                 "--batch",
                                 "4",
                                 "--epochs",
                                 "1",
                                 "--validation",
                                 "0",
                                 "--ranks",
                                 "4",
                                 "--seed",
                                 "1",
                                 "--strategy",
                                 strategy,
                                 "--out",
                                 "run-" + strategy.substr(0, 5),
                                 "--json"});
  if (!ending.good())
    throw DeviceError(fmt::format("the training of the lab {}: {}", ending.said(kCheckLimits),
                                  first_lines(ending.error, 3, bench.folder().string())));
  return Bench::result(ending).at("weights_sha256").get<std::string>().substr(0, 12);
}

void grade_training(const Sheet& sheet, Bench& bench, Report& report) {
  constexpr std::pair<const char*, const char*> runs[] = {
      {"weights_dp", "dp"}, {"weights_ps_sync", "ps-sync"}, {"weights_local_sgd", "local-sgd:4"}};
  for (const auto& [name, strategy] : runs) {
    report.exact(name, 2,
                 sheet.problem_of_value(name, trained_weights(bench, strategy),
                                        "copy the twelve digits that step 6 prints under weights"));
  }
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  RandomStream hidden(submission.seed(), 8);
  const auto sizes = world_sizes(hidden);
  const auto server = try_sums(submission, "server.schedule", sizes, hidden);
  report.exact("server: sums", 8, server.problem);
  report.exact("server: bytes", 4, first_problem(server, sizes, server_bytes_problem));
  const auto ring = try_sums(submission, "ring.schedule", sizes, hidden);
  report.exact("ring: sums", 16, ring.problem);
  report.exact("ring: bytes", 8, first_problem(ring, sizes, ring_bytes_problem));
  report.exact("ring: time", 4, first_problem(ring, sizes, ring_time_problem));
  const Sheet sheet(submission, "formulas.json");
  grade_formulas(sheet, hidden, report);
  grade_training(sheet, bench, report);
}

constexpr std::string_view kYesOrNo[] = {"same_weights"};

std::vector<Prediction> predictions(Bench&) {
  // 64 MB on 8 ranks: a chunk is 8 MB.
  const Case foretold = {
      .world_size = 8, .elements = 16'000'000, .link = {.alpha_s = 1e-5, .bytes_per_s = 1e10}};
  return {{"ring_megabytes", 5, foretold.ring_bytes() / 1e6, 0.1},
          {"server_megabytes", 5, 7 * foretold.bytes() / 1e6, 0.1},
          {"ring_times_faster", 5, foretold.server_seconds(0) / foretold.ring_seconds(0), 0.1},
          {"same_weights", 5, "yes", 0}};
}

constexpr Explanation kExplanations[] = {
    {"q1", 4, "01c6b0a6be6014f71e0c1c6d9e0f6ee4afea88c381746f8c6884557e6b28942c",
     "put N = 8 and N = 64 into your formula ring_bytes"},
    {"q2", 4, "e6493f5917a91afce9918f082639064932b9e01242c555ea10b663323eed47be",
     "put S = 0 into your two formulas of seconds"},
    {"q3", 4, "47c3e560af99eeb3304d2af83007e1421cabf94585234886136208d673c7821e",
     "look at what your check says of bits, and at (a + b) + c beside a + (b + c)"},
    {"q4", 4, "a36ab8c64974cfed9065a428c310c95bdc8b81145bb23ca05aa1493d29620952",
     "after the first step the ranks no longer have the same weights"},
    {"q5", 4, "0d7d8117b3fb9a0ae14b219164664977d3b4bb87562ae4b25b3b2601d1c5ffe0",
     "what has happened to the weights while a worker computed?"},
};

}  // namespace

Lab lab_8_ring() {
  return {.number = 8,
          .slug = "ring",
          .title = "Ring against server",
          .question = "why rings?",
          .grade = grade,
          .predictions = predictions,
          .yes_or_no = kYesOrNo,
          .explanations = kExplanations};
}

}  // namespace triptych::labs
