// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/debugger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.h"

namespace triptych::kernels {
namespace {

using cuda::plain::LaneEvent;
using cuda::plain::LineTrace;

/// True for "a/my.cu" where "my.cu" or "a/my.cu" is asked for.
bool is_file(const std::string& file, const std::string& asked) {
  return file == asked || file.ends_with("/" + asked);
}

std::string name_of(const std::string& file) { return std::filesystem::path(file).filename(); }

}  // namespace

/// Steps that stay on a line are one stop, up to the next turn of a loop.
Debugger::Debugger(const LineTrace& trace) : trace_(trace) {
  std::set<const cuda::plain::CodeLine*> seen;
  for (std::size_t i = 0; i < trace.steps().size(); ++i) {
    const auto& step = trace.steps()[i];
    const auto lane = static_cast<unsigned>(std::countr_zero(step.mask));
    const auto& event = trace.events(lane)[step.next[lane]];
    const DebugStop stop = {i, step.mask, event.line->file, event.line->line, trace.depth(event)};
    const bool stays = !stops_.empty() && stops_.back().line == stop.line &&
                       stops_.back().mask == stop.mask && stops_.back().depth == stop.depth &&
                       stops_.back().file == stop.file;
    if (!stays) seen.clear();
    if (!seen.insert(event.line).second) seen = {event.line};
    if (!stays || seen.size() == 1) stops_.push_back(stop);
  }
}

void Debugger::add_breakpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto number = text.substr(colon == text.npos ? 0 : colon + 1);
  unsigned line = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), line);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) {
    throw InvalidArgument(
        fmt::format("a breakpoint is a line, such as 12 or my.cu:12, not \"{}\"", text));
  }
  const auto asked = colon == text.npos ? "" : text.substr(0, colon);
  const auto code = trace_.places().own_lines();
  std::set<std::string> names;
  bool knows_file = false;
  unsigned next = 0;
  for (const auto& [file, at] : code) {
    names.insert(name_of(file));
    if (!asked.empty() && !is_file(file, asked)) continue;
    knows_file = true;
    if (at == line) return breakpoints_.push_back({file, line});
    if (at > line && (next == 0 || at < next)) next = at;
  }
  if (!knows_file) {
    throw InvalidArgument(fmt::format("no code of the kernels is from a file \"{}\"; there is {}",
                                      asked, fmt::join(names, ", ")));
  }
  throw InvalidArgument(fmt::format(
      "line {} has no code of a kernel{}", line,
      next == 0 ? "; nor has any line behind it" : fmt::format("; the next one is {}", next)));
}

bool Debugger::is_breakpoint(const DebugStop& stop) const {
  return std::ranges::any_of(breakpoints_, [&](const Breakpoint& each) {
    return each.line == stop.line && each.file == stop.file;
  });
}

bool Debugger::resume() {
  if (has_begun_ && !at_end()) ++at_;
  has_begun_ = true;
  while (!at_end() && !is_breakpoint(here())) ++at_;
  return !at_end();
}

bool Debugger::step() {
  has_begun_ = true;
  if (!at_end()) ++at_;
  return !at_end();
}

bool Debugger::next() {
  if (at_end()) return false;
  const auto depth = here().depth;
  do {
    step();
  } while (!at_end() && here().depth > depth);
  return !at_end();
}

bool Debugger::back() {
  if (at_ == 0) return false;
  --at_;
  return true;
}

DebugLane Debugger::lane(unsigned number) const {
  const auto& events = trace_.events(number);
  if (events.empty()) return {};
  if (at_end()) return {DebugLane::State::Ended, &events.back()};
  const auto next = trace_.steps()[here().step].next[number];
  if (next >= events.size()) return {DebugLane::State::Ended, &events.back()};
  const bool is_active = (here().mask >> number & 1U) != 0;
  return {is_active ? DebugLane::State::Active : DebugLane::State::Waiting, &events[next]};
}

LaneView Debugger::view(unsigned number) const {
  const auto step = at_end() ? trace_.steps().size() : here().step;
  return {trace_, number, step, *lane(number).event};
}

}  // namespace triptych::kernels
