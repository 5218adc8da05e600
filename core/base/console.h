// The one place that prints: results on standard output, messages on standard error. Text of others
// (names, files, programs) arrives escaped (file_text.h). No other file makes colours or bars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/choice.h"

namespace triptych {

/// How much the program prints in addition to its results.
enum class Loudness : std::uint8_t {
  Quiet,    ///< notes and errors
  Usual,    ///< and the progress, with a bar on a terminal
  Verbose,  ///< and its details
};

enum class Colours : std::uint8_t {
  Auto,  ///< on a terminal that is not dumb, unless NO_COLOR is set (no-color.org)
  Always,
  Never,
};

/// Both hold for the whole process.
void set_loudness(Loudness loudness);
void set_colours(Colours colours);

enum class Style : std::uint8_t { Bold, Red, Green, Yellow };

/// A part of a line, in a style where colours are shown.
struct Piece {
  std::string_view text;
  std::optional<Style> style = {};
};

/// Writes to standard output. Throws IoError when it cannot be written.
void print_pieces(std::initializer_list<Piece> pieces);
/// The same of one text: print_text("{} images\n", count).
template <typename... Values>
void print_text(fmt::format_string<Values...> format, Values&&... values) {
  const auto text = fmt::format(format, std::forward<Values>(values)...);
  print_pieces({{text}});
}

/// Throws IoError when a part of the output did not arrive: a full disk, a closed pipe.
void flush_output();

/// One line about the progress. Like the next four it first erases the bar, several threads
/// may call it at once, and an output that has closed is no error.
void say(std::string_view line);
/// One line of detail.
void say_detail(std::string_view line);
/// "NOTE: " and a fact that the user should check. Always printed, unless it is empty.
void say_note(std::string_view note);
/// "triptych: " and the error that ended the command.
void say_error(std::string_view what);
/// Unchanged text that is always printed. Its lines end with '\n'.
void say_always(std::string_view text);

/// Draws a bar of progress over the one before: on a terminal, unless the program is quiet.
void draw_bar(std::initializer_list<Piece> bar);
void erase_bar();
/// False when draw_bar() does nothing.
bool shows_bars();

template <>
inline constexpr auto kNamesOf<Colours> = std::to_array<std::pair<Colours, std::string_view>>(
    {{Colours::Auto, "auto"}, {Colours::Always, "always"}, {Colours::Never, "never"}});

}  // namespace triptych
