// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "core/io/sha256.h"
#include "experiments/labs/option_order.h"
#include "experiments/labs/python_lab.h"
#include "experiments/page/json.h"

namespace triptych::labs {
namespace {

// A lab's handout as a notebook for Jupyter: its text, each command in a cell of its own, cells for
// predictions and answers, at the end the check.

using page::Json;

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// True for an item of a numbered list and for a heading.
bool begins_section(std::string_view line) {
  return !line.empty() && (line.front() == '#' || (line.front() >= '0' && line.front() <= '9'));
}

/// Removes blank lines at both ends, and the indentation of the first line from the lines that have
/// it. A command from a list item then stands alone.
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
    for (const auto line : split_lines(handout)) {
      const auto word = line.substr(indent_of(line));
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
        text_.emplace_back(line);
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

  /// A backslash continues a command on the next line.
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

/// The notebook (nbformat 4.5) of lab `number`. Blocks of `handout`, which is Markdown, that begin
/// with ```sh hold commands. `answers` is the text of answers.json. After the section
/// that first names `triptych lab predict`, cells write the predictions and commit them.
page::Json notebook(int number, std::string_view handout, std::string_view answers) {
  Notebook made(number, answers);
  made.add(handout);
  return made.json();
}

namespace fs = std::filesystem;

/// A word as people write it: without blanks around it, in small letters.
std::string plain_word(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  const auto last = text.find_last_not_of(" \t\n");
  std::string word = first == text.npos ? "" : text.substr(first, last - first + 1);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

/// The student's answer in one line, cut after the first characters if it is long.
std::string shown(const Json& answer) { return triptych::shown(answer.dump()); }

/// A value that came, with as many digits as a student needs.
std::string rounded(const Json& value) {
  return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : shown(value);
}

/// The predictions that the handout asks for, each null.
Json asked_predictions(const Lab& lab) {
  const auto path = fmt::format("handouts/{}/answers.json", lab.name());
  return Json::parse(text_in(lab.files, path)).at("predictions");
}

/// The form that a prediction should have had. Empty: it has it.
std::string unfit(const Lab& lab, const std::string& name, const Json& answer) {
  if (std::ranges::find(lab.yes_or_no, name) == lab.yes_or_no.end())
    return answer.is_number() ? "" : "give a number, without quotation marks";
  const auto word = answer.is_string() ? plain_word(answer.get<std::string>()) : "";
  return word == "yes" || word == "no" ? "" : "give \"yes\" or \"no\"";
}

bool came_true(const Prediction& prediction, const Json& answer) {
  if (!prediction.value.is_number())
    return answer.is_string() &&
           plain_word(answer.get<std::string>()) == prediction.value.get<std::string>();
  if (!answer.is_number()) return false;
  const auto value = prediction.value.get<double>();
  return std::abs(answer.get<double>() - value) <= prediction.tolerance * std::abs(value);
}

Item judge(const Prediction& prediction, const Submission& submission, const std::string& why_not) {
  Item item = {prediction.id, Kind::Prediction, prediction.points, 0, why_not};
  if (!why_not.empty()) return item;
  const auto answer = submission.prediction(prediction.id);
  if (!submission.answers_problem().empty()) {
    item.said = submission.answers_problem();
  } else if (answer.is_null()) {
    item.said = fmt::format("answers.json has no prediction \"{}\"", prediction.id);
  } else if (came_true(prediction, answer)) {
    item.earned = item.points;
    item.said = "right";
  } else {
    item.said = fmt::format("foretold {}, came {}", shown(answer), rounded(prediction.value));
  }
  return item;
}

Item judge(const Lab& lab, const Explanation& question, const Submission& submission) {
  const std::string id(question.id);
  Item item = {id, Kind::Explanation, question.points, 0, ""};
  const auto answer = submission.explanation(id);
  if (!submission.answers_problem().empty()) {
    item.said = submission.answers_problem();
    return item;
  }
  if (answer.is_null()) {
    item.said = fmt::format("not answered yet: \"explanations\", \"{}\" in answers.json", id);
    return item;
  }
  const auto word = plain_word(answer.is_string() ? answer.get<std::string>() : answer.dump());
  if (word.size() != 1 || word < "a" || word > "d") {
    item.said = fmt::format("{} is no answer; give the letter of one", shown(answer));
    return item;
  }
  const bool right =
      answer_key(lab.number, id, submission.handout_letter(id, word)) == question.key;
  item.earned = right ? item.points : 0;
  item.said =
      right ? "right" : fmt::format("{} is not the answer; {}", shown(answer), question.hint);
  return item;
}

constexpr const char* kHandoutFile = "README.md";

/// The points of a lab's parts.
constexpr std::pair<Kind, int> kParts[] = {
    {Kind::Exact, 60}, {Kind::Prediction, 20}, {Kind::Explanation, 20}};

int points_of(Kind kind) {
  return std::ranges::find(kParts, kind, &std::pair<Kind, int>::first)->second;
}

/// Grades one part of a submission. The only place that turns faults of a submission into missing
/// points. Only faults of this machine remain exceptions.
void grade_part(Report& report, Kind kind, const std::function<void()>& grade) {
  if (report.interrupted) return;
  try {
    grade();
  } catch (const DeviceError&) {
    throw;
  } catch (const Interrupted&) {
    report.interrupted = true;
  } catch (const std::bad_alloc&) {
    report.not_graded(kind, points_of(kind), "the check ran out of memory here");
  } catch (const std::exception& error) {
    report.not_graded(kind, points_of(kind), error.what());
  }
}

void add_not_graded(Report& report, const std::string& why) {
  for (const auto& [kind, points] : kParts) report.not_graded(kind, points, why);
}

}  // namespace

namespace {

std::vector<Lab>& known_labs() {
  static std::vector<Lab> list = labs_of(lab_texts());
  return list;
}

}  // namespace

std::span<const Lab> labs() { return known_labs(); }

void use_labs_in(const fs::path& folder) { known_labs() = labs_in(folder); }

const Lab& find_lab(int number) {
  const auto lab = std::ranges::find(labs(), number, &Lab::number);
  if (lab != labs().end()) return *lab;
  std::string numbers;
  for (const auto& each : labs()) numbers += fmt::format(" {}", each.number);
  throw InvalidArgument(fmt::format("there is no lab {}; there are:{}", number, numbers));
}

std::string answer_key(int number, std::string_view id, std::string_view answer) {
  Sha256 hash;
  const auto text = fmt::format("{}.{}.{}", number, id, answer);
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

std::string default_folder(const Lab& lab) { return "lab-" + lab.name(); }

void start(const Lab& lab, const fs::path& folder, HandoutForm form, std::uint64_t seed) {
  if (fs::exists(folder) && !(fs::is_directory(folder) && fs::is_empty(folder)))
    throw InvalidArgument(
        fmt::format("\"{}\" is there and not empty; a lab replaces nothing: name another folder",
                    folder.string()));
  const auto prefix = fmt::format("handouts/{}/", lab.name());
  const auto readme = std::ranges::find(lab.files, prefix + kHandoutFile, &LabText::path);
  const auto handout = readme == lab.files.end() ? std::string_view() : readme->content;
  const auto orders =
      seed == 0 ? OptionOrders{} : draw_option_orders(handout, lab.explanations, seed);
  const auto text = reordered(handout, orders);
  for (const auto& file : lab.files) {
    if (!file.path.starts_with(prefix)) continue;
    const auto name = file.path.substr(prefix.size());
    write_own_file(folder / name, name == kHandoutFile ? std::string_view(text) : file.content);
  }
  if (form == HandoutForm::Notebook) {
    const auto made = notebook(lab.number, text, text_in(lab.files, prefix + "answers.json"));
    write_own_file(folder / kNotebookFile, made.dump(1) + "\n");
  }
  Submission::begin(folder, {lab.number, lab.version}, orders);
}

void predict(const Lab& lab, Submission& submission) {
  const auto asked = asked_predictions(lab);
  for (const auto& [name, none] : asked.items()) {
    const auto answer = submission.prediction(name);
    if (answer.is_null())
      throw InvalidArgument(
          fmt::format("the prediction \"{}\" in {} is still null; a guess is better than none",
                      name, (submission.folder() / "answers.json").string()));
    if (const auto why = unfit(lab, name, answer); !why.empty())
      throw InvalidArgument(
          fmt::format("the prediction \"{}\" in answers.json is {}: {}", name, shown(answer), why));
  }
  submission.commit_predictions();
}

Report check(const Lab& lab, const Submission& submission, Bench& bench) {
  Report report;
  grade_part(report, Kind::Exact, [&] { lab.grade(submission, bench, report); });
  grade_part(report, Kind::Prediction, [&] {
    const auto why_not = submission.why_predictions_do_not_count();
    for (const auto& prediction : lab.predictions(bench))
      report.add(judge(prediction, submission, why_not));
  });
  grade_part(report, Kind::Explanation, [&] {
    for (const auto& question : lab.explanations) report.add(judge(lab, question, submission));
  });
  if (report.interrupted) add_not_graded(report, "a signal stopped the check before this part");
  for (const auto& [kind, points] : kParts) TRIPTYCH_ASSERT(report.points(kind) == points);
  return report;
}

Report not_graded(const std::string& why) {
  Report report;
  add_not_graded(report, why);
  return report;
}

}  // namespace triptych::labs
