// SPDX-License-Identifier: Apache-2.0
#include "core/base/console.h"

#include <fmt/core.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/terminal.h"

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
  return takes_escapes(stream);
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

/// The pieces for `stream`, escaped, with codes for their styles where it shows colours.
std::string text_for(std::FILE* stream, std::initializer_list<Piece> pieces) {
  std::string text;
  for (const auto& [piece, style] : pieces) {
    const bool coloured = style && shows_colours(stream);
    text += coloured ? fmt::format("\x1b[{}m{}\x1b[0m", code_of(*style), escaped(piece))
                     : escaped(piece);
  }
  return text;
}

/// A terminal that has closed hears nothing, which is no error.
void put(std::string_view text) {
  [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), stderr);
}

void put(std::initializer_list<Piece> pieces) {
  erase_bar();
  put(text_for(stderr, pieces));
}

[[noreturn]] void throw_not_written(int error) {
  throw IoError(fmt::format(
      "cannot write to standard output: {}",
      error == 0 ? "an earlier part was not written" : std::generic_category().message(error)));
}

}  // namespace

void set_loudness(Loudness loudness) { loudness_now = loudness; }

void set_colours(Colours colours) { colours_now = colours; }

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_not_written(errno);
}

void print_pieces(std::initializer_list<Piece> pieces) {
  const auto text = text_for(stdout, pieces);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_not_written(errno);
}

void say(std::string_view line) {
  if (loudness_now != Loudness::Quiet) put({{line}, {"\n"}});
}

void say_detail(std::string_view line) {
  if (loudness_now == Loudness::Verbose) put({{line}, {"\n"}});
}

void say_note(std::string_view note) {
  if (!note.empty()) put({{"NOTE:", Style::Yellow}, {" "}, {note}, {"\n"}});
}

void say_error(std::string_view what) {
  put({{"triptych:", Style::Red}, {" "}, {shortened(what)}, {"\n"}});
}

void say_always(std::string_view text) { put({{text}}); }

bool shows_bars() { return loudness_now != Loudness::Quiet && takes_escapes(stderr); }

void draw_bar(std::initializer_list<Piece> bar) {
  if (!shows_bars()) return;
  bar_is_drawn = true;
  put(fmt::format("{}{}", kClearLine, text_for(stderr, bar)));
  std::fflush(stderr);
}

void erase_bar() {
  if (bar_is_drawn.exchange(false)) put(kClearLine);
}

}  // namespace triptych
