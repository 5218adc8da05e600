// Numbers and words as a page shows them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace triptych::page {

/// For text and for attributes in quotes, of HTML and of SVG. Control characters, which neither
/// allows, become U+FFFD.
std::string escape(std::string_view text);

/// escape() of prose. Options of commands, such as --out and -DNAME=ON, do not break after a dash.
std::string escape_prose(std::string_view text);

/// Three significant digits, and an SI prefix where the unit takes one: "12.3 ms", "1.20 GFLOP/s",
/// "87.3 %" (unit "%", of a value from 0 to 1), "3.20×" (unit "x"), "1,024" (unit "1" or none).
/// "–" for a value that is not finite. Numbers and units are joined by a no-break space.
std::string format_quantity(double value, std::string_view unit);

/// `digits` significant digits, no exponent from 1e-6 up to 1e12. Zeros at the end stay.
std::string format_digits(double value, int digits);

/// Shortest text that reads back as the same double.
std::string format_exact(double value);

/// The unit as text: "byte/s" as "B/s", "x" as "×". Empty for "1".
std::string unit_symbol(std::string_view unit);

/// A power of ten and its SI prefix that suit all values up to `largest`. 1 and "" where the unit
/// takes no prefix, 0.01 and "" for "%".
struct Prefix {
  double factor = 1;
  std::string symbol;
};
Prefix prefix_for(double largest, std::string_view unit);

/// "a, b and c".
std::string join_words(std::span<const std::string> words);

/// "cpu" for "cpu", "systolic--RTL-" for "systolic (RTL)": letters and digits, as an id takes them.
std::string identifier(std::string_view text);

}  // namespace triptych::page
