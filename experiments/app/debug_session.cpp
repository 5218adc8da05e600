// Commands of `triptych kernel debug` on the recorded lines of a warp, and their output as text or
// JSON.
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <sstream>
#include <type_traits>
#include <vector>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/kernel_command.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/kernels/debugger.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

using State = kernels::DebugLane::State;

constexpr unsigned kSourceLines = 4;  // before and behind the one of a stop
constexpr std::size_t kMostRanges = 4;
constexpr std::int64_t kMostRepeats = 1000000;

std::string name_of(const std::string& file) { return std::filesystem::path(file).filename(); }

page::Json value_json(const kernels::LaneView& lane, const kernels::DebugValue& value) {
  if (!lane.has_parts(value)) {
    return std::visit([](const auto& each) { return page::Json(each); }, lane.scalar(value));
  }
  page::Json json = lane.is_array(value) ? page::Json::array() : page::Json::object();
  for (const auto& [name, each] : lane.parts(value)) {
    if (lane.is_array(value)) {
      json.push_back(value_json(lane, each));
    } else {
      json[name] = value_json(lane, each);
    }
  }
  return json;
}

std::string index_text(const cuda::emulation::Dim3& at) {
  return fmt::format("({}, {}, {})", at.x, at.y, at.z);
}

cuda::emulation::Dim3 thread_of(const cuda::plain::LineTrace& trace, unsigned lane) {
  return cuda::emulation::index_in(trace.block_dim(),
                                   trace.choice().warp * cuda::emulation::kWarp + lane);
}

/// "0-15, 17", or for many ranges the mask "0x55555555".
std::string lanes_text(std::uint32_t mask) {
  std::vector<std::string> ranges;
  for (unsigned lane = 0; lane < cuda::emulation::kWarp; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    const auto first = lane;
    while (lane < 31 && (mask >> (lane + 1) & 1U) != 0) ++lane;
    ranges.push_back(first == lane ? std::to_string(lane) : fmt::format("{}-{}", first, lane));
  }
  return ranges.size() > kMostRanges ? fmt::format("{:#010x}", mask)
                                     : fmt::format("{}", fmt::join(ranges, ", "));
}

const char* state_text(State state) {
  return state == State::Active ? "active" : state == State::Waiting ? "waits" : "ended";
}

class DebugSession {
 public:
  /// `json`: prints nothing, and collects stops and values.
  DebugSession(const cuda::plain::LineTrace& trace, bool json)
      : debugger_(trace), trace_(trace), json_(json) {}

  void add_breakpoint(const std::string& text);
  /// Goes to the first breakpoint, or without any to the warp's first line.
  void begin();
  /// False: the command ends the session. Throws InvalidArgument for one that does not exist or
  /// cannot be carried out.
  bool execute(const std::string& command);
  /// {"lines", "stops", "values"}.
  page::Json document() const;

 private:
  friend struct DebugCommand;

  void report();
  void report_end() const;
  void show_lanes(const std::string& names) const;
  void show_value(const std::string& expression);
  void show_calls() const;
  void show_source() const;
  void show_commands() const;
  void repeat(const std::string& count, const std::function<bool()>& move);

  page::Json lanes_json() const;
  /// Lanes whose variables a command looks at: those that begin the line, or at the end all.
  std::vector<unsigned> lanes_in_view() const;

  kernels::Debugger debugger_;
  const cuda::plain::LineTrace& trace_;
  bool json_;
  bool has_breakpoints_ = false;
  page::Json stops_ = page::Json::array(), values_ = page::Json::array();
};

/// A command of the debugger, by its name or its letter.
struct DebugCommand {
  char letter;  ///< 0: none
  const char *name, *arguments, *help;
  void (*run)(DebugSession& session, const std::string& rest);

  static const std::vector<DebugCommand>& all();
};

const std::vector<DebugCommand>& DebugCommand::all() {
  static const std::vector<DebugCommand> list = {
      {'b', "break", "[FILE:]LINE", "add a breakpoint",
       [](DebugSession& s, const std::string& rest) { s.add_breakpoint(rest); }},
      {'c', "continue", "[N]", "go on to the next breakpoint",
       [](DebugSession& s, const std::string& rest) {
         s.repeat(rest, [&] { return s.debugger_.resume(); });
       }},
      {'s', "step", "[N]", "go to the next line that lanes of the warp begin",
       [](DebugSession& s, const std::string& rest) {
         s.repeat(rest, [&] { return s.debugger_.step(); });
       }},
      {'n', "next", "[N]", "the same, without the lines of called functions",
       [](DebugSession& s, const std::string& rest) {
         s.repeat(rest, [&] { return s.debugger_.next(); });
       }},
      {0, "back", "[N]", "go back to the line before",
       [](DebugSession& s, const std::string& rest) {
         s.repeat(rest, [&] { return s.debugger_.back(); });
       }},
      {'l', "lanes", "[NAME...]", "show the lanes and their variables",
       [](DebugSession& s, const std::string& rest) { s.show_lanes(rest); }},
      {'p', "print", "EXPRESSION", "show a variable, element or member: sum, tile[3], p->a, *p",
       [](DebugSession& s, const std::string& rest) { s.show_value(rest); }},
      {'w', "where", "", "show the calls that led here",
       [](DebugSession& s, const std::string&) { s.show_calls(); }},
      {0, "list", "", "show the source around the line",
       [](DebugSession& s, const std::string&) { s.show_source(); }},
      {'h', "help", "", "list the commands",
       [](DebugSession& s, const std::string&) { s.show_commands(); }},
      {'q', "quit", "", "end the session", nullptr}};
  return list;
}

void DebugSession::add_breakpoint(const std::string& text) {
  debugger_.add_breakpoint(text);
  has_breakpoints_ = true;
}

void DebugSession::begin() {
  if (has_breakpoints_) debugger_.resume();
  report();
}

bool DebugSession::execute(const std::string& command) {
  std::istringstream words(command);
  std::string name, rest;
  words >> name;
  std::getline(words >> std::ws, rest);
  std::vector<std::string> names;
  for (const auto& each : DebugCommand::all()) {
    names.emplace_back(each.name);
    const bool is_letter = name.size() == 1 && name[0] == each.letter;
    if (name != each.name && !is_letter) continue;
    if (each.run == nullptr) return false;
    each.run(*this, rest);
    return true;
  }
  throw InvalidArgument(
      fmt::format("the debugger has no command \"{}\"; it has {}", name, fmt::join(names, ", ")));
}

void DebugSession::repeat(const std::string& count, const std::function<bool()>& move) {
  std::int64_t times = 1;
  if (!count.empty()) {
    const auto number = read_number(count);
    if (!number || *number < 1 || *number > kMostRepeats) {
      throw InvalidArgument(
          fmt::format("a number of lines is from 1 to {}, not \"{}\"", kMostRepeats, count));
    }
    times = static_cast<std::int64_t>(*number);
  }
  while (times-- > 0 && move()) {
  }
  report();
}

std::vector<unsigned> DebugSession::lanes_in_view() const {
  std::vector<unsigned> lanes;
  for (unsigned lane = 0; lane < trace_.lanes(); ++lane) {
    const auto at = debugger_.lane(lane);
    const bool shows = debugger_.at_end() ? at.event != nullptr : at.state == State::Active;
    if (shows) lanes.push_back(lane);
  }
  return lanes;
}

void DebugSession::report() {
  if (json_) {
    page::Json stop = {{"position", debugger_.position()}, {"ended", debugger_.at_end()}};
    if (!debugger_.at_end()) {
      const auto& here = debugger_.here();
      stop.update({{"file", here.file}, {"line", here.line}, {"active_lanes", here.mask}});
    }
    stop["lanes"] = lanes_json();
    stops_.push_back(std::move(stop));
    return;
  }
  if (debugger_.at_end()) return report_end();
  const auto& here = debugger_.here();
  print_text("{}:{}, block {}, warp {}: {} of {} active ({})\n", name_of(here.file), here.line,
             index_text(trace_.choice().block), trace_.choice().warp, std::popcount(here.mask),
             counted(trace_.lanes(), "lane"), lanes_text(here.mask));
  print_text("  {} | {}\n", here.line, line_of_source(here.file, here.line));
}

void DebugSession::report_end() const {
  print_text("{} of block {} has ended after {}{}\n", fmt::format("warp {}", trace_.choice().warp),
             index_text(trace_.choice().block), counted(std::ssize(debugger_.stops()), "line"),
             trace_.is_cut() ? ", the most that are recorded" : "");
}

page::Json DebugSession::lanes_json() const {
  page::Json list = page::Json::array();
  for (unsigned lane = 0; lane < trace_.lanes(); ++lane) {
    const auto at = debugger_.lane(lane);
    const auto thread = thread_of(trace_, lane);
    page::Json json = {{"lane", lane},
                       {"thread", {thread.x, thread.y, thread.z}},
                       {"state", state_text(at.state)}};
    if (at.event != nullptr) {
      const auto view = debugger_.view(lane);
      page::Json variables = page::Json::object();
      for (const auto& name : view.names()) {
        variables[name] = value_json(view, view.evaluate(name));
      }
      json.update({{"file", at.event->line->file}, {"line", at.event->line->line}});
      json["variables"] = std::move(variables);
    }
    list.push_back(std::move(json));
  }
  return list;
}

/// Variables that are equal in all active lanes stand above the table.
void DebugSession::show_lanes(const std::string& names) const {
  if (json_) return;  // each stop has them
  std::istringstream words(names);
  std::vector<std::string> columns{std::istream_iterator<std::string>(words), {}};
  const auto lanes = lanes_in_view();
  const bool is_chosen = !columns.empty();
  if (!is_chosen && !lanes.empty()) columns = debugger_.view(lanes.front()).names();
  const auto text_of = [&](unsigned lane, const std::string& name) -> std::string {
    if (debugger_.lane(lane).event == nullptr) return "";
    const auto view = debugger_.view(lane);
    const auto known = view.names();
    if (!is_chosen && std::ranges::count(known, name) == 0) return "";
    if (std::ranges::count(lanes, lane) != 0) return view.noted_text(view.evaluate(name));
    try {
      return view.noted_text(view.evaluate(name));
    } catch (const InvalidArgument&) {
      return "";  // a lane that waits in other code
    }
  };
  std::vector<std::string> header = {"lane", "thread", "state", "line"}, shown;
  for (const auto& name : columns) {
    const auto first = lanes.empty() ? "" : text_of(lanes.front(), name);
    const bool is_equal = !is_chosen && std::ranges::all_of(lanes, [&](unsigned lane) {
      return text_of(lane, name) == first;
    });
    if (is_equal) print_text("  {} = {} in each\n", name, first);
    if (!is_equal) shown.push_back(name);
  }
  header.insert(header.end(), shown.begin(), shown.end());
  page::TextTable table(std::move(header));
  for (unsigned lane = 0; lane < trace_.lanes(); ++lane) {
    const auto at = debugger_.lane(lane);
    std::vector<std::string> row = {
        std::to_string(lane), index_text(thread_of(trace_, lane)), state_text(at.state),
        at.event == nullptr ? "-" : std::to_string(at.event->line->line)};
    for (const auto& name : shown) row.push_back(text_of(lane, name));
    table.add(std::move(row));
  }
  table.print();
}

void DebugSession::show_value(const std::string& expression) {
  page::Json lanes = page::Json::array();
  std::vector<std::pair<std::string, std::uint32_t>> texts;  // with the lanes that have it
  std::string reason;                                        // why a lane has no value
  bool has_value = false, has_atomics = false;
  for (const auto lane : lanes_in_view()) {
    const auto view = debugger_.view(lane);
    std::string text = "none";
    page::Json json;
    try {
      const auto value = view.evaluate(expression);
      text = view.noted_text(value);
      json = value_json(view, value);
      has_atomics = has_atomics || view.has_atomics(value);
    } catch (const InvalidArgument& error) {
      if (reason.empty()) reason = error.what();
    }
    has_value = has_value || !json.is_null();
    lanes.push_back({{"lane", lane}, {"value", std::move(json)}});
    const auto known =
        std::ranges::find(texts, text, &std::pair<std::string, std::uint32_t>::first);
    if (known == texts.end()) {
      texts.emplace_back(text, 1U << lane);
    } else {
      known->second |= 1U << lane;
    }
  }
  if (!has_value && !reason.empty()) throw InvalidArgument(reason);
  values_.push_back({{"expression", expression},
                     {"position", debugger_.position()},
                     {"atomic", has_atomics},
                     {"lanes", std::move(lanes)}});
  if (json_) return;
  for (const auto& [text, mask] : texts) {
    print_text("  {} = {} ({}{})\n", expression, text,
               std::popcount(mask) == 1 ? "lane " : "lanes ", lanes_text(mask));
  }
}

void DebugSession::show_calls() const {
  const auto lanes = lanes_in_view();
  if (json_ || lanes.empty()) return;
  const auto& event = *debugger_.lane(lanes.front()).event;
  const auto* function = event.line->function;
  print_text("  {}:{} in {}\n", name_of(event.line->file), event.line->line,
             function == nullptr ? "?" : function->name);
  for (const auto& place : trace_.calls(event)) {
    print_text("  called at {}:{}: {}\n", name_of(place.file_name()), place.line(),
               line_of_source(place.file_name(), place.line()));
  }
}

void DebugSession::show_source() const {
  if (json_ || debugger_.at_end()) return;
  const auto& here = debugger_.here();
  const auto first = here.line > kSourceLines ? here.line - kSourceLines : 1;
  for (auto line = first; line <= here.line + kSourceLines; ++line) {
    print_text("{} {} | {}\n", line == here.line ? ">" : " ", line,
               line_of_source(here.file, line));
  }
}

void DebugSession::show_commands() const {
  if (json_) return;
  for (const auto& each : DebugCommand::all()) {
    print_text("  {:<9} {:<12} {}\n", each.name, each.arguments, each.help);
  }
}

page::Json DebugSession::document() const {
  return {{"lines", debugger_.stops().size()},
          {"complete", !trace_.is_cut()},
          {"stops", stops_},
          {"values", values_}};
}

/// Commands from a terminal until the end of the input.
void converse(DebugSession& session) {
  print_text("(debug) ");
  flush_output();
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (!line.empty() && !session.execute(line)) return;
    } catch (const InvalidArgument& error) {
      print_text("{}\n", error.what());
    }
    print_text("(debug) ");
    flush_output();
  }
}

void run_commands(const DebugScript& script, DebugSession& session, bool json) {
  if (!script.commands.empty()) {
    for (const auto& command : script.commands) {
      if (!session.execute(command)) return;
    }
    return;
  }
  if (!json && script.lines == 0 && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
    return converse(session);
  }
  session.execute("lanes");
  for (std::int64_t i = 0; i < script.lines; ++i) {
    session.execute("step");
    session.execute("lanes");
  }
}

}  // namespace

page::Json run_debug_session(const cuda::plain::LineTrace& trace, const DebugScript& script,
                             bool json) {
  DebugSession session(trace, json);
  for (const auto& each : script.breakpoints) session.add_breakpoint(each);
  session.begin();
  run_commands(script, session, json);
  return session.document();
}

}  // namespace triptych::app
