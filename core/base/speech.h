// Messages for people, on standard error: how many of them, and in which colours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/choice.h"

namespace triptych {

/// How much the program says beside its results.
enum class Loudness : std::uint8_t {
  Quiet,    ///< notes and errors
  Usual,    ///< and how the work goes on, with a bar on a terminal
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

/// One line of how the work goes on. Like the next two it first erases the bar, shows no control
/// character, several threads may call it at once, and an output that has closed is no error.
void say(std::string_view line);
/// One line of detail.
void say_detail(std::string_view line);
/// "NOTE: " and what the user should look at, which is always said; nothing when it is empty.
void say_note(std::string_view note);

/// Writes text to standard error as it is; an output that cannot be written is no error.
void put_error(std::string_view text);

/// Draws a bar of progress over the one before: on a terminal, unless the program is quiet.
void draw_bar(std::string_view bar);
void erase_bar();
/// False when draw_bar() does nothing.
bool shows_bars();

enum class Style : std::uint8_t { Bold, Red, Green, Yellow };

/// `text` for `stream` (stdout or stderr): in this style where colours are shown, else as it is.
std::string styled(std::FILE* stream, Style style, std::string_view text);

template <>
inline constexpr auto kNamesOf<Colours> = std::to_array<std::pair<Colours, std::string_view>>(
    {{Colours::Auto, "auto"}, {Colours::Always, "always"}, {Colours::Never, "never"}});

}  // namespace triptych
