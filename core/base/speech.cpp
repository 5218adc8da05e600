// SPDX-License-Identifier: Apache-2.0
#include "core/base/speech.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "core/base/file_text.h"

namespace triptych {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

std::atomic<Loudness> loudness_now = Loudness::Usual;
std::atomic<Colours> colours_now = Colours::Auto;
std::atomic<bool> bar_is_drawn = false;

bool shows_colours(std::FILE* stream) {
  switch (colours_now.load()) {
    case Colours::Always:
      return true;
    case Colours::Never:
      return false;
    case Colours::Auto:
      break;
  }
  const auto* none = std::getenv("NO_COLOR");
  if (none != nullptr && *none != '\0') return false;
  const auto* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return !dumb && isatty(fileno(stream)) != 0;
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::Bold:
      return "1";
    case Style::Red:
      return "31";
    case Style::Green:
      return "32";
    case Style::Yellow:
      return "33";
  }
  return "0";
}

/// Names and texts of files are part of what is said.
void put_line(std::string_view line, std::string_view head = "") {
  erase_bar();
  put_error(fmt::format("{}{}\n", head, without_control_characters(line)));
}

}  // namespace

void set_loudness(Loudness loudness) { loudness_now = loudness; }

void set_colours(Colours colours) { colours_now = colours; }

void say(std::string_view line) {
  if (loudness_now != Loudness::Quiet) put_line(line);
}

void say_detail(std::string_view line) {
  if (loudness_now == Loudness::Verbose) put_line(line);
}

void say_note(std::string_view note) {
  if (note.empty()) return;
  put_line(note, styled(stderr, Style::Yellow, "NOTE:") + " ");
}

void put_error(std::string_view text) {
  [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), stderr);
}

bool shows_bars() { return loudness_now != Loudness::Quiet && isatty(STDERR_FILENO) != 0; }

void draw_bar(std::string_view bar) {
  if (!shows_bars()) return;
  bar_is_drawn = true;
  put_error(fmt::format("{}{}", kClearLine, bar));
  std::fflush(stderr);
}

void erase_bar() {
  if (bar_is_drawn.exchange(false)) put_error(kClearLine);
}

std::string styled(std::FILE* stream, Style style, std::string_view text) {
  if (!shows_colours(stream)) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

}  // namespace triptych
