// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/option_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace triptych::labs {
namespace {

constexpr std::size_t kOptions = 4;
constexpr std::string_view kLetters = "abcd";
constexpr std::size_t kColumns = 100;

/// A question in the handout's text: where its options begin and end, and their words.
struct Question {
  std::size_t begin = 0, end = 0;
  bool list = false;                             ///< items of a list, otherwise a paragraph
  std::string before;                            ///< the paragraph up to its first option
  std::array<std::string, kOptions> options;     ///< without the punctuation behind them
  std::array<std::string, kOptions> separators;  ///< that punctuation, by place
};

/// The text at the beginning of a line.
std::size_t find_line(std::string_view text, const std::string& start) {
  if (text.starts_with(start)) return 0;
  const auto at = text.find("\n" + start);
  return at == text.npos ? at : at + 1;
}

std::string joined_lines(std::string_view text) {
  std::string joined;
  for (const char c : text) {
    const bool blank = c == '\n' || c == ' ';
    if (!blank)
      joined += c;
    else if (!joined.empty() && joined.back() != ' ')
      joined += ' ';
  }
  while (joined.ends_with(' ')) joined.pop_back();
  return joined;
}

/// Splits "words, (b)" into words and punctuation.
std::pair<std::string, std::string> without_punctuation(std::string words) {
  std::string behind;
  if (!words.empty() && std::string_view(",.;").find(words.back()) != std::string_view::npos) {
    behind = words.back();
    words.pop_back();
  }
  return {std::move(words), std::move(behind)};
}

/// `marks`: the text before each option. Nothing unless each stands once, in order.
bool split_options(std::string_view text, const std::array<std::string, kOptions>& marks,
                   Question& question) {
  std::array<std::size_t, kOptions + 1> places = {};
  for (std::size_t i = 0; i < kOptions; ++i) {
    places[i] = text.find(marks[i]);
    if (places[i] == text.npos || text.find(marks[i], places[i] + 1) != text.npos) return false;
    if (i > 0 && places[i] < places[i - 1]) return false;
  }
  places[kOptions] = text.size();
  question.before = text.substr(0, places[0]);
  for (std::size_t i = 0; i < kOptions; ++i) {
    const auto from = places[i] + marks[i].size();
    std::tie(question.options[i], question.separators[i]) =
        without_punctuation(joined_lines(text.substr(from, places[i + 1] - from)));
  }
  return true;
}

std::array<std::string, kOptions> marks_of(std::string_view before, std::string_view after) {
  std::array<std::string, kOptions> marks;
  for (std::size_t i = 0; i < kOptions; ++i)
    marks[i] = fmt::format("{}{}{}", before, kLetters[i], after);
  return marks;
}

std::optional<Question> find_question(std::string_view text, const std::string& id) {
  Question question;
  if (const auto at = find_line(text, fmt::format("**{}.**", id)); at != text.npos) {
    question.begin = at;
    question.end = std::min(text.find("\n\n", at), text.size());
    while (question.end > at && text[question.end - 1] == '\n') --question.end;
    const auto paragraph = joined_lines(text.substr(at, question.end - at));
    return split_options(paragraph, marks_of("(", ") "), question) ? std::optional(question)
                                                                   : std::nullopt;
  }
  const auto at = find_line(text, fmt::format("`{}` ", id));
  if (at == text.npos) return std::nullopt;
  question.list = true;
  const auto first = text.find("\n\n- a) ", at);
  if (first == text.npos) return std::nullopt;
  question.begin = first + 2;
  question.end = std::min(text.find("\n\n", question.begin), text.size());
  while (question.end > question.begin && text[question.end - 1] == '\n') --question.end;
  const auto items = text.substr(question.begin, question.end - question.begin);
  return split_options(items, marks_of("- ", ") "), question) ? std::optional(question)
                                                              : std::nullopt;
}

/// Lines of at most kColumns, those after the first behind `indent`.
std::string wrapped(const std::string& text, std::string_view indent) {
  std::string lines;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = std::string_view(text).substr(at, end - at);
    if (column > 0 && column + 1 + word.size() > kColumns) {
      lines += fmt::format("\n{}", indent);
      column = indent.size();
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    at = end + 1;
  }
  return lines;
}

std::string rewritten(const Question& question, std::string_view order) {
  std::string text;
  std::string paragraph = question.before;
  for (std::size_t i = 0; i < kOptions; ++i) {
    const auto& words = question.options[kLetters.find(order[i])];
    const auto option = fmt::format("{}) {}{}", kLetters[i], words, question.separators[i]);
    if (question.list) {
      text += fmt::format("{}{}", i > 0 ? "\n" : "", wrapped("- " + option, "  "));
    } else {
      paragraph += fmt::format("{}({}", i > 0 ? " " : "", option);
    }
  }
  return question.list ? text : wrapped(paragraph, "");
}

}  // namespace

OptionOrders draw_option_orders(std::string_view handout, std::span<const Explanation> questions,
                                std::uint64_t seed) {
  OptionOrders orders;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const std::string id(questions[i].id);
    if (!find_question(handout, id)) continue;
    RandomStream random(seed, i);
    std::string order(kLetters);
    for (std::size_t left = kOptions; left > 1; --left)
      std::swap(order[left - 1],
                order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(left)))]);
    orders[id] = order;
  }
  return orders;
}

std::string reordered(std::string_view handout, const OptionOrders& orders) {
  std::string text(handout);
  for (const auto& [id, order] : orders) {
    if (const auto question = find_question(text, id))
      text.replace(question->begin, question->end - question->begin, rewritten(*question, order));
  }
  return text;
}

}  // namespace triptych::labs
