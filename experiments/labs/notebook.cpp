// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/notebook.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace triptych::labs {
namespace {

using page::Json;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// True for an item of a numbered list and for a heading.
bool begins_section(std::string_view line) {
  return !line.empty() && (line.front() == '#' || (line.front() >= '0' && line.front() <= '9'));
}

/// Takes blank lines from both ends, and from the lines that begin the text the indentation of the
/// first: what follows a command within an item of a list stands alone now.
std::vector<std::string> standing_alone(std::vector<std::string> lines) {
  const auto blank = [](const std::string& line) { return indent_of(line) == line.size(); };
  lines.erase(lines.begin(), std::ranges::find_if_not(lines, blank));
  while (!lines.empty() && blank(lines.back())) lines.pop_back();
  if (lines.empty()) return lines;
  const auto indent = indent_of(lines.front());
  for (auto& line : lines) {
    if (blank(line)) continue;
    if (indent_of(line) < indent) break;
    line.erase(0, indent);
  }
  return lines;
}

class Notebook {
 public:
  Notebook(int number, std::string_view answers)
      : number_(number), answers_(Json::parse(answers)), predict_(lab_command("predict")) {}

  void add(std::string_view handout) {
    bool commands = false;
    for (const auto& line : lines_of(handout)) {
      const auto word = std::string_view(line).substr(indent_of(line));
      if (commands && word != "```") {
        add_to_command(word);
      } else if (commands || word == "```sh") {
        end_text();
        commands = !commands;
      } else {
        if (begins_section(line) && names_predict()) {
          end_text();
          add_predictions();
        }
        text_.push_back(line);
      }
    }
    end_text();
    add_answers("explanations", "Your answers to the questions");
    add_code({lab_command("check")});
  }

  Json json() const {
    return {{"cells", cells_},
            {"metadata",
             {{"kernelspec",
               {{"display_name", "Python 3"}, {"language", "python"}, {"name", "python3"}}},
              {"language_info", {{"name", "python"}}}}},
            {"nbformat", 4},
            {"nbformat_minor", 5}};
  }

 private:
  std::string lab_command(std::string_view part) const {
    return fmt::format("!triptych lab {} {}", part, number_);
  }

  bool names_predict() const {
    const auto command = std::string_view(predict_).substr(1);
    return !predicted_ && std::ranges::any_of(text_, [&](const std::string& line) {
      return line.find(command) != line.npos;
    });
  }

  Json& add_cell(std::string_view type, std::vector<std::string> lines) {
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) lines[i] += '\n';
    cells_.push_back({{"cell_type", type},
                      {"id", fmt::format("lab-{}-{}", number_, cells_.size())},
                      {"metadata", Json::object()},
                      {"source", std::move(lines)}});
    return cells_.back();
  }

  void add_code(std::vector<std::string> lines) {
    auto& cell = add_cell("code", std::move(lines));
    cell["execution_count"] = nullptr;
    cell["outputs"] = Json::array();
  }

  void end_text() {
    auto lines = standing_alone(std::exchange(text_, {}));
    if (!lines.empty()) add_cell("markdown", std::move(lines));
  }

  /// A command goes on behind a backslash.
  void add_to_command(std::string_view line) {
    command_.push_back(command_.empty() ? fmt::format("!{}", line) : std::string(line));
    if (line.ends_with('\\')) return;
    auto command = std::exchange(command_, {});
    if (command.front() == predict_ && !predicted_) return add_predictions();
    add_code(std::move(command));
  }

  void add_predictions() {
    predicted_ = true;
    add_answers("predictions", "Your predictions");
    add_code({predict_});
  }

  /// Cells that write one part of answers.json.
  void add_answers(const std::string& part, std::string_view title) {
    std::vector<std::string> lines = {
        fmt::format("# {}: a number, or a word in quotes, in the place of each None.", title),
        "import json",
        "with open(\"answers.json\", encoding=\"utf-8\") as file:", "    answers = json.load(file)",
        fmt::format("answers[\"{}\"] = {{", part)};
    for (const auto& [name, value] : answers_.at(part).items())
      lines.push_back(fmt::format("    \"{}\": None,", name));
    lines.insert(lines.end(),
                 {"}", "with open(\"answers.json\", \"w\", encoding=\"utf-8\") as file:",
                  "    json.dump(answers, file, indent=2)"});
    add_code(std::move(lines));
  }

  int number_;
  Json answers_;
  std::string predict_;
  Json cells_ = Json::array();
  std::vector<std::string> text_, command_;
  bool predicted_ = false;
};

}  // namespace

page::Json notebook(int number, std::string_view handout, std::string_view answers) {
  Notebook made(number, answers);
  made.add(handout);
  return made.json();
}

}  // namespace triptych::labs
