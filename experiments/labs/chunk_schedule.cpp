// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/chunk_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "experiments/labs/formula.h"

namespace triptych::labs {
namespace {

using parallel::BufferRange;
using parallel::Memory;

constexpr int kMostSteps = 1000;
constexpr std::size_t kMostLines = 200, kMostMessages = 50'000;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// A `send` line, taken apart. Formulas as they were written.
struct SendLine {
  int line = 0;
  std::string_view chunk, to, condition;
  bool adds = false;
};

struct Phase {
  int line = 0;
  std::string_view steps;
  std::vector<SendLine> sends;
};

/// Text that lies behind `word` in `text`, which is cut off before it. Nothing without the word.
std::optional<std::string_view> cut_behind(std::string_view& text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = text.substr(at + word.size());
  text = trimmed(text.substr(0, at));
  return trimmed(rest);
}

[[noreturn]] void fail(int line, const std::string& why) {
  throw InvalidArgument(fmt::format("line {}: {}", line, why));
}

SendLine read_send(std::string_view text, int number) {
  constexpr auto form = "a line is \"send CHUNK to RANK add\" or \"... replace\", with \"if ...\"";
  SendLine line;
  line.line = number;
  line.condition = cut_behind(text, " if ").value_or("1");
  const auto to = cut_behind(text, " to ");
  if (!to) fail(number, fmt::format("says not to whom; {}", form));
  line.chunk = text;
  line.adds = to->ends_with(" add");
  if (!line.adds && !to->ends_with(" replace"))
    fail(number, fmt::format("says not what the receiver does; {}", form));
  line.to = trimmed(to->substr(0, to->rfind(' ')));
  return line;
}

std::vector<Phase> read_phases(std::string_view text) {
  std::vector<Phase> phases;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (++number > static_cast<int>(kMostLines)) fail(number, "a schedule of more than 200 lines");
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.starts_with("steps ")) {
      phases.push_back({.line = number, .steps = trimmed(line.substr(6)), .sends = {}});
    } else if (line.starts_with("send ")) {
      if (phases.empty()) fail(number, "stands before the first \"steps\" line");
      phases.back().sends.push_back(read_send(trimmed(line.substr(5)), number));
    } else {
      fail(number,
           fmt::format("\"{}\" begins with neither \"steps\" nor \"send\"{}", line.substr(0, 40),
                       line.starts_with("//") ? "; a comment begins with #" : ""));
    }
  }
  if (phases.empty()) throw InvalidArgument("the schedule has no \"steps\" line");
  return phases;
}

/// The whole number from 0 to `limit` - 1 that a formula gives.
int index_of(std::string_view formula, const Variables& variables, int limit,
             std::string_view what) {
  const double value = evaluate(formula, variables);
  if (value >= 0 && value < limit && value == static_cast<int>(value))
    return static_cast<int>(value);
  throw InvalidArgument(
      fmt::format("\"{}\" is {}, and {} are 0 to {}", formula, value, what, limit - 1));
}

std::optional<ChunkMessage> message_of(const SendLine& line, const Variables& variables,
                                       int world_size) {
  if (evaluate(line.condition, variables) == 0) return std::nullopt;
  ChunkMessage message = {.from = static_cast<int>(variables.at("r")), .adds = line.adds};
  message.chunk =
      line.chunk == "all" ? kAllChunks : index_of(line.chunk, variables, world_size, "chunks");
  message.to = index_of(line.to, variables, world_size, "ranks");
  if (message.to == message.from) throw InvalidArgument("a rank sends to itself");
  return message;
}

ChunkStep step_of(const Phase& phase, int step, int world_size) {
  ChunkStep messages;
  for (int rank = 0; rank < world_size; ++rank) {
    for (const auto& line : phase.sends) {
      try {
        const auto message =
            message_of(line, {{"N", world_size}, {"r", rank}, {"s", step}}, world_size);
        if (message) messages.push_back(*message);
      } catch (const InvalidArgument& error) {
        fail(line.line,
             fmt::format("{} (N = {}, r = {}, s = {})", error.what(), world_size, rank, step));
      }
    }
  }
  return messages;
}

Range range_of(const ChunkMessage& message, int world_size, std::int64_t elements) {
  const Range all = {0, elements};
  return message.chunk == kAllChunks ? all : parallel::part_of(all, message.chunk, world_size);
}

/// A step of one rank: it sends, receives into scratch memory, and then copies to the destination.
/// So a rank sends the content from before the step.
void add_step(parallel::ScheduleBuilder& builder, const ChunkStep& step, int rank, int world_size,
              std::int64_t elements) {
  for (const auto& each : step) {
    if (each.from == rank)
      builder.send(each.to, {Memory::Data, range_of(each, world_size, elements)});
  }
  std::int64_t used = 0;
  for (const auto& each : step) {
    if (each.to != rank) continue;
    const auto range = range_of(each, world_size, elements);
    const BufferRange scratch = {Memory::Scratch, {used, used + range.size()}};
    used += range.size();
    builder.receive(each.from, scratch);
    if (each.adds) {
      builder.add({Memory::Data, range}, scratch);
    } else {
      builder.copy({Memory::Data, range}, scratch);
    }
  }
}

/// A rank's contribution to a chunk.
struct Contribution {
  int times = 0;             ///< that it is in there
  std::size_t replaced = 0;  ///< the last step that took it out, from 1. 0: none did
};
/// [rank][chunk][contributor].
using Contributions = std::vector<std::vector<std::vector<Contribution>>>;

/// `number` counts steps from 1.
void deliver(Contributions& held, const ChunkStep& step, std::size_t number) {
  const auto before = held;
  for (const auto& each : step) {
    const auto to = static_cast<std::size_t>(each.to), from = static_cast<std::size_t>(each.from);
    for (std::size_t chunk = 0; chunk < held.size(); ++chunk) {
      if (each.chunk != kAllChunks && static_cast<std::size_t>(each.chunk) != chunk) continue;
      auto& target = held[to][chunk];
      const auto& sent = before[from][chunk];
      for (std::size_t i = 0; i < target.size(); ++i) {
        if (!each.adds && target[i].times > 0 && sent[i].times == 0) target[i].replaced = number;
        target[i].times =
            each.adds ? std::min(target[i].times + sent[i].times, 1000) : sent[i].times;
      }
    }
  }
}

/// "0, 1 (2 times)": the contributions in a chunk, by rank.
std::string names_of(const std::vector<Contribution>& chunk) {
  std::vector<std::string> parts;
  for (std::size_t rank = 0; rank < chunk.size(); ++rank) {
    const int times = chunk[rank].times;
    if (times == 1) parts.push_back(fmt::format("{}", rank));
    if (times > 1) parts.push_back(fmt::format("{} ({} times)", rank, times));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "; that of rank 1 was there until step 2 replaced it", for the first missing contribution that
/// was present earlier.
std::string replaced_in(const std::vector<Contribution>& chunk, std::size_t steps) {
  for (std::size_t rank = 0; rank < chunk.size(); ++rank)
    if (chunk[rank].times == 0 && chunk[rank].replaced > 0)
      return fmt::format("; that of rank {} was there until step {} of all {} replaced it", rank,
                         chunk[rank].replaced, steps);
  return {};
}

}  // namespace

std::vector<ChunkStep> read_chunk_schedule(std::string_view text, int world_size) {
  std::vector<ChunkStep> steps;
  std::size_t messages = 0;
  for (const auto& phase : read_phases(text)) {
    double count = 0;
    try {
      count = evaluate(phase.steps, {{"N", world_size}});
    } catch (const InvalidArgument& error) {
      fail(phase.line, error.what());
    }
    if (!(count >= 0) || count > kMostSteps || count != static_cast<int>(count))
      fail(phase.line, fmt::format("\"{}\" is {} for N = {}; a phase has 0 to {} steps",
                                   phase.steps, count, world_size, kMostSteps));
    for (int step = 0; step < static_cast<int>(count); ++step) {
      steps.push_back(step_of(phase, step, world_size));
      messages += steps.back().size();
      if (messages > kMostMessages)
        fail(phase.line, fmt::format("more than {} messages in all", kMostMessages));
    }
  }
  return steps;
}

std::vector<parallel::Schedule> to_schedules(const std::vector<ChunkStep>& steps, int world_size,
                                             std::int64_t elements) {
  std::vector<parallel::Schedule> schedules;
  for (int rank = 0; rank < world_size; ++rank) {
    parallel::ScheduleBuilder builder;
    for (const auto& step : steps) add_step(builder, step, rank, world_size, elements);
    schedules.push_back(builder.finish());
  }
  return schedules;
}

std::vector<std::vector<float>> run_on(const std::vector<ChunkStep>& steps,
                                       std::vector<std::vector<float>> buffers) {
  const auto world_size = static_cast<int>(buffers.size());
  const auto elements = static_cast<std::int64_t>(buffers.front().size());
  for (const auto& step : steps) {
    const auto before = buffers;
    for (const auto& each : step) {
      const auto range = range_of(each, world_size, elements);
      for (auto i = range.begin; i < range.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float sent = before[static_cast<std::size_t>(each.from)][at];
        float& target = buffers[static_cast<std::size_t>(each.to)][at];
        target = each.adds ? target + sent : sent;
      }
    }
  }
  return buffers;
}

std::vector<std::vector<std::int64_t>> bytes_by_link(const std::vector<ChunkStep>& steps,
                                                     int world_size, std::int64_t elements) {
  const auto ranks = static_cast<std::size_t>(world_size);
  std::vector<std::vector<std::int64_t>> bytes(ranks, std::vector<std::int64_t>(ranks));
  for (const auto& step : steps) {
    for (const auto& each : step) {
      bytes[static_cast<std::size_t>(each.from)][static_cast<std::size_t>(each.to)] +=
          range_of(each, world_size, elements).size() * static_cast<std::int64_t>(sizeof(float));
    }
  }
  return bytes;
}

std::string first_wrong_sum(const std::vector<ChunkStep>& steps, int world_size) {
  const auto ranks = static_cast<std::size_t>(world_size);
  Contributions held(
      ranks, std::vector<std::vector<Contribution>>(ranks, std::vector<Contribution>(ranks)));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (auto& chunk : held[rank]) chunk[rank].times = 1;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) deliver(held, steps[i], i + 1);
  std::string first;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t chunk = 0; chunk < ranks; ++chunk) {
      const auto& contributions = held[rank][chunk];
      if (std::ranges::all_of(contributions, [](const auto& each) { return each.times == 1; }))
        continue;
      const auto replaced = replaced_in(contributions, steps.size());
      if (!first.empty() && replaced.empty()) continue;
      first = fmt::format(
          "with {} ranks, after the last step, chunk {} of rank {} holds contributions of rank {}, "
          "and should hold that of each rank once{}",
          world_size, chunk, rank, names_of(contributions), replaced);
      if (!replaced.empty()) return first;
    }
  }
  return first;
}

}  // namespace triptych::labs
