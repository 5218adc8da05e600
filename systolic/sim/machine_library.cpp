// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/machine_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "model_flags.h"
#include "systolic/sim/built_in.h"
#include "systolic/sim/own_modules.h"
#include "systolic/sim/toolchain.h"

namespace triptych::mmu {
namespace {

/// FNV-1a: enough against accidents.
class Hash {
 public:
  Hash& add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    value_ = (value_ ^ text.size()) * 0x100000001B3;
    return *this;
  }
  std::string hex() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

constexpr std::size_t kSealSize = 16;

/// Libraries in it are loaded: it never depends on the current directory.
std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path root;
  if (cache != nullptr && std::filesystem::path(cache).is_absolute())
    root = cache;
  else if (home != nullptr && std::filesystem::path(home).is_absolute())
    root = std::filesystem::path(home) / ".cache";
  else if (const passwd* user = getpwuid(getuid()))
    root = std::filesystem::path(user->pw_dir) / ".cache";
  else
    throw std::runtime_error("[mmu] there is no place for built machines: set XDG_CACHE_HOME");
  return root / "triptych" / "machines";
}

/// Over the tools, their flags, and the files around a model.
const Hash& common_hash() {
  static const Hash hash = [] {
    Hash common;
    common.add(kVerilatorFlags).add(kCompilerFlags).add(kQuickFlags).add(kClangFlags);
    common.add(toolchain().identity);
    for (const SourceFile& source : model_sources())
      if (source.path.starts_with("systolic/sim/")) common.add(source.path).add(source.content);
    return common;
  }();
  return hash;
}

/// Begin of a name that all builds of one folder of modules share. "": there is no folder.
std::string folder_mark(const MachineConfig& machine) {
  if (machine.rtl.empty()) return {};
  const auto folder = std::filesystem::weakly_canonical(std::filesystem::absolute(machine.rtl));
  return fmt::format("-own-{}", Hash().add(folder.string()).hex());
}

}  // namespace

RtlParameters rtl_parameters(const MachineConfig& machine, ArrayKind array) {
  RtlParameters parameters{{"Rows", machine.rows},
                           {"Columns", machine.columns},
                           {"PeKind", machine.pe == PeKind::Int8 ? 1 : 0},
                           {"PeLatency", machine.pe_latency},
                           {"BufferRows", machine.buffer_rows},
                           {"AccumulatorRows", machine.accumulator_rows},
                           {"WeightTiles", machine.weight_tiles},
                           {"QueueDepth", machine.queue_depth},
                           {"ArrayKind", array == ArrayKind::Grid ? 1 : 0}};
  if (machine.has_output_stationary()) parameters.emplace_back("OutputStationary", 1);
  if (machine.has_vector_unit()) parameters.emplace_back("VectorRows", machine.vector_rows);
  return parameters;
}

std::filesystem::path library_file(const MachineConfig& machine, ArrayKind array, Effort effort) {
  Hash hash = common_hash();
  for (const RtlSource& source : rtl_sources(machine))
    hash.add(source.name).add(source.content).add(source.own ? "own" : "ours");
  for (const auto& [name, value] : rtl_parameters(machine, array))
    hash.add(fmt::format("{}={}", name, value));
  return cache_folder() / fmt::format("{}x{}-{}-{}{}{}-{}.so", machine.rows, machine.columns,
                                      to_string(machine.pe), to_string(array),
                                      effort == Effort::Quick ? "-quick" : "", folder_mark(machine),
                                      hash.hex());
}

bool is_outdated(const std::filesystem::path& file, const std::filesystem::path& library) {
  const std::string name = file.filename().string(), own = library.filename().string();
  return own.find("-own-") != std::string::npos && name != own && name.ends_with(".so") &&
         name.starts_with(own.substr(0, own.rfind('-') + 1));
}

std::filesystem::path runtime_file() {
  return cache_folder() / fmt::format("verilated-{}.o", common_hash().hex());
}

void seal_library(const std::filesystem::path& file, const std::string& name) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  std::ofstream out(file, std::ios::binary | std::ios::app);
  out << Hash().add(name).add(content.view()).hex() << std::flush;
  if (!out)
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("cannot write \"{}\"", file.string()));
}

bool is_sealed(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  std::ostringstream all;
  all << in.rdbuf();
  const std::string_view content = all.view();
  if (content.size() <= kSealSize) return false;
  const std::size_t size = content.size() - kSealSize;
  return Hash().add(file.filename().string()).add(content.substr(0, size)).hex() ==
         content.substr(size);
}

std::unique_ptr<RtlModel> open_library(const std::filesystem::path& file) {
  // A file cut short would not fail in dlopen but when its pages are touched.
  if (!is_sealed(file))
    throw std::runtime_error(fmt::format("the built RTL \"{}\" is damaged", file.string()));
  // It stays open: the model's code may run as long as the process does.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* make = library == nullptr ? nullptr : dlsym(library, "triptych_model_machine");
  if (make == nullptr)
    throw std::runtime_error(
        fmt::format("the built RTL \"{}\" cannot be opened: {}", file.string(), dlerror()));
  return std::unique_ptr<RtlModel>(reinterpret_cast<RtlModel* (*)()>(make)());
}

}  // namespace triptych::mmu
