// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/bench.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "core/base/error.h"
#include "core/io/beneath.h"
#include "core/io/file_descriptor.h"
#include "core/io/npy.h"

namespace triptych::labs {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kLargestArray = std::int64_t{1} << 24;

using internal::FileDescriptor;
using internal::throw_errno;

/// The directory `name` of `folder`, made where it is missing. Code of others may have put a link
/// there, which is not followed.
FileDescriptor directory_in(const FileDescriptor& folder, const fs::path& name) {
  if (mkdirat(folder.get(), name.c_str(), S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH) != 0 &&
      errno != EEXIST)
    throw_errno("make", name);
  FileDescriptor opened(
      openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.get() < 0) throw_errno("open", name);
  return opened;
}

}  // namespace

Bench::Bench() : outer_("lab"), folder_(outer_.path() / "work") { fs::create_directory(folder_); }

void Bench::put(const std::string& name, std::string_view content) {
  FileDescriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const fs::path path = name;
  for (const auto& part : path.parent_path()) folder = directory_in(folder, part);
  const auto file_name = path.filename();
  unlinkat(folder.get(), file_name.c_str(), 0);  // of another user, or a link
  const FileDescriptor file(openat(folder.get(), file_name.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                   S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
  for (auto left = content; file.get() >= 0 && !left.empty();) {
    const auto count =
        internal::retry_interrupted([&] { return write(file.get(), left.data(), left.size()); });
    if (count < 0) throw_errno("write", folder_ / path);
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  if (file.get() < 0) throw_errno("write", folder_ / path);
}

void Bench::put(const std::string& name, const Tensor& tensor) { put(name, encode_npy(tensor)); }

void Bench::remove(const std::string& name) { fs::remove(folder_ / name); }

Ending Bench::run(const std::vector<std::string>& command, const Limits& limits) {
  return confine::run_confined(command, folder_, limits);
}

fs::path Bench::plain(const std::string& name) const {
  auto path = folder_;
  for (const auto& part : fs::path(name)) {
    path /= part;
    const auto type = fs::symlink_status(path).type();
    if (type != fs::file_type::regular && type != fs::file_type::directory)
      throw IoError(fmt::format(
          "no file \"{}\" was written; did the code end too early, or remove it?", name));
    // The second name may be anywhere, and this one somebody else's file.
    if (type == fs::file_type::regular && fs::hard_link_count(path) != 1)
      throw IoError(fmt::format("\"{}\" has a second name (hard link)", name));
  }
  return path;
}

std::string Bench::text(const std::string& name, std::int64_t max_bytes) const {
  plain(name);
  return read_beneath(folder_, name, max_bytes);
}

Tensor Bench::array(const std::string& name) const { return load_npy(plain(name), kLargestArray); }

std::string Bench::why(const Ending& ending, const Limits& limits) const {
  if (ending.cause != Cause::Exited || ending.error.empty())
    return "the run " + ending.said(limits);
  constexpr std::string_view kBegin = "triptych: ";  // of each message
  auto text = first_lines(ending.error, 8, folder_.string());
  if (text.starts_with(kBegin)) text.erase(0, kBegin.size());
  return text;
}

std::string first_lines(const std::string& text, std::size_t count, const std::string& hidden) {
  std::istringstream stream(text);
  std::string result;
  std::size_t lines = 0;
  for (std::string line; lines < count && std::getline(stream, line);) {
    for (auto at = line.find(hidden + "/"); !hidden.empty() && at != line.npos;
         at = line.find(hidden + "/", at))
      line.erase(at, hidden.size() + 1);
    if (line.empty()) continue;
    result += (lines++ == 0 ? "" : "\n") + line.substr(0, 600);
  }
  return result;
}

}  // namespace triptych::labs
