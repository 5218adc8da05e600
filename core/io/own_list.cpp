// SPDX-License-Identifier: Apache-2.0
#include "core/io/own_list.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/list_text.h"
#include "core/io/beneath.h"

namespace triptych::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashLength = 64;
constexpr std::string_view kGap = "  ";  // between hash and name
constexpr std::string_view kRun = "# run ";
constexpr std::int64_t kMaxListBytes = std::int64_t{1} << 30;
constexpr std::chrono::seconds kPatience{60};

[[noreturn]] void refuse(const fs::path& path, const std::string& problem) {
  throw InvalidArgument(
      fmt::format("\"{}\" {}: nothing is written beside it, replaced or deleted; move it away, or "
                  "give the option out another place",
                  path.string(), problem));
}

bool is_hash(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// The beginning of a line, which a full disk or a crash can leave.
bool is_cut(std::string_view line) {
  if (kRun.starts_with(line)) return true;
  if (line.starts_with('\\')) line.remove_prefix(1);
  const auto hash = line.substr(0, std::min(line.find(' '), kHashLength));
  const auto rest = line.substr(hash.size());
  return is_hash(hash) && (rest.empty() || (hash.size() == kHashLength && kGap.starts_with(rest)));
}

bool is_escaped(char c) { return c == '\n' || c == '\r' || c == '\\'; }

std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (is_escaped(c)) text += '\\';
    text += c == '\n' ? 'n' : c == '\r' ? 'r' : c;
  }
  return text;
}

/// Nothing for a wrong escape.
std::optional<std::string> unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      name += text[i];
      continue;
    }
    const char c = ++i < text.size() ? text[i] : '\0';
    if (c != 'n' && c != 'r' && c != '\\') return std::nullopt;
    name += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return name;
}

/// Adds one line to `list`. Returns the problem, or an empty text.
std::string take_line(std::string_view line, OwnList& list) {
  if (is_cut(line)) return "";
  const bool escape = line.starts_with('\\');
  const bool run = line.starts_with(kRun);
  auto rest = line.substr(run ? kRun.size() : escape ? 1 : 0);
  const auto hash = run ? std::string_view() : rest.substr(0, kHashLength);
  if (!run) {
    if (hash.size() != kHashLength || !is_hash(hash) || !rest.substr(kHashLength).starts_with(kGap))
      return "is no SHA-256 with the name of a file";
    rest.remove_prefix(kHashLength + kGap.size());
  }
  const auto name = run || escape ? unescaped(rest) : std::optional(std::string(rest));
  if (!name) return "has a wrong escape";
  if (run) {
    list.runs.insert(*name);
    return "";
  }
  if (!stays_beneath(*name) || fs::path(*name).lexically_normal().native() != *name)
    return "names a file that is not within the folder";
  list.files.emplace(*name, hash);
  return "";
}

FileDescriptor open_list(int folder, const fs::path& path, int flags) {
  FileDescriptor file = open_beneath(folder, kOwnList, flags | O_NONBLOCK | O_NOCTTY, 0666);
  if (file.get() < 0 && errno == ENOENT) return file;
  if (file.get() < 0 && errno == ELOOP) refuse(path, "is a symbolic link");
  if (file.get() < 0 && (errno == EISDIR || errno == ENXIO)) refuse(path, "is no regular file");
  if (file.get() < 0) throw_errno("open", path);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_errno("examine", path);
  if (!S_ISREG(status.st_mode)) refuse(path, "is no regular file");
  if (status.st_nlink > 1) refuse(path, fmt::format("has {} names (hard links)", status.st_nlink));
  if (status.st_size > kMaxListBytes) refuse(path, "is too large for a list of files");
  return file;
}

std::int64_t size_of(const FileDescriptor& file, const fs::path& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_errno("examine", path);
  return status.st_size;
}

std::string content_of(const FileDescriptor& file, const fs::path& path) {
  std::string text;
  std::string part(std::size_t{1} << 16, '\0');
  for (;;) {
    const auto count = retry_interrupted([&] {
      return ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
    });
    if (count < 0) throw_errno("read", path);
    if (count == 0) return text;
    text.append(part, 0, static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string own_line(std::string_view hash, std::string_view name) {
  const bool escape = std::ranges::any_of(name, is_escaped);
  return fmt::format("{}{}{}{}\n", escape ? "\\" : "", hash, kGap,
                     escape ? escaped(name) : std::string(name));
}

std::string run_line(std::string_view run) { return fmt::format("{}{}\n", kRun, escaped(run)); }

OwnList parse_own_list(std::string_view text, const fs::path& path) {
  OwnList list;
  list.bytes = std::ssize(text);
  for (int number = 1; const auto line : split_lines(text)) {
    const auto problem = take_line(line, list);
    if (!problem.empty())
      refuse(path, fmt::format("is not this program's: line {} {}", number, problem));
    ++number;
  }
  return list;
}

OpenOwnList::OpenOwnList(int folder, const fs::path& shown)
    : path_(shown / kOwnList), file_(open_list(folder, path_, O_RDWR | O_CREAT | O_APPEND)) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const auto locked = [&] {
    return retry_interrupted([&] { return ::flock(file_.get(), LOCK_EX | LOCK_NB); }) == 0 ||
           errno != EWOULDBLOCK;  // a file system without locks
  };
  while (!locked()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw IoError(fmt::format("\"{}\" is in use by another command, which does not let go of it",
                                path_.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void OpenOwnList::read(OwnList& list) const {
  if (size_of(file_, path_) != list.bytes)  // lines are only ever appended
    list = parse_own_list(content_of(file_, path_), path_);
}

void OpenOwnList::append(OwnList& list, std::string line) {
  const auto size = size_of(file_, path_);
  char last = '\n';
  if (size > 0 && ::pread(file_.get(), &last, 1, size - 1) != 1) throw_errno("read", path_);
  if (last != '\n') line.insert(line.begin(), '\n');  // a full disk cut the line before
  const auto count =
      retry_interrupted([&] { return ::write(file_.get(), line.data(), line.size()); });
  if (count != std::ssize(line)) throw_errno("write", path_);
  list.bytes += count;
}

std::optional<OwnList> read_own_list(int folder, const fs::path& shown) {
  const auto path = shown / kOwnList;
  const auto file = open_list(folder, path, O_RDONLY);
  if (file.get() < 0) return std::nullopt;
  return parse_own_list(content_of(file, path), path);
}

}  // namespace triptych::internal
