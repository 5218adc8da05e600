// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <string_view>

#include "experiments/page/chart.h"

namespace triptych::page {
namespace {

struct Colour {
  std::string_view name, light, dark;
};

/// Each stands out from its background by a contrast of at least 3 (text: 4.5), and the first four
/// from each other for people with any colour blindness by their lightness.
constexpr std::array kPalette = {
    Colour{"s0", "#1f5fae", "#7db3f5"},    Colour{"s1", "#c2500f", "#f39a63"},
    Colour{"s2", "#0f7f5c", "#46c79a"},    Colour{"s3", "#8a4fc0", "#c39cf5"},
    Colour{"s4", "#9a6a00", "#dfb44a"},    Colour{"s5", "#0b7f99", "#56c5dc"},
    Colour{"s6", "#b4316f", "#f288b8"},    Colour{"s7", "#5c6470", "#a9b2bd"},
    Colour{"paper", "#ffffff", "#181b20"}, Colour{"ink", "#1b1f24", "#e8eaed"},
    Colour{"muted", "#5b636d", "#a2abb5"}, Colour{"grid", "#e6e8eb", "#2b3037"},
    Colour{"axis", "#a9b0b8", "#565e68"}};

std::string variables(bool dark) {
  std::string text;
  for (const auto& colour : kPalette) {
    text += fmt::format("--{}:{};", colour.name, dark ? colour.dark : colour.light);
  }
  return text;
}

/// First the light colour itself, for the programs that know no variables.
std::string with(std::string_view property, std::string_view name) {
  for (const auto& colour : kPalette) {
    if (colour.name == name)
      return fmt::format("{0}:{1};{0}:var(--{2})", property, colour.light, name);
  }
  return "";
}

}  // namespace

std::string chart_css() {
  const auto dark = variables(true);
  std::string css = fmt::format(
      ":root{{{}}}\n"
      "@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{}}}}}\n"
      "@media screen{{:root[data-theme=dark]{{{}}}}}\n",
      variables(false), dark, dark);
  for (std::size_t i = 0; i < kChartColours; ++i) {
    css += fmt::format(".chart .s{0},.c{0}{{{1}}}\n", i, with("color", kPalette.at(i).name));
  }
  css += fmt::format(".chart text{{{};font-size:12px}}\n", with("fill", "muted"));
  css += fmt::format(".chart .name{{{}}}\n", with("fill", "ink"));
  css += fmt::format(".chart .title{{{};font-size:15px;font-weight:600}}\n", with("fill", "ink"));
  css += fmt::format(".chart .back{{{}}}\n", with("fill", "paper"));
  css += fmt::format(".chart .grid{{{};fill:none}}\n", with("stroke", "grid"));
  css += fmt::format(".chart .axis{{{};fill:none}}\n", with("stroke", "axis"));
  css += ".chart .bound-name{fill:currentColor}\n";
  css += ".chart .join{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}\n";
  css += ".chart .bound{fill:none;stroke:currentColor;stroke-width:1.5;opacity:.8}\n";
  css += ".chart .thin{stroke-width:1;opacity:.45}\n";
  css += fmt::format(".chart .full{{fill:currentColor;{}}}\n", with("stroke", "paper"));
  css += fmt::format(".chart .hollow{{{};stroke:currentColor;stroke-width:1.75}}\n",
                     with("fill", "paper"));
  css += ".chart .core{fill:currentColor}\n.chart .dash{stroke:currentColor;stroke-width:1.75}\n";
  css += fmt::format(".chart .bar{{fill:currentColor;{}}}\n", with("stroke", "paper"));
  css += ".chart .pale{fill-opacity:.3;stroke:currentColor;stroke-dasharray:3 2}\n";
  css += fmt::format(".chart .stripe{{{};stroke-width:1.6}}\n", with("stroke", "paper"));
  css += ".chart .hit{fill:transparent;stroke:none}\n.chart .quiet{opacity:0}\n";
  css += ".chart .mark.on .quiet{opacity:1}\n";
  return css;
}

}  // namespace triptych::page
