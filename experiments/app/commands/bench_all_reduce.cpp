// `triptych bench all-reduce`: bandwidths of sums over ranks, and the alpha-beta model of each.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/array_all_reduce.h"
#include "experiments/page/chart.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "parallel/comm/mpi_session.h"
#include "parallel/comm/nccl_group.h"
#include "parallel/comm/thread_group.h"
#include "parallel/launch/launcher.h"

namespace triptych::app {
namespace {

using parallel::Algorithm;
using parallel::Communicator;
using training::Transport;

struct AllReduceOptions {
  std::string algorithms = "direct,ring";
  std::string transports = "threads";
  std::string ranks = "2";
  std::string bytes = "4KiB..64MiB";
  int repeats = 0;
  std::string plot;
  double timeout_s = 30;
  std::string machine;  ///< whose arrays sum. Empty: the transports do
};

/// "4KiB..64MiB,1000" as bytes. Ranges go by factors of four.
std::vector<std::int64_t> parse_bytes(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, int>, 3> units = {
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  const auto parse = [&](std::string part) {
    int shift = 0;
    for (const auto& [unit, bits] : units) {
      if (!part.ends_with(unit)) continue;
      shift = bits;
      part.resize(part.size() - unit.size());
    }
    const auto number = parse_numbers(part).front();
    if (number > (std::int64_t{1} << 34 >> shift))
      throw InvalidArgument(fmt::format("--bytes {}: at most 16 GiB", text));
    return number << shift;
  };
  std::vector<std::int64_t> list;
  for (const auto& part : split_list(text)) {
    const auto dots = part.find("..");
    const auto first = parse(part.substr(0, dots));
    const auto last = dots == std::string::npos ? first : parse(part.substr(dots + 2));
    for (auto bytes = first; bytes <= last; bytes *= 4) list.push_back(bytes / 4 * 4);
  }
  if (list.empty() || std::ranges::min(list) < 4)
    throw InvalidArgument(fmt::format("--bytes {}: sizes from 4 on, as 4KiB..64MiB", text));
  return list;
}

std::vector<Algorithm> parse_algorithms(const std::string& text) {
  return mapped<Algorithm>(split_list(text),
                           [](const auto& name) { return parallel::algorithm_from_string(name); });
}

/// Transports with measurable times. The simulated one has its time from a model.
std::vector<Transport> parse_transports(const std::string& text) {
  auto list = mapped<Transport>(split_list(text),
                                [](const auto& name) { return value_of<Transport>(name); });
  if (std::ranges::count(list, Transport::Simulated) > 0)
    throw InvalidArgument("must be of threads, mpi, nccl; simulated times are not measured");
  return list;
}

/// Lets thread `number` run on one processor alone, as long as there are enough of them.
void pin(int number, int threads) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < threads) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || number-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

std::vector<measure::AllReduceRow> measure(Communicator& communicator,
                                           const AllReduceOptions& options) {
  std::vector<measure::AllReduceRow> rows;
  for (const auto algorithm : parse_algorithms(options.algorithms)) {
    // Threads have no library. With several transports asked for, the others may.
    if (algorithm == Algorithm::Library && communicator.transport_name() == "threads" &&
        options.transports != "threads")
      continue;
    for (const auto bytes : parse_bytes(options.bytes))
      rows.push_back(measure::time_all_reduce(communicator, algorithm, bytes, options.repeats));
  }
  return rows;
}

std::vector<measure::AllReduceRow> on_threads(parallel::RankGroup& group,
                                              const AllReduceOptions& options) {
  std::vector<measure::AllReduceRow> rows;
  parallel::run_ranks(group, [&](Communicator& communicator) {
    pin(communicator.rank(), communicator.world_size());
    auto own = measure(communicator, options);
    if (communicator.rank() == 0) rows = std::move(own);
  });
  return rows;
}

/// Ranks that are threads of this process.
std::unique_ptr<parallel::RankGroup> open_group(Transport transport, int ranks,
                                                const AllReduceOptions& options) {
  const parallel::Seconds timeout(options.timeout_s);
  if (transport == Transport::Nccl) return parallel::open_nccl_group(ranks, timeout);
  return std::make_unique<parallel::ThreadGroup>(ranks, timeout);
}

page::Json row_json(const measure::AllReduceRow& row) {
  page::Json json = {{"transport", row.transport},
                     {"algorithm", row.algorithm},
                     {"ranks", row.ranks},
                     {"bytes", row.bytes}};
  json.update(measure::times_json(row.time, row.kind));
  json.update({{"algorithm_bandwidth", row.algorithm_bandwidth()},
               {"bus_bandwidth", row.bus_bandwidth()},
               {"right", row.right}});
  if (row.kind == TimeKind::Simulated)
    json.update({{"cycles", row.cycles}, {"arbiter_wait_cycles", row.arbiter_wait_cycles}});
  return json;
}

measure::AllReduceRow row_from(const page::Json& json) {
  return {.transport = json.at("transport"),
          .algorithm = json.at("algorithm"),
          .ranks = json.at("ranks"),
          .bytes = json.at("bytes"),
          .time = measure::times_from(json),
          .right = json.at("right")};
}

/// As one of the processes that mpirun started. Rank 0 has the rows.
std::vector<measure::AllReduceRow> on_this_process(const AllReduceOptions& options) {
  auto& session = parallel::MpiSession::of_process();
  std::vector<measure::AllReduceRow> rows;
  {
    Communicator communicator(session.transport(parallel::Seconds(options.timeout_s)));
    if (session.rank() == 0 && session.world_size() == 1)
      throw InvalidArgument("one process was started; start several: mpirun -np 2 triptych …");
    if (const char* place = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK"))
      pin(std::atoi(place), std::atoi(std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE")));
    rows = measure(communicator, options);
  }
  if (session.rank() != 0) rows.clear();
  return rows;
}

/// Starts the processes and reads the measurements of rank 0.
std::vector<measure::AllReduceRow> on_processes(int ranks, const AllReduceOptions& options) {
  const auto outcome = parallel::launch(
      {.ranks = ranks,
       .arguments = {"bench", "all-reduce", "--transport", "mpi", "--algorithm", options.algorithms,
                     "--bytes", options.bytes, "--repeats", std::to_string(options.repeats),
                     "--comm-timeout", fmt::format("{}", options.timeout_s), "--json"},
       .capture = true});
  if (outcome.exit_code != 0) throw CommError(outcome.verdict);
  std::vector<measure::AllReduceRow> rows;
  const auto json = page::Json::parse(outcome.output);
  for (const auto& row : json.at("results")) rows.push_back(row_from(row));
  return rows;
}

std::vector<measure::AllReduceRow> on_arrays(const AllReduceOptions& options) {
  if (options.transports != "threads" || options.repeats != 0)
    throw InvalidArgument(
        "arrays of a machine sum without a transport, in simulated time; leave out --transport and "
        "--repeats, or --machine");
  training::ExecutionConfig config;
  config.backend = "systolic";
  config.machine = options.machine;
  const auto machine = machines::array_of(config);
  std::vector<measure::AllReduceRow> rows;
  for (const auto ranks : parse_numbers(options.ranks))
    for (const auto algorithm : parse_algorithms(options.algorithms))
      for (const auto bytes : parse_bytes(options.bytes))
        rows.push_back(
            measure::simulate_all_reduce(machine, algorithm, static_cast<int>(ranks), bytes));
  return rows;
}

std::vector<measure::AllReduceRow> run(const AllReduceOptions& options) {
  if (!options.machine.empty()) return on_arrays(options);
  const bool started = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  std::vector<measure::AllReduceRow> rows;
  for (const auto transport : parse_transports(options.transports)) {
    if (transport == Transport::Mpi && started) return on_this_process(options);
    if (transport == Transport::Mpi && !parallel::mpi_missing().empty())
      throw UnsupportedError(parallel::mpi_missing());
    for (const auto ranks : parse_numbers(options.ranks)) {
      const auto count = static_cast<int>(ranks);
      auto part = transport == Transport::Mpi
                      ? on_processes(count, options)
                      : on_threads(*open_group(transport, count, options), options);
      rows.insert(rows.end(), part.begin(), part.end());
    }
  }
  return rows;
}

/// Rows of the same transport, algorithm and ranks stand together.
std::vector<std::span<const measure::AllReduceRow>> series(
    std::span<const measure::AllReduceRow> rows) {
  std::vector<std::span<const measure::AllReduceRow>> list;
  const auto same = [](const measure::AllReduceRow& a, const measure::AllReduceRow& b) {
    return a.transport == b.transport && a.algorithm == b.algorithm && a.ranks == b.ranks;
  };
  while (!rows.empty()) {
    std::size_t length = 1;
    while (length < rows.size() && same(rows[0], rows[length])) ++length;
    list.push_back(rows.first(length));
    rows = rows.subspan(length);
  }
  return list;
}

std::string gigabytes(double bytes_per_s) { return fmt::format("{:.2f}", bytes_per_s * 1e-9); }

void print_bandwidths(std::span<const measure::AllReduceRow> rows) {
  page::TextTable table({"transport", "algorithm", "ranks", "size", "median", "min", "max", "runs",
                         "algorithm GB/s", "bus GB/s", "sum"});
  for (const auto& row : rows) {
    table.add({row.transport, row.algorithm, fmt::format("{}", row.ranks),
               page::format_bytes(static_cast<double>(row.bytes)),
               page::format_seconds(row.time.median), page::format_seconds(row.time.min),
               page::format_seconds(row.time.max), fmt::format("{}", row.time.samples),
               gigabytes(row.algorithm_bandwidth()), gigabytes(row.bus_bandwidth()),
               row.right ? "right" : "WRONG"});
  }
  print_text("f32 sums; a time is the slowest rank's, {}; bandwidths as nccl-tests count\n",
             to_string(rows[0].kind));
  table.print();
  page::TextTable fits(
      {"transport", "algorithm", "ranks", "alpha", "1 / beta GB/s", "largest error %"});
  for (const auto& part : series(rows)) {
    if (part.size() < 2) continue;
    const auto fit = measure::fit_alpha_beta(part);
    fits.add({part[0].transport, part[0].algorithm, fmt::format("{}", part[0].ranks),
              page::format_seconds(fit.alpha_s), gigabytes(fit.bytes_per_s),
              fmt::format("{:.0f}", 100 * fit.error)});
  }
  if (std::ranges::max(series(rows), {}, &std::span<const measure::AllReduceRow>::size).size() < 2)
    return;
  print_text("\nseconds = alpha + bytes * beta, fitted:\n");
  fits.print();
}

/// The samples, and the line that is fitted to each series.
page::Chart chart_of(std::span<const measure::AllReduceRow> rows) {
  using page::Scale;
  page::Chart chart{.id = "all-reduce",
                    .title = "all-reduce of f32, and alpha + bytes * beta",
                    .form = page::ChartForm::Scatter};
  chart.x = {.label = "size", .unit = "byte", .scale = Scale::Log};
  chart.y = {.label = "time of the slowest rank, median", .unit = "s", .scale = Scale::Log};
  for (const auto& part : series(rows)) {
    page::ChartSeries one;
    one.name = fmt::format("{}, {}, {}", part[0].transport, part[0].algorithm,
                           counted(part[0].ranks, "rank"));
    one.kind = to_string(part[0].kind);
    one.colour = chart.series.size();
    const auto fit = measure::fit_alpha_beta(part);
    for (const auto& row : part) {
      const auto bytes = static_cast<double>(row.bytes);
      one.points.push_back({.x = bytes, .y = row.time.median});
      const double fitted = fit.alpha_s + bytes / fit.bytes_per_s;
      if (fitted > 0) one.line.emplace_back(bytes, fitted);
    }
    chart.series.push_back(std::move(one));
  }
  return chart;
}

/// The machine's own a[i] += b[i], which no sum in memory can beat by much.
void print_stream(std::span<const measure::AllReduceRow> rows) {
  const auto largest = std::ranges::max(rows, {}, &measure::AllReduceRow::bytes);
  const int threads =
      std::min<int>(largest.ranks, static_cast<int>(std::thread::hardware_concurrency()));
  const double stream = measure::add_stream_bytes_per_s(threads, largest.bytes);
  print_text(
      "\n{}: {} GB/s by a[i] += b[i] on {} each; a sum over n ranks in place reads and writes n "
      "times its size\n",
      counted(threads, "thread"), gigabytes(stream),
      page::format_bytes(static_cast<double>(largest.bytes)));
}

}  // namespace

Command add_all_reduce_bench(Command& bench, Context& context) {
  auto options = std::make_shared<AllReduceOptions>();
  auto command =
      bench.add_subcommand("all-reduce", "Measure sums over ranks: bandwidth and latency");
  command
      .add_option("--algorithm", options->algorithms,
                  "algorithms to compare. library is the transport's own")
      .check(read_by(parse_algorithms, "ring, direct, halving-doubling, tree, library"));
  command
      .add_option("--transport", options->transports,
                  "connections to compare. mpi starts processes, nccl needs a GPU for each rank")
      .value("NAMES")
      .check(read_by(parse_transports, "threads, mpi, nccl"));
  command.add_option("--ranks", options->ranks, "numbers of ranks, such as 2,4")
      .check(numbers_to(training::most_of("--ranks")));
  command.add_option("--bytes", options->bytes, "sizes, such as 4KiB..256MiB (by factors of four)")
      .check(read_by(parse_bytes, "4..16GiB"));
  command.add_option("--repeats", options->repeats, "samples (0: about half a second, at least 7)")
      .check(whole_from(0, 100000));
  add_run_option(command, "--comm-timeout", options->timeout_s);
  add_run_option(command, "--machine", options->machine,
                 "machine with a vector unit and several arrays, which sum instead: a file");
  command.add_option("--plot", options->plot, "SVG picture of times and fitted lines")
      .output_file();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    if (!options->plot.empty()) require_writable(options->plot);
    const auto rows = run(*options);
    if (rows.empty()) return;  // another rank than 0
    if (std::ranges::count(rows, false, &measure::AllReduceRow::right) > 0)
      context.exit_code = kCheckFailed;
    if (!options->plot.empty()) write_own_file(options->plot, page::to_svg(chart_of(rows)));
    if (context.json) {
      page::Json results = page::Json::array();
      for (const auto& row : rows) results.push_back(row_json(row));
      print_document("bench all-reduce", std::move(results));
      return;
    }
    print_bandwidths(rows);
    if (options->machine.empty() && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
      print_stream(rows);
  });
  return command;
}

}  // namespace triptych::app
