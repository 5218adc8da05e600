// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/machine_builder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "model_flags.h"
#include "systolic/sim/built_in.h"
#include "systolic/sim/machine_library.h"
#include "systolic/sim/toolchain.h"

namespace triptych::mmu {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

/// Removed with all that is in it, or at it.
struct Temporary {
  fs::path path;
  ~Temporary() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void write_file(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  if (!file) throw_errno(fmt::format("cannot write \"{}\"", path.string()));
}

fs::path make_temporary_folder() {
  std::string name = (fs::temp_directory_path() / "triptych-machine-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw_errno(fmt::format("cannot make the folder \"{}\"; set TMPDIR to another", name));
  return name;
}

/// A new file of this process next to `target`, to be renamed to it.
fs::path begin_target(const fs::path& target) {
  fs::path temporary = fmt::format("{}.{}.tmp", target.string(), getpid());
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error || !std::ofstream(temporary))
    throw std::system_error(error ? error : std::error_code(errno, std::generic_category()),
                            fmt::format("cannot write to \"{}\"; set XDG_CACHE_HOME to a folder "
                                        "that you can write to",
                                        target.parent_path().string()));
  return temporary;
}

/// The words of the flags of this build.
void append_words(Command& command, const char* flags) {
  std::istringstream words(flags);
  for (std::string word; words >> word;) command.push_back(word);
}

/// The first lines of a log that name an error, indented.
std::string errors_in(const fs::path& log) {
  std::ifstream file(log);
  std::string errors;
  int count = 0;
  for (std::string line; count < 5 && std::getline(file, line);) {
    if (line.find("rror:") == std::string::npos && line.find("Error") == std::string::npos)
      continue;
    errors += fmt::format("  {}\n", line.substr(0, 200));
    ++count;
  }
  return errors;
}

/// The template of every machine's source, for the one called "machine".
std::string named_machine() {
  const auto source =
      std::ranges::find(model_sources(), "systolic/sim/machine.cpp.in", &SourceFile::path);
  std::string text(source->content);
  const std::string_view place = "@MODEL@";
  for (std::size_t at = 0; (at = text.find(place)) != std::string::npos;)
    text.replace(at, place.size(), "machine");
  return text;
}

/// One machine on its way: its sources and objects in `folder`, its log in `log`.
class Build {
 public:
  Build(const MachineConfig& machine, ArrayKind array, fs::path folder, fs::path log)
      : machine_(machine), array_(array), folder_(std::move(folder)), log_(std::move(log)) {
    for (const SourceFile& source : model_sources())
      write_file(folder_ / source.path, source.content);
    write_file(folder_ / "machine.cpp", named_machine());
  }

  void verilate() const {
    Command command{toolchain().verilator};
    append_words(command, kVerilatorFlags);
    for (const char* word : {"--top-module", "mmu_top", "--prefix", "Vmachine", "--Mdir"})
      command.emplace_back(word);
    command.push_back(model());
    for (const auto& [name, value] : rtl_parameters(machine_, array_))
      command.push_back(fmt::format("-G{}={}", name, value));
    for (const SourceFile& source : model_sources())
      if (source.path.starts_with("systolic/rtl/"))
        command.push_back((folder_ / source.path).string());
    run(command);
  }

  /// The model and Verilator's run time, with nothing visible outside: other machines, and the
  /// program itself, have the same names.
  void compile() const {
    std::string flags = kCompilerFlags;
    if (toolchain().is_clang) flags += fmt::format(" {}", kClangFlags);
    run({toolchain().make, "-s", "-C", model(), "-f", "Vmachine.mk",
         fmt::format("-j{}", std::max(1U, std::thread::hardware_concurrency())), "Vmachine__ALL.o",
         "verilated.o", "verilated_fst_c.o", "verilated_threads.o",
         fmt::format("CXX={}", toolchain().compiler), fmt::format("OPT_FAST={}", flags),
         "OPT_GLOBAL=-O1",
         fmt::format("OPT=-std=c++20 -fPIC -fvisibility=hidden -w -include {}",
                     (folder_ / "systolic/sim/verilator_stop.h").string()),
         "CFG_CXXFLAGS_STD_NEWEST=", "VM_PARALLEL_BUILDS=0"});
  }

  void link(const fs::path& target) const {
    std::string root = output_of({toolchain().verilator, "--getenv", "VERILATOR_ROOT"});
    root.erase(root.find_last_not_of("\r\n") + 1);
    Command command{toolchain().compiler};
    append_words(command, "-shared -O1 -std=c++20 -fPIC -fvisibility=hidden -w");
    for (const std::string& folder :
         {folder_.string(), model(), root + "/include", root + "/include/vltstd"})
      command.push_back("-I" + folder);
    command.push_back((folder_ / "machine.cpp").string());
    for (const char* object :
         {"Vmachine__ALL.o", "verilated.o", "verilated_fst_c.o", "verilated_threads.o"})
      command.push_back(model() + "/" + object);
    append_words(command, "-lz -latomic -pthread -Wl,-z,defs -o");
    command.push_back(target.string());
    run(command);
  }

 private:
  std::string model() const { return (folder_ / "model").string(); }

  void run(const Command& command) const {
    const int status = run_logged(command, log_);
    if (status == 0) return;
    throw std::runtime_error(fmt::format(
        "[mmu] \"{}\" failed on machine '{}' (exit status {}):\n{}"
        "the whole log: {}\nif a file or a library is missing in it: {}",
        command[0], machine_.name, status, errors_in(log_), log_.string(), kToolsRemedy));
  }

  const MachineConfig& machine_;
  ArrayKind array_;
  fs::path folder_;
  fs::path log_;
};

}  // namespace

BuiltLibrary build_machine(const MachineConfig& machine, ArrayKind array, bool force,
                           const std::function<void(std::string_view)>& step) {
  validate(machine);
  const fs::path file = library_file(machine, array);
  if (!force && is_sealed(file)) return {file, false};
  toolchain().require();
  const Temporary target{begin_target(file)};
  const Temporary folder{make_temporary_folder()};
  fs::path log = file;
  fs::remove(log.replace_extension("log"));
  const Build build(machine, array, folder.path, log);
  step("verilate");
  build.verilate();
  step("compile");
  build.compile();
  step("link");
  build.link(target.path);
  seal_library(target.path, file.filename().string());
  fs::rename(target.path, file);
  fs::remove(log);
  return {file, true};
}

}  // namespace triptych::mmu
