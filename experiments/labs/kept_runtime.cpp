// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/kept_runtime.h"

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/cache_file.h"
#include "core/io/input_file.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

const std::string kCache = ".cache/triptych/machines/";

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
  constexpr std::int64_t kLargest = std::int64_t{1} << 28;
  bench_.put(kCache + name, bench_.text(kCache + built, kLargest));
  seal(bench_.folder() / (kCache + name));
  make_folder(user_);
  write_file_atomically(user_ / name, bench_.text(kCache + name, kLargest));
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
