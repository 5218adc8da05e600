// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/python_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/folder.h"
#include "core/io/find_program.h"
#include "core/io/input_file.h"
#include "core/io/strict_json.h"
#include "experiments/labs/chunk_schedule.h"
#include "experiments/labs/kept_runtime.h"
#include "experiments/labs/submission.h"
#include "experiments/scripts/python_process.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
constexpr std::int64_t kLargestText = std::int64_t{1} << 24;
constexpr std::size_t kErrorLines = 8, kPrintedLines = 40;
constexpr std::chrono::seconds kPatience{60};

/// Modules of all graders, each after those that it imports.
constexpr const char* kLibraries[] = {"formula", "grading", "cuda", "rtl", "schedule"};

/// The part of a grader that runs, and where its answers go.
struct Session {
  Bench& bench;
  std::span<const LabText> files;  ///< of the lab
  const Submission* submission = nullptr;
  Report* report = nullptr;
  std::vector<Prediction> predictions = {};
  std::optional<KeptRuntime> runtime = {};  ///< while the grader builds a machine
};

std::string text_of(const Json& request, const char* name) {
  return request.at(name).get<std::string>();
}

const Submission& submission_of(const Session& session) {
  if (session.submission == nullptr) throw InvalidArgument("predictions know no submission");
  return *session.submission;
}

Report& report_of(const Session& session) {
  if (session.report == nullptr) throw InvalidArgument("predictions know no report");
  return *session.report;
}

Limits limits_of(const Json& request) {
  return {.seconds = request.at("seconds").get<double>(),
          .bytes = request.at("bytes").get<std::int64_t>()};
}

Json ending_json(const Session& session, const Json& request) {
  const auto limits = limits_of(request);
  const auto ending =
      session.bench.run(request.at("command").get<std::vector<std::string>>(), limits);
  const auto folder = session.bench.folder().string();
  return {{"good", ending.good()},
          {"status", ending.cause == Cause::Exited ? Json(ending.status) : Json(nullptr)},
          {"output", ending.output},
          {"error", first_lines(ending.error, kErrorLines, folder)},
          {"printed", first_lines(ending.output, kPrintedLines, folder)},
          {"said", ending.said(limits)},
          {"why", session.bench.why(ending, limits)}};
}

Json array_json(const Tensor& tensor) {
  std::string digits;
  for (const auto byte : tensor.bytes())
    digits += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return {{"spec", to_string(tensor.spec())},
          {"shape", tensor.shape().dims()},
          {"bytes", std::move(digits)}};
}

Json put(Session& session, const Json& request) {
  session.bench.put(text_of(request, "name"), text_of(request, "content"));
  return nullptr;
}

Json put_array(Session& session, const Json& request) {
  const TensorSpec spec{dtype_from_string(text_of(request, "type")),
                        Shape(request.at("shape").get<std::vector<std::int64_t>>())};
  const auto values = request.at("values").get<std::vector<double>>();
  if (static_cast<std::int64_t>(values.size()) != spec.shape.elements())
    throw InvalidArgument(fmt::format("an array of {} does not have {} values",
                                      spec.shape.elements(), values.size()));
  session.bench.put(text_of(request, "name"), from_doubles(spec, values));
  return nullptr;
}

/// A file of the lab's directory, or else of the program.
std::string_view lab_text(const Session& session, const std::string& path) {
  const auto own = std::ranges::find(session.files, path, &LabText::path);
  return own != session.files.end() ? own->content : text_in(lab_texts(), path);
}

Json submitted_names(Session& session, const Json& request) {
  std::error_code none;  // no names without the folder
  return names_in(submission_of(session).folder() / text_of(request, "folder"), none);
}

Json keep_runtime(Session& session) {
  if (session.runtime) session.runtime->keep();
  session.runtime.reset();
  return nullptr;
}

Json add_exact(Session& session, const Json& request) {
  report_of(session).exact(text_of(request, "id"), request.at("points").get<int>(),
                           text_of(request, "problem"));
  return nullptr;
}

Json add_standing(Session& session, const Json& request) {
  report_of(session).standings.push_back(
      {text_of(request, "name"), request.at("value").get<double>()});
  return nullptr;
}

Json add_prediction(Session& session, const Json& request) {
  session.predictions.push_back({text_of(request, "id"), request.at("points").get<int>(),
                                 request.at("value"), request.at("tolerance").get<double>()});
  return nullptr;
}

/// A request, and its answer: null if it has no value. Throws if the lab cannot be graded.
struct Call {
  std::string_view name;
  Json (*answer)(Session& session, const Json& request);
};

constexpr Call kCalls[] = {
    {"put", put},
    {"put_array", put_array},
    {"remove",
     [](Session& session, const Json& request) -> Json {
       session.bench.remove(text_of(request, "name"));
       return nullptr;
     }},
    {"text",
     [](Session& session, const Json& request) -> Json {
       return session.bench.text(text_of(request, "name"));
     }},
    {"array",
     [](Session& session, const Json& request) -> Json {
       return array_json(session.bench.array(text_of(request, "name")));
     }},
    {"run",
     [](Session& session, const Json& request) -> Json { return ending_json(session, request); }},
    {"take_runtime",
     [](Session& session, const Json&) -> Json {
       session.runtime.emplace(session.bench);
       return nullptr;
     }},
    {"keep_runtime", [](Session& session, const Json&) -> Json { return keep_runtime(session); }},
    {"put_verilator_runtime",
     [](Session& session, const Json& request) -> Json {
       const ModelCommands commands = {request.at("verilate").get<std::vector<std::string>>(),
                                       request.at("make").get<std::vector<std::string>>(),
                                       limits_of(request)};
       put_verilator_runtime(session.bench, commands);
       return nullptr;
     }},
    {"price",
     [](Session&, const Json& request) -> Json { return chunk_schedule_seconds(request); }},
    {"has_tool",
     [](Session&, const Json& request) -> Json {
       return find_program(text_of(request, "name")).has_value();
     }},
    {"lab_text",
     [](Session& session, const Json& request) -> Json {
       return lab_text(session, text_of(request, "name"));
     }},
    {"submitted",
     [](Session& session, const Json& request) -> Json {
       return submission_of(session).text(text_of(request, "name"));
     }},
    {"submitted_json",
     [](Session& session, const Json& request) -> Json {
       return parse_strict<Json>(submission_of(session).text(text_of(request, "name")));
     }},
    {"submitted_names", submitted_names},
    {"exact", add_exact},
    {"printed",
     [](Session& session, const Json& request) -> Json {
       report_of(session).printed = text_of(request, "text");
       return nullptr;
     }},
    {"standing", add_standing},
    {"prediction", add_prediction},
};

Json answer(Session& session, const Json& request) {
  const auto name = text_of(request, "call");
  const auto* const call = std::ranges::find(kCalls, name, &Call::name);
  if (call == std::end(kCalls))
    throw InvalidArgument(fmt::format("the grader has no request \"{}\" here", shown(name)));
  return call->answer(session, request);
}

Json reply_to(Session& session, const Json& request) {
  try {
    return {{"value", answer(session, request)}};
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    return {{"refused", error.what()}};
  }
}

/// Serves the grader until its part ends.
void serve(Session& session, const scripts::Script& script) {
  scripts::PythonProcess grader(script);
  for (;;) {
    const auto request = grader.receive();
    const auto call = text_of(request, "call");
    if (call == "end") return;
    if (call == "failed") throw InvalidArgument(text_of(request, "why"));
    if (call == "cannot_grade") throw DeviceError(text_of(request, "why"));
    grader.send(reply_to(session, request));
  }
}

/// The texts of a lab, which last as long as the lab.
struct Texts {
  std::shared_ptr<const void> owner;
  Json description;
  std::deque<std::string> words;
  std::vector<std::string_view> yes_or_no;
  std::vector<Explanation> explanations;

  std::string_view keep(const Json& object, const char* name) {
    return words.emplace_back(text_of(object, name));
  }
};

/// The part of a grader, which sees no environment.
scripts::Script script_of(const Lab& lab, const std::string& name, const char* part,
                          std::uint64_t seed) {
  scripts::Script script = {.user = "this lab",
                            .name = "the grader",
                            .modules = {},
                            .entry = "grading",
                            .arguments = {{"part", part}, {"seed", seed}, {"number", lab.number}},
                            .interruptible = true,
                            .patience = kPatience};
  const auto add = [&](const std::string& module, const std::string& file,
                       std::span<const LabText> texts) {
    const auto path = fmt::format("graders/{}.py", file);
    script.modules.push_back({module, path, std::string(text_in(texts, path))});
  };
  for (const auto* library : kLibraries) add(library, library, lab_texts());
  add("grader", name, lab.files);
  return script;
}

Lab described(std::span<const LabText> files, const std::shared_ptr<Texts>& texts) {
  const auto& json = texts->description;
  require_schema(json, kSchema, "use the version of Triptych that it was written for");
  for (const auto& name : json.at("yes_or_no"))
    texts->yes_or_no.push_back(texts->words.emplace_back(name.get<std::string>()));
  for (const auto& each : json.at("explanations")) {
    texts->explanations.push_back({texts->keep(each, "id"), each.at("points").get<int>(),
                                   texts->keep(each, "key"), texts->keep(each, "hint")});
  }
  return {.number = json.at("number").get<int>(),
          .version = json.at("version").get<int>(),
          .slug = texts->keep(json, "slug"),
          .title = texts->keep(json, "title"),
          .question = texts->keep(json, "question"),
          .yes_or_no = texts->yes_or_no,
          .explanations = texts->explanations,
          .files = files,
          .owner = texts};
}

void add_grader(Lab& lab, const std::string& name) {
  text_in(lab.files, fmt::format("graders/{}.py", name));
  text_in(lab.files, fmt::format("handouts/{}/answers.json", name));
  lab.grade = [lab, name](const Submission& submission, Bench& bench, Report& report) {
    Session session = {
        .bench = bench, .files = lab.files, .submission = &submission, .report = &report};
    serve(session, script_of(lab, name, "grade", submission.seed()));
  };
  lab.predictions = [lab, name](Bench& bench) {
    Session session = {.bench = bench, .files = lab.files};
    serve(session, script_of(lab, name, "predictions", 0));
    return session.predictions;
  };
}

/// The files of one folder of labs.
struct Folder {
  std::deque<std::string> words;
  std::vector<LabText> texts;

  void add(const fs::path& root, const fs::path& path) {
    const auto& content = words.emplace_back(read_file(root / path, kLargestText));
    texts.push_back({words.emplace_back(path.string()), content});
  }
  void add_all(const fs::path& root, const fs::path& part) {
    std::error_code none;  // no files without the folder
    for (const auto& name : names_in(root / part, none))
      if (fs::is_regular_file(root / part / name)) add(root, part / name);
  }
};

}  // namespace

Lab python_lab(std::span<const LabText> files, const std::string& name,
               std::shared_ptr<const void> owner) {
  const auto path = fmt::format("graders/{}.json", name);
  const auto texts = std::make_shared<Texts>();
  texts->owner = std::move(owner);
  const auto wrong = [&](const std::exception& error) {
    return InvalidArgument(fmt::format("the lab's \"{}\": {}", path, error.what()));
  };
  try {
    texts->description = parse_strict<Json>(std::string(text_in(files, path)));
    auto lab = described(files, texts);
    if (fmt::format("{}-{}", lab.number, lab.slug) != name)
      throw InvalidArgument("its number and slug are not those of its name");
    add_grader(lab, name);
    return lab;
  } catch (const Json::exception& error) {
    throw wrong(error);
  } catch (const Error& error) {
    throw wrong(error);
  }
}

std::vector<Lab> labs_of(std::span<const LabText> files, const std::shared_ptr<const void>& owner) {
  std::vector<Lab> labs;
  for (const auto& file : files) {
    const fs::path path = file.path;
    if (path.parent_path() == "graders" && path.extension() == ".json")
      labs.push_back(python_lab(files, path.stem(), owner));
  }
  std::ranges::sort(labs, {}, &Lab::number);
  return labs;
}

std::vector<Lab> labs_in(const fs::path& folder) {
  const auto all = std::make_shared<Folder>();
  for (const auto* part : {"graders", "benches"}) all->add_all(folder, part);
  std::error_code none;  // no handouts without the folder
  for (const auto& lab : names_in(folder / "handouts", none))
    all->add_all(folder, fs::path("handouts") / lab);
  auto labs = labs_of(all->texts, all);
  if (labs.empty()) {
    throw InvalidArgument(
        fmt::format("\"{}\" has no graders/NUMBER-NAME.json; name a folder of "
                    "labs",
                    folder.string()));
  }
  return labs;
}

}  // namespace triptych::labs
