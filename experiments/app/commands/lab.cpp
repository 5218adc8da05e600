// `triptych lab`: creates a lab's folder and grades a submission.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <charconv>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>

#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "core/io/output_ledger.h"
#include "experiments/app/confinement.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/parts.h"
#include "experiments/confine/layers.h"
#include "experiments/labs/lab.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

constexpr std::int64_t kHiddenSeed = 1;  // of the hidden cases, where a teacher gives no other

struct LabOptions {
  std::int64_t number = 0;
  std::string folder;
  std::int64_t seed = kHiddenSeed;
  std::string results, standings, name;
  std::string labs;  ///< folder. Empty: the program's labs
  bool notebook = false, without_predictions = false;
  std::optional<std::uint64_t> options_seed;  ///< of the order of options. Nothing: chance
  Confinement confine = Confinement::Available;

  void choose_labs() const {
    if (!labs.empty()) labs::use_labs_in(labs);
  }
  const labs::Lab& lab() const { return labs::find_lab(static_cast<int>(number)); }
  /// As given, else the one that `start` makes, or this one when it is none of these.
  std::string submission() const {
    if (!folder.empty()) return folder;
    const auto usual = labs::default_folder(lab());
    return std::filesystem::is_directory(usual) ? usual : ".";
  }
};

Json lab_json(const labs::Lab& lab) {
  return {{"number", lab.number},
          {"slug", lab.slug},
          {"title", lab.title},
          {"question", lab.question},
          {"version", lab.version}};
}

void list_labs(bool json) {
  Json results = Json::array();
  for (const auto& lab : labs::labs()) {
    results.push_back(lab_json(lab));
    if (!json) print_text("{}  {}: {}\n", lab.number, lab.title, lab.question);
  }
  if (json) return print_document("lab list", std::move(results));
  print_text("\nbegin one: triptych lab start NUMBER\n");
}

void start_lab(const LabOptions& options, bool json) {
  const auto& lab = options.lab();
  const auto folder = options.folder.empty() ? labs::default_folder(lab) : options.folder;
  labs::start(lab, folder, options.notebook ? labs::HandoutForm::Notebook : labs::HandoutForm::Text,
              options.options_seed.value_or(1 + std::random_device{}()));
  const char* text = options.notebook ? labs::kNotebookFile : "README.md";
  if (json) {
    auto result = lab_json(lab);
    result["folder"] = folder;
    return print_document("lab start", Json::array({std::move(result)}));
  }
  print_text("lab {}, {}: read {}/{}\n", lab.number, lab.title, folder, text);
}

void commit_predictions(const LabOptions& options, bool json) {
  const auto& lab = options.lab();
  labs::Submission submission(options.submission(), {lab.number, lab.version}, 0);
  labs::predict(lab, submission);
  if (json) {
    auto result = lab_json(lab);
    result["folder"] = submission.folder().string();
    return print_document("lab predict", Json::array({std::move(result)}));
  }
  print_text("your predictions are committed; now: triptych lab check {}\n", lab.number);
}

/// As a list: wraps the first line of a message as a paragraph. The other lines come from a tool
/// and stay unchanged.
std::string paragraph(const labs::Item& item) {
  constexpr std::size_t indent = 11;
  const auto end = std::min(item.said.find('\n'), item.said.size());
  auto text = page::wrapped(fmt::format("{:16} {}", item.id, item.said.substr(0, end)), indent);
  std::istringstream rest(item.said.substr(end));
  for (std::string line; std::getline(rest, line);)
    if (!line.empty()) text += fmt::format("{:{}}{}\n", "", indent, line);
  return text;
}

/// With a bar in front, so that no line can imitate a message of this program.
std::string quoted(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) result += "  | " + line + '\n';
  return result;
}

void print_points(const labs::Lab& lab, const labs::Report& report, std::int64_t seed) {
  print_text("lab {}, {}: {} of {} points (seed {})\n", lab.number, lab.title, report.earned(),
             report.points(), seed);
  std::optional<labs::Kind> kind;
  for (const auto& item : report.items) {
    if (kind != item.kind)
      print_text("\n{}: {} of {}\n", name_of(item.kind), report.earned(item.kind),
                 report.points(item.kind));
    kind = item.kind;
    print_text("{:4} / {:2}  {}\n", item.earned, item.points, paragraph(item));
  }
  if (!report.printed.empty()) print_text("\nyour code printed:\n{}", quoted(report.printed));
  if (!report.standings.empty()) print_text("\n");
  for (const auto& each : report.standings) print_text("{}: {}\n", each.name, each.value);
  print_text("\nconfined: {}\n", confine::active_layers());
}

Json lab_report_json(const labs::Lab& lab, const labs::Report& report, const LabOptions& options) {
  auto result = lab_json(lab);
  result["folder"] = options.submission();
  result["seed"] = options.seed;
  result["earned"] = report.earned();
  result["points"] = report.points();
  result["items"] = Json::array();
  for (const auto& item : report.items)
    result["items"].push_back({{"id", item.id},
                               {"kind", name_of(item.kind)},
                               {"points", item.points},
                               {"earned", item.earned},
                               {"said", item.said}});
  result["confinement"] = confinement_json();
  result["standings"] = Json::array();
  for (const auto& each : report.standings)
    result["standings"].push_back({{"name", each.name}, {"value", each.value}});
  return result;
}

/// A check that comes too soon should not cost the points of all predictions. A grader (option
/// --results) accepts the submission as it is.
void require_predictions(const LabOptions& options, const labs::Submission& submission) {
  if (options.without_predictions || !options.results.empty() || !submission.can_still_predict())
    return;
  throw InvalidArgument(
      fmt::format("\"{}\" has no committed predictions, and a check shows what they are about: "
                  "their points would be lost for good. Write them into answers.json and commit "
                  "them: triptych lab predict {}. To do without: the option without-predictions",
                  submission.folder().string(), options.number));
}

/// The file of the option --results, if given. It holds no points from the begin on, so that it has
/// a reason even where nothing ends this program in an orderly way.
class ResultsFile {
 public:
  ResultsFile(const LabOptions& options, const labs::Lab& lab)
      : path_(options.results), title_(fmt::format("lab {}, {}", lab.number, lab.title)) {
    if (path_.empty()) return;
    require_writable(path_);
    write(labs::not_graded("the check did not come to its end; something ended the program"));
  }
  void write(const labs::Report& report) const {
    if (path_.empty()) return;
    write_own_file(path_, labs::autograder_json(report, title_).dump(2) + "\n");
  }
  /// This machine cannot grade: nobody should take that for a grade.
  void remove() const {
    if (!path_.empty()) OutputLedger(path_.parent_path()).remove(path_.filename());
  }

 private:
  std::filesystem::path path_;
  std::string title_;
};

labs::Report graded(const labs::Lab& lab, const labs::Submission& submission,
                    const ResultsFile& results) {
  try {
    labs::Bench bench;
    return labs::check(lab, submission, bench);
  } catch (const DeviceError&) {
    results.remove();
    throw;
  }
}

/// The submission is the student's: where its folder takes no note, nothing is lost but the note.
void note_that_results_were_seen(labs::Submission& submission) {
  try {
    submission.note_that_results_were_seen();
  } catch (const Error& error) {
    say_note(fmt::format("the submission does not keep that results were seen: {}", error.what()));
  }
}

labs::Submission open_submission(const LabOptions& options, const labs::Lab& lab) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (!options.results.empty())
    return labs::Submission::to_grade(options.submission(), {lab.number, lab.version}, seed);
  return {options.submission(), {lab.number, lab.version}, seed};
}

void check_lab(const LabOptions& options, Context& context) {
  const auto& lab = options.lab();
  const InterruptGuard guard;
  auto submission = open_submission(options, lab);
  require_predictions(options, submission);
  require_confinement(options.confine);
  const ResultsFile results(options, lab);
  const auto report = graded(lab, submission, results);
  results.write(report);
  context.exit_code = report.interrupted                   ? kStopped
                      : report.earned() == report.points() ? kDone
                                                           : kCheckFailed;
  if (!report.interrupted) note_that_results_were_seen(submission);
  if (context.json)
    return print_document("lab check", Json::array({lab_report_json(lab, report, options)}));
  print_points(lab, report, options.seed);
  if (!options.results.empty()) print_text("written: {}\n", options.results);
}

/// A seed on the command line can be seen by everybody on the computer. One that comes through a
/// pipe cannot.
std::int64_t read_seed(const std::string& text) {
  std::string digits = text;
  if (text == "-" && !std::getline(std::cin, digits)) digits.clear();
  std::int64_t seed = 0;
  const auto* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, seed);
  const auto limits = std::get<training::WholeLimits>(training::run_option("--seed").limits);
  if (digits.empty() || error != std::errc() || rest != end || seed < 0)
    throw InvalidArgument(fmt::format("a seed is a whole number {}{}", to_string(limits),
                                      text == "-" ? ", on a line of standard input" : ""));
  return seed;
}

void add_labs_option(Command& command, LabOptions& options) {
  command.add_option("--labs", options.labs, "folder of labs in Python, instead of the program's")
      .value("DIR");
}

Command add_part(Command& lab, Context& context, const std::shared_ptr<LabOptions>& options,
                 const std::string& name, const std::string& help) {
  auto command = lab.add_subcommand(name, help);
  command.add_option("number", options->number, "number of the lab").required();
  add_labs_option(command, *options);
  command.add_flag("--json", context.json, "print JSON");
  return command;
}

void add_folder(Command& command, LabOptions& options) {
  command.add_option("folder", options.folder,
                     "folder of the lab (default: lab-NUMBER-NAME, or this one if it is a lab)");
}

}  // namespace

void describe_lab(Command& command, Context& context) {
  auto options = std::make_shared<LabOptions>();
  command.require_subcommand();
  auto listing = command.add_subcommand("list", "List all labs");
  listing.add_flag("--json", context.json, "print JSON");
  add_labs_option(listing, *options);
  const auto on_call = [options](Command& part, const auto& action) {
    part.callback([options, action] {
      options->choose_labs();
      action(*options);
    });
  };
  on_call(listing, [&context](const LabOptions&) { list_labs(context.json); });
  auto starting =
      add_part(command, context, options, "start", "Copy a lab's handout to a new folder");
  starting.add_option("--out", options->folder, "new or empty folder (default: lab-NUMBER-NAME)");
  starting.add_flag("--notebook", options->notebook,
                    "also write the lab as a Jupyter notebook, lab.ipynb");
  starting
      .add_text(
          "--seed",
          [options](const std::string& text) {
            options->options_seed = static_cast<std::uint64_t>(read_seed(text));
          },
          [] { return std::string(); },
          "seed of the order of the questions' options (default: chance, 0: as in the handout)")
      .value("N");
  on_call(starting, [&context](const LabOptions& given) { start_lab(given, context.json); });
  auto predicting =
      add_part(command, context, options, "predict", "Commit the predictions in answers.json");
  add_folder(predicting, *options);
  on_call(predicting,
          [&context](const LabOptions& given) { commit_predictions(given, context.json); });
  auto checking =
      add_part(command, context, options, "check", "Grade a folder and explain mistakes");
  add_folder(checking, *options);
  checking
      .add_text(
          "--seed", [options](const std::string& text) { options->seed = read_seed(text); },
          [options] { return std::to_string(options->seed); },
          "seed of the hidden cases. - reads it from standard input")
      .value("N");
  add_confine_option(checking, options->confine,
                     "level of confinement. required: refuse to grade without all layers");
  checking.add_flag("--without-predictions", options->without_predictions,
                    "grade without committed predictions, which give no points afterwards");
  checking
      .add_option("--results", options->results,
                  "file of the points for autograders (results.json of Gradescope)")
      .output_file();
  on_call(checking, [&context](const LabOptions& given) { check_lab(given, context); });
}

}  // namespace triptych::app
