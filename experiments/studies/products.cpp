// Matrix products taken apart: the claims "reuse", "large-products" and "cpu-parallelism".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/ops/matmul.h"
#include "experiments/studies/examinations.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/page_parts.h"
#include "experiments/studies/rules.h"
#include "systolic/driver/driver.h"

namespace triptych::studies {
namespace {

constexpr double kElementBytes = 4;

measure::Problem square_product(const Device& device, std::int64_t n, const std::string& kernel) {
  measure::BenchOptions options;
  options.sizes = std::to_string(n);
  options.kernels = kernel;
  return measure::matmul_problems(options, device, 1).front();
}

double cubed(std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n * n); }

/// Reads per multiply-add at one level of one machine.
struct Reads {
  std::string machine, kernel, level, how;
  TimeKind kind = TimeKind::Simulated;
  double per_mac = 0;
  bool nearest = false;  ///< of all memories that it has, to the arithmetic. Registers do not count
};

/// Adds the cache accesses of instructions, for each kernel with a model. Counts loads alone where
/// the model separates them.
void add_cpu(std::vector<Reads>& list, std::int64_t n) {
  const training::DeviceSet machine({.backend = "cpu"});
  const auto options = machine.plan_options();
  for (const auto& entry : machine.device().kernels()) {
    if (entry.op != MatMul::kName || entry.traffic == nullptr) continue;
    const auto plan = square_product(machine.device(), n, std::string(entry.name)).plan(machine);
    const NodeQuery query(plan.graph, plan.graph.node(plan.steps.front().node), options.placement);
    bool nearest = true;
    for (const auto& traffic : entry.traffic(query, machine.device())) {
      const double bytes = traffic.read_bytes > 0 ? traffic.read_bytes : traffic.bytes;
      list.push_back({"cpu", std::string(entry.name), std::string(traffic.level),
                      "modelled from blocking", TimeKind::Modelled,
                      bytes / kElementBytes / cubed(n), nearest});
      nearest = false;
    }
  }
}

/// Bytes that the lanes of an emulated GPU load.
void add_gpu(std::vector<Reads>& list, std::int64_t n) {
  const training::DeviceSet machine({.backend = "cuda-emulated"});
  for (const auto* kernel : {"naive", "tiled", "register-tiled", "vectorised"}) {
    KernelCounters sum;
    for (const auto& [name, counters] : count(square_product(machine.device(), n, kernel)))
      sum += counters;
    const auto shared = sum.total(MemorySpace::Shared, MemoryAccess::Load);
    const auto global = sum.total(MemorySpace::Global, MemoryAccess::Load);
    const auto add = [&](const char* level, const AccessCounters& at, bool nearest) {
      list.push_back({"cuda-emulated", kernel, level, "counted", TimeKind::Simulated,
                      static_cast<double>(at.useful_bytes) / kElementBytes / cubed(n), nearest});
    };
    if (shared.requests > 0) add("shared memory", shared, true);
    add("global memory", global, shared.requests == 0);
  }
}

void add_array(std::vector<Reads>& list, const std::string& machine, mmu::Simulation simulate,
               std::int64_t n) {
  const auto counters = run_product(machine, simulate, product_graph(n, n, n));
  const auto name = fmt::format("{}, {}", machine, name_of(simulate));
  const auto add = [&](const char* level, std::uint64_t reads, bool nearest) {
    list.push_back({name, "", level, "counted", TimeKind::Simulated,
                    static_cast<double>(reads) / static_cast<double>(counters.macs), nearest});
  };
  add("unified buffer and weights", counters.buffer_reads + counters.weight_reads, true);
  add("accumulators", counters.accumulator_reads, false);
}

double least_nearest(const std::vector<Reads>& list, bool of_array) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& reads : list) {
    const bool array = reads.machine.starts_with("mmu");
    if (reads.nearest && array == of_array) least = std::min(least, reads.per_mac);
  }
  return least;
}

}  // namespace

Finding examine_reuse(Laboratory&) {
  constexpr std::int64_t n = 128;
  std::vector<Reads> list;
  add_cpu(list, n);
  add_gpu(list, n);
  for (const auto* machine : {"mmu4", "mmu16"}) {
    add_array(list, machine, mmu::Simulation::Twin, n);
    const auto built = mmu::rtl_machines();
    if (std::ranges::count(built, machine) > 0) add_array(list, machine, mmu::Simulation::Rtl, n);
  }
  std::vector<std::vector<Json>> rows;
  std::vector<Bars> bars;
  for (const auto& reads : list) {
    rows.push_back({reads.machine, reads.kernel, reads.level,
                    figure(reads.per_mac, "1", reads.kind), reads.how});
    if (reads.nearest)
      add_bar(bars, reads.kind, fmt::format("{} {}", reads.machine, reads.kernel), reads.per_mac);
  }
  const double array = least_nearest(list, true), other = least_nearest(list, false);
  Finding finding = {
      .verdict = judge_reuse(array, other),
      .why =
          fmt::format("A product of {0} x {0} x {0}: the 16 x 16 array reads {1:.3f} operands per "
                      "multiply-add from its memories, since an activation serves a whole row "
                      "of weights and a weight a whole stream: the larger the array, the fewer. "
                      "The best kernel of CPU or GPU reads {2:.3f} from the memory nearest to its "
                      "registers, a scalar loop 2.",
                      n, array, other),
      .commands = {fmt::format("triptych bench matmul --sizes {} --kernel all --json", n),
                   fmt::format("triptych bench matmul --backend cuda-emulated --sizes {} --kernel "
                               "naive,tiled,register-tiled",
                               n)}};
  finding.tables.push_back(table(fmt::format("Reads per multiply-add, product of side {}", n),
                                 {{"machine", ""},
                                  {"kernel", ""},
                                  {"memory", ""},
                                  {"reads per multiply-add", "1"},
                                  {"how", ""}},
                                 std::move(rows)));
  finding.charts.push_back(
      bar_chart("reuse", "Reads per multiply-add from the memory nearest to the arithmetic",
                {.label = "reads", .unit = "1", .log = true}, bars));
  return finding;
}

namespace {

struct Shape3 {
  std::int64_t m = 1, k = 1, n = 1;
};

double utilisation_of(const std::string& machine, const Shape3& s) {
  return utilisation(estimate_product(machine, product_graph(s.m, s.k, s.n)),
                     mmu::find_machine(machine));
}

}  // namespace

Finding examine_utilisation(Laboratory& laboratory) {
  constexpr const char* machine = "tpu-v2-core";
  std::vector<std::int64_t> sizes = {16, 32, 64, 128, 256, 512, 1024};
  if (!laboratory.quick()) sizes.push_back(2048);
  std::vector<std::vector<Json>> squares, shapes;
  Series of_large = {.name = machine, .kind = TimeKind::Simulated, .points = {}};
  Series of_small = {.name = "mmu16", .kind = TimeKind::Simulated, .points = {}};
  for (const auto n : sizes) {
    const double large = utilisation_of(machine, {n, n, n}),
                 small = utilisation_of("mmu16", {n, n, n});
    squares.push_back({fmt::format("{0} x {0} x {0}", n), figure(small, "%", TimeKind::Simulated),
                       figure(large, "%", TimeKind::Simulated)});
    of_large.points.emplace_back(n, large);
    of_small.points.emplace_back(n, small);
  }
  // As many multiply-adds each: 2^27.
  std::vector<double> equal;
  for (const auto& s : {Shape3{512, 512, 512}, Shape3{8192, 128, 128}, Shape3{32, 2048, 2048},
                        Shape3{65536, 128, 16}, Shape3{262144, 32, 16}}) {
    equal.push_back(utilisation_of(machine, s));
    shapes.push_back({fmt::format("{} x {} x {}", s.m, s.k, s.n),
                      figure(equal.back(), "%", TimeKind::Simulated)});
  }
  const auto [least, most] = std::ranges::minmax(equal);
  const double first = of_large.points.front().second, last = of_large.points.back().second;
  Finding finding = {
      .verdict = judge_utilisation(first, last, equal),
      .why = fmt::format("The 128 x 128 array is used to {:.3g} % by a product of side {} and to "
                         "{:.3g} % by one of side {}; but of shapes with equally many "
                         "multiply-adds one uses it to {:.2g} % and another to {:.2g} %. A program "
                         "takes the same cycles however often it runs, so that the length of "
                         "training changes nothing; the 16 x 16 array is used to {:.2g} % from "
                         "side {} on.",
                         100 * first, sizes.front(), 100 * last, sizes.back(), 100 * least,
                         100 * most, 100 * of_small.points[2].second, sizes[2]),
      .commands = {fmt::format("triptych bench matmul --backend systolic --machine {} --contract "
                               "bf16 --sizes {}..{} --json",
                               machine, sizes.front(), sizes.back())}};
  finding.tables.push_back(
      table("Utilisation of square products",
            {{"product", ""}, {"16 x 16 array", "%"}, {"128 x 128 array", "%"}}, squares));
  finding.tables.push_back(table("Utilisation of the 128 x 128 array by equal work",
                                 {{"rows x inner x columns", ""}, {"utilisation", "%"}}, shapes));
  finding.charts.push_back(line_chart("utilisation", "Utilisation by size",
                                      {.label = "side of the product", .unit = "1", .log = true},
                                      {.label = "used PE-cycles", .unit = "%"},
                                      {of_small, of_large}));
  return finding;
}

Finding examine_cpu_parallelism(Laboratory& laboratory) {
  const std::int64_t n = laboratory.quick() ? 256 : 512;
  const training::DeviceSet one({.backend = "cpu", .threads = 1}), all({.backend = "cpu"});
  const auto time = [&](const training::DeviceSet& machine, const std::string& kernel) {
    return measure(square_product(machine.device(), n, kernel), machine, 5);
  };
  const double scalar = time(one, "naive"), vector = time(one, "best"), threads = time(all, "best");
  const auto row = [&](const std::string& name, double seconds) -> std::vector<Json> {
    return {name, figure(seconds, "s", TimeKind::Measured),
            figure(2 * cubed(n) / seconds, "FLOP/s", TimeKind::Measured),
            ratio(scalar / seconds, TimeKind::Measured, TimeKind::Measured)};
  };
  Finding finding = {
      .verdict = judge_cpu_parallelism(scalar / threads),
      .why = fmt::format("Vectors and blocking make a product of side {} {:.0f} times as fast as "
                         "scalar code, {} threads another {:.1f} times: {:.0f} times together.",
                         n, scalar / vector, all.threads(), vector / threads, scalar / threads),
      .commands = {
          fmt::format("triptych bench matmul --sizes {} --kernel naive,best --threads 1,{}", n,
                      all.threads())}};
  finding.tables.push_back(
      table(fmt::format("A product of side {} on this CPU", n),
            {{"code", ""}, {"time", "s"}, {"rate", "FLOP/s"}, {"over scalar code", "x"}},
            {row("scalar, 1 thread", scalar), row("best kernel, 1 thread", vector),
             row(fmt::format("best kernel, {} threads", all.threads()), threads)}));
  return finding;
}

}  // namespace triptych::studies
