// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/submission.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/io/beneath.h"
#include "core/io/output_ledger.h"
#include "core/io/sha256.h"
#include "core/io/strict_json.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;  // of .lab.json
constexpr std::int64_t kMaxText = std::int64_t{1} << 20;
constexpr const char *kState = ".lab.json", *kAnswers = "answers.json", *kOrders = "options";

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// While it lives, files are opened with the rights of the folder's owner, where this process is
/// root's and that is somebody else. A folder of root's own was filled by root.
class AsOwner {
 public:
  explicit AsOwner(const fs::path& folder) {
    struct stat status = {};
    if (geteuid() != 0 || stat(folder.c_str(), &status) != 0 || status.st_uid == 0) return;
    groups_.resize(static_cast<std::size_t>(getgroups(0, nullptr)));
    if (getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0)
      throw IoError("cannot list the groups of this process");
    changed_ = true;
    // The system calls themselves: the library's function would change all threads.
    syscall(SYS_setgroups, 0, nullptr);
    setfsgid(status.st_gid);
    setfsuid(status.st_uid);
  }
  ~AsOwner() {
    if (!changed_) return;
    setfsuid(geteuid());
    setfsgid(getegid());
    syscall(SYS_setgroups, groups_.size(), groups_.data());
  }
  AsOwner(const AsOwner&) = delete;
  AsOwner& operator=(const AsOwner&) = delete;

 private:
  bool changed_ = false;
  std::vector<gid_t> groups_;
};

Json read_object(const fs::path& folder, const char* name) {
  const AsOwner rights(folder);
  const auto text = read_beneath(folder, name, kMaxText);
  try {
    auto json = parse_strict<Json>(text);
    if (!json.is_object()) throw IoError("the JSON is no object {...}");
    return json;
  } catch (const Error& error) {
    throw IoError(fmt::format("\"{}\": {}", (folder / name).string(), error.what()));
  }
}

Json member(const Json& object, const char* group, const std::string& name) {
  const auto found = object.find(group);
  if (found == object.end() || !found->is_object()) return {};
  return found->value(name, Json());
}

}  // namespace

Submission::Submission(fs::path folder, std::uint64_t seed)
    : folder_(std::move(folder)), seed_(seed) {}

Submission::Submission(fs::path folder, LabVersion lab, std::uint64_t seed)
    : Submission(std::move(folder), seed) {
  read_state(lab);
  read_answers();
}

Submission Submission::to_grade(fs::path folder, LabVersion lab, std::uint64_t seed) {
  if (!fs::is_directory(folder))
    throw InvalidArgument(
        fmt::format("\"{}\" is no folder; name the folder of a submission", folder.string()));
  Submission submission(std::move(folder), seed);
  const auto problem_of = [](const auto& read) -> std::string {
    try {
      read();
      return {};
    } catch (const std::exception& error) {
      return shortened(error.what());
    }
  };
  submission.state_problem_ = problem_of([&] { submission.read_state(lab); });
  if (!submission.state_problem_.empty()) submission.state_ = Json::object();
  submission.answers_problem_ = problem_of([&] { submission.read_answers(); });
  return submission;
}

void Submission::read_state(LabVersion lab) {
  if (!has(kState))
    throw InvalidArgument(
        fmt::format("\"{}\" is not the folder of a lab (it has no {}); begin with: triptych lab "
                    "start {}",
                    folder_.string(), kState, lab.number));
  state_ = read_object(folder_, kState);
  const auto present = [&](const char* key) { return state_.value(key, Json()); };
  if (present("lab") != lab.number)
    throw InvalidArgument(fmt::format("\"{}\" is of lab {}, not of lab {}", folder_.string(),
                                      triptych::shown(present("lab").dump()), lab.number));
  try {
    require_schema(state_, kSchema, "begin anew in another folder (triptych lab start)");
  } catch (const Error& error) {
    throw InvalidArgument(fmt::format("\"{}\": {}", (folder_ / kState).string(), error.what()));
  }
  if (present("version") != lab.version)
    throw InvalidArgument(fmt::format(
        "\"{}\" has version {} of lab {}, and this program has version {} with other questions; "
        "begin in another folder (triptych lab start {}), or use the program that made it",
        folder_.string(), triptych::shown(present("version").dump()), lab.number, lab.version,
        lab.number));
}

void Submission::read_answers() { answers_ = read_object(folder_, kAnswers); }

std::string Submission::text(const std::string& name) const {
  const AsOwner rights(folder_);
  return read_beneath(folder_, name, kMaxText);
}

bool Submission::has(const std::string& name) const {
  const AsOwner rights(folder_);
  return fs::is_directory(folder_) && is_file_beneath(folder_, name);
}

Json Submission::prediction(const std::string& name) const {
  return member(answers_, "predictions", name);
}

Json Submission::explanation(const std::string& name) const {
  return member(answers_, "explanations", name);
}

std::string Submission::predictions_hash() const {
  // nlohmann::json sorts the names.
  const nlohmann::json sorted = nlohmann::json::parse(answers_.value("predictions", Json()).dump());
  Sha256 hash;
  const auto text = sorted.dump();
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

std::string Submission::why_predictions_do_not_count() const {
  if (!state_problem_.empty()) return "predictions do not count: " + state_problem_;
  const auto committed = state_.value("predictions_sha256", Json());
  if (!committed.is_string())
    return "predictions count when they are committed before the first check (triptych lab "
           "predict), and these were not";
  if (committed != predictions_hash())
    return fmt::format("answers.json has other predictions than those committed at {}{}",
                       triptych::shown(state_.value("predicted", Json("?")).dump()),
                       changed_prediction());
  return {};
}

bool Submission::can_still_predict() const {
  return !state_.contains("predictions_sha256") && !state_.contains("results_seen");
}

/// ": ..." about the first difference from the committed predictions. Nothing where none is known
/// to.
std::string Submission::changed_prediction() const {
  const auto committed = state_.value("predictions", Json());
  if (!committed.is_object()) return {};
  for (const auto& [name, value] : committed.items()) {
    const auto now = prediction(name);
    if (now.dump() != value.dump())
      return fmt::format(": \"{}\" was {} and is {}; put it back, and they count again", name,
                         triptych::shown(value.dump()), triptych::shown(now.dump()));
  }
  return {};
}

void Submission::commit_predictions() {
  const auto seen = state_.value("results_seen", Json());
  if (!seen.is_null())
    throw InvalidArgument(
        fmt::format("a check at {} has shown what the predictions are about, so that they no "
                    "longer count; begin anew in another folder (triptych lab start) if you may",
                    seen.dump()));
  state_["predictions"] = answers_.value("predictions", Json());
  state_["predictions_sha256"] = predictions_hash();
  state_["predicted"] = now();
  write_state();
}

void Submission::note_that_results_were_seen() {
  if (!state_problem_.empty() || state_.contains("results_seen")) return;
  state_["results_seen"] = now();
  std::error_code error;
  const auto writable = fs::status(folder_, error).permissions() & fs::perms::owner_write;
  if (!error && writable != fs::perms::none) write_state();
}

void Submission::write_state() const {
  const AsOwner rights(folder_);
  write_own_file(folder_ / kState, state_.dump(2) + "\n");
}

std::string Submission::handout_letter(const std::string& question,
                                       const std::string& letter) const {
  const auto order = member(state_, kOrders, question);
  const auto place = static_cast<std::size_t>(letter.at(0) - 'a');
  if (!order.is_string() || order.get_ref<const std::string&>().size() <= place) return letter;
  return std::string(1, order.get_ref<const std::string&>()[place]);
}

void Submission::begin(const fs::path& folder, LabVersion lab,
                       const std::map<std::string, std::string>& option_orders) {
  Json state = {{"schema", kSchema}, {"lab", lab.number}, {"version", lab.version}};
  if (!option_orders.empty()) state[kOrders] = option_orders;
  write_own_file(folder / kState, state.dump(2) + "\n");
}

}  // namespace triptych::labs
