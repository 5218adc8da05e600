// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/kept_runtime.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/cache_file.h"
#include "core/io/input_file.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

const std::string kCache = ".cache/triptych/machines/";
constexpr std::int64_t kLargest = std::int64_t{1} << 28;

}  // namespace

KeptRuntime::KeptRuntime(Bench& bench) : bench_(bench), user_(cache_folder() / "machines") {
  copy(user_, [&](const std::string& name) { bench.put(kCache + name, read_file(user_ / name)); });
}

void KeptRuntime::keep() const {
  copy(bench_.folder() / kCache, [&](const std::string& name) {
    if (fs::exists(user_ / name)) return;
    make_folder(user_);
    write_file_atomically(user_ / name, bench_.text(kCache + name));
  });
}

void KeptRuntime::keep(const std::string& built, const std::string& name,
                       const std::function<void(const fs::path&)>& seal) const {
  bench_.put(kCache + name, bench_.text(kCache + built, kLargest));
  seal(bench_.folder() / (kCache + name));
  make_folder(user_);
  write_file_atomically(user_ / name, bench_.text(kCache + name, kLargest));
  std::error_code none;
  fs::remove(log_of(name), none);
}

std::string KeptRuntime::keep_log(const std::string& message, const std::string& name) const {
  std::error_code none;
  const auto logs = names_in(bench_.folder() / kCache, none);
  const auto log =
      std::ranges::find_if(logs, [](const std::string& each) { return each.ends_with(".log"); });
  if (log == logs.end() || !user_.is_absolute()) return message;
  try {
    make_folder(user_);
    write_file_atomically(log_of(name), bench_.text(kCache + *log));
  } catch (const IoError&) {
    return message;
  }
  const auto kept = log_of(name).string(), inside = kCache + *log;
  const auto at = message.find(inside);
  if (at == message.npos) return fmt::format("{}\nthe whole log: {}", message, kept);
  return message.substr(0, at) + kept + message.substr(at + inside.size());
}

fs::path KeptRuntime::log_of(const std::string& name) const {
  return (user_ / name).replace_extension("log");
}

void KeptRuntime::copy(const fs::path& folder,
                       const std::function<void(const std::string& name)>& copy_one) const {
  std::error_code none;
  if (!user_.is_absolute()) return;
  for (const auto& name : names_in(folder, none)) {
    if (!name.starts_with("verilated-") || !name.ends_with(".o")) continue;
    try {
      copy_one(name);
    } catch (const IoError&) {
      return;
    }
  }
}

}  // namespace triptych::labs
