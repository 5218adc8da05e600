// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/machine_builder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "model_flags.h"
#include "systolic/sim/built_in.h"
#include "systolic/sim/folder.h"
#include "systolic/sim/machine_library.h"
#include "systolic/sim/own_modules.h"
#include "systolic/sim/toolchain.h"

namespace triptych::mmu {
namespace {

namespace fs = std::filesystem;
constexpr int kComplaintLines = 8;
using Command = std::vector<std::string>;
constexpr std::array kRuntimeObjects{"verilated.o", "verilated_fst_c.o", "verilated_threads.o"};

TemporaryObserver& observer() {
  static TemporaryObserver all;
  return all;
}

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void write_file(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  if (!file) throw_errno(fmt::format("cannot write \"{}\"", path.string()));
}

constexpr std::string_view kDraftSuffix = ".tmp";

/// Whether `draft` in a folder of built machines is this user's, and no build holds it.
bool is_abandoned(const fs::path& draft) {
  const int file = ::open(draft.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat status = {};
  const bool abandoned = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                         status.st_uid == ::geteuid() && ::flock(file, LOCK_EX | LOCK_NB) == 0;
  if (file >= 0) ::close(file);
  return abandoned;
}

/// A file of the folder of built machines, which has a temporary name until keep(). The build holds
/// a lock on it, so that a later build recognises and removes the file of a killed one.
class CacheDraft {
 public:
  /// Throws std::system_error when the folder cannot be written.
  explicit CacheDraft(fs::path target) : target_(std::move(target)) {
    std::error_code error;
    fs::create_directories(target_.parent_path(), error);
    remove_abandoned();
    while (!error && !open_locked()) {
      if (errno != EEXIST) error = {errno, std::generic_category()};
    }
    if (!error) return;
    throw std::system_error(error, fmt::format("cannot write to \"{}\"; set XDG_CACHE_HOME to a "
                                               "folder that you can write to",
                                               target_.parent_path().string()));
  }
  CacheDraft(const CacheDraft&) = delete;
  CacheDraft& operator=(const CacheDraft&) = delete;
  ~CacheDraft() {
    if (!kept_) ::unlink(path_.c_str());
    observer().gone(path_);
    ::close(file_);
  }

  /// Copies the file `made`, sealed, to the target.
  void keep(const fs::path& made) {
    seal_library(made, target_.filename().string());
    std::ofstream copy(path_, std::ios::binary);
    copy << std::ifstream(made, std::ios::binary).rdbuf() << std::flush;
    if (!copy) throw_errno(fmt::format("cannot write \"{}\"", path_.string()));
    fs::rename(path_, target_);
    kept_ = true;
  }

 private:
  /// False with errno on failure, and with EEXIST when the name is in use.
  bool open_locked() {
    static std::atomic<unsigned> count = 0;
    path_ = fmt::format("{}.{}.{}{}", target_.string(), getpid(), count++, kDraftSuffix);
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0) return false;
    ::flock(file_, LOCK_EX);
    struct stat status = {};
    // Another build may have removed it before it was locked.
    if (::fstat(file_, &status) != 0 || status.st_nlink == 0) {
      ::close(file_);
      errno = EEXIST;
      return false;
    }
    observer().made(path_);
    return true;
  }
  void remove_abandoned() const {
    std::error_code ignored;
    const auto folder = target_.parent_path();
    for (const auto& name : names_in(folder, ignored))
      if (name.ends_with(kDraftSuffix) && is_abandoned(folder / name))
        fs::remove(folder / name, ignored);
  }

  fs::path target_, path_;
  int file_ = -1;
  bool kept_ = false;
};

/// The words of the flags of this build.
void append_words(Command& command, const char* flags) {
  std::istringstream words(flags);
  for (std::string word; words >> word;) command.push_back(word);
}

/// The first complaint in a log, with the lines below that explain it, indented.
std::string first_complaint(const fs::path& log) {
  std::ifstream file(log);
  std::string text;
  int lines = 0;
  for (std::string line; lines < kComplaintLines && std::getline(file, line);) {
    const bool complains = line.starts_with("%Error") || line.starts_with("%Warning") ||
                           line.find("rror:") != std::string::npos ||
                           line.find("Error") != std::string::npos;
    if (lines > 0 ? line.starts_with("%") : !complains) {
      if (lines > 0) break;
      continue;
    }
    text += fmt::format("  {}\n", line.substr(0, 200));
    ++lines;
  }
  return text;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// The template of every machine's source, for the one called "machine".
std::string named_machine() {
  const auto source =
      std::ranges::find(model_sources(), "systolic/sim/machine.cpp.in", &SourceFile::path);
  std::string text(source->content);
  replace_all(text, "@MODEL@", "machine");
  return text;
}

/// Product of a build, and its places.
struct BuildPlan {
  const MachineConfig& machine;
  ArrayKind array = ArrayKind::Fast;
  Effort effort = Effort::Full;
  fs::path folder;  ///< sources and objects
  fs::path log;
};

/// One machine on its way.
class Build {
 public:
  explicit Build(BuildPlan plan) : plan_(std::move(plan)), sources_(rtl_sources(plan_.machine)) {
    for (const SourceFile& source : model_sources())
      if (source.path.starts_with("systolic/sim/"))
        write_file(plan_.folder / source.path, source.content);
    for (const RtlSource& source : sources_) write_file(copy_of(source), source.content);
    write_file(fs::path(model()) / "machine.cpp", named_machine());
  }

  void verilate() const {
    Command command{toolchain().verilator};
    append_words(command, kVerilatorFlags);
    // Ours are clean under all warnings. In others' code these two style warnings are faults.
    if (!plan_.machine.rtl.empty()) append_words(command, "-Wwarn-BLKSEQ -Wwarn-UNDRIVEN");
    for (const char* word : {"--top-module", "mmu_top", "--prefix", "Vmachine", "--Mdir"})
      command.emplace_back(word);
    command.push_back(model());
    for (const auto& [name, value] : rtl_parameters(plan_.machine, plan_.array))
      command.push_back(fmt::format("-G{}={}", name, value));
    command.push_back("-I" + (plan_.folder / "systolic/rtl").string());
    for (const RtlSource& source : sources_)
      if (!source.name.ends_with(".svh")) command.push_back(copy_of(source).string());
    // It looks for modules that no file declares, and for included files, in its current directory.
    const int status = run_logged(command, plan_.log, plan_.folder, model());
    if (status == 0) return;
    if (plan_.machine.rtl.empty() || status == kNotStarted) fail(command, status);
    throw std::invalid_argument(fmt::format("[rtl] Verilator refuses machine '{}':\n{}{}",
                                            plan_.machine.name, complaint(), ours_hint()));
  }

  /// The model and, where it is not kept yet, Verilator's run time, with nothing visible outside:
  /// other machines, and the program itself, have the same names.
  void compile() const {
    std::string flags = is_quick() ? kQuickFlags : kCompilerFlags;
    if (toolchain().is_clang) flags += fmt::format(" {}", kClangFlags);
    if (is_quick()) write_quick_units();
    Command command{toolchain().make,
                    "-s",
                    "-C",
                    model(),
                    "-f",
                    is_quick() ? "quick.mk" : "Vmachine.mk",
                    fmt::format("-j{}", std::max(1U, std::thread::hardware_concurrency()))};
    command.insert(command.end(), objects().begin(), objects().end());
    const bool kept = is_sealed(runtime_file());
    if (!kept) command.insert(command.end(), kRuntimeObjects.begin(), kRuntimeObjects.end());
    const std::string folder = plan_.folder.string();
    command.insert(command.end(),
                   {fmt::format("CXX={}", toolchain().compiler), fmt::format("OPT_FAST={}", flags),
                    "OPT_GLOBAL=-O1",
                    fmt::format("OPT=-std=c++20 -fPIC -fvisibility=hidden -w -I{} -include {}",
                                folder, folder + "/systolic/sim/verilator_stop.h"),
                    "CFG_CXXFLAGS_STD_NEWEST=", "VM_PARALLEL_BUILDS=0"});
    run(command);
    if (!kept) keep_runtime();
  }

  /// The shared object.
  fs::path link() const {
    fs::path target = plan_.folder / "machine.so";
    Command command{toolchain().compiler, "-shared", runtime_file().string()};
    for (const std::string& object : objects()) command.push_back(model() + "/" + object);
    append_words(command, "-lz -latomic -pthread -Wl,-z,defs -o");
    command.push_back(target.string());
    run(command);
    return target;
  }

 private:
  std::string model() const { return (plan_.folder / "model").string(); }
  fs::path own_folder() const { return plan_.folder / "own"; }
  fs::path copy_of(const RtlSource& source) const {
    return source.own ? own_folder() / source.name : plan_.folder / source.path;
  }

  bool is_quick() const { return plan_.effort == Effort::Quick; }
  const std::vector<std::string>& objects() const {
    static const std::vector<std::string> full{"Vmachine__ALL.o", "machine.o"};
    static const std::vector<std::string> quick{"fast.o", "slow.o"};
    return is_quick() ? quick : full;
  }

  /// The model in two halves with equal compile times: code that runs in every cycle, and code that
  /// runs once, for waves, or around a cycle, which needs no optimiser. Verilator's headers, half
  /// of the work, are read once in each.
  void write_quick_units() const {
    std::string fast, slow;
    std::error_code error;
    for (const auto& name : names_in(model(), error)) {
      if (!name.ends_with(".cpp")) continue;
      const bool is_slow = name == "machine.cpp" || name.ends_with("Slow.cpp") ||
                           name.find("__Trace__") != std::string::npos;
      (is_slow ? slow : fast) += fmt::format("#include \"{}\"\n", name);
    }
    if (error) throw std::system_error(error, fmt::format("cannot list \"{}\"", model()));
    write_file(fs::path(model()) / "fast.cpp", fast);
    write_file(fs::path(model()) / "slow.cpp", slow);
    write_file(fs::path(model()) / "quick.mk",
               "include Vmachine.mk\nslow.o: override OPT_FAST := -O0 -std=c++20\n");
  }

  void keep_runtime() const {
    CacheDraft draft(runtime_file());
    const fs::path made = plan_.folder / "runtime.o";
    Command command{toolchain().compiler, "-r", "-nostdlib", "-o", made.string()};
    for (const char* object : kRuntimeObjects) command.push_back(model() + "/" + object);
    run(command);
    draft.keep(made);
  }

  /// With the files' names as their user knows them.
  std::string complaint() const {
    std::string text = first_complaint(plan_.log);
    if (!plan_.machine.rtl.empty())
      replace_all(text, own_folder().string() + "/",
                  (fs::path(plan_.machine.rtl) / "").lexically_normal().string());
    replace_all(text, plan_.folder.string() + "/", "");
    return text;
  }
  std::string ours_hint() const {
    return fmt::format(
        "the modules of {} are {}; a module keeps its name and its ports; the others, in "
        "systolic/rtl/, are ours (triptych machine rtl writes them); the whole log: {}",
        plan_.machine.rtl, own_module_names(plan_.machine), plan_.log.string());
  }

  void run(const Command& command) const {
    const int status = run_logged(command, plan_.log, plan_.folder);
    if (status != 0) fail(command, status);
  }
  [[noreturn]] void fail(const Command& command, int status) const {
    throw std::runtime_error(fmt::format(
        "[mmu] \"{}\" failed on machine '{}' (exit status {}):\n{}"
        "the whole log: {}\nif a file or a library is missing in it: {}",
        command[0], plan_.machine.name, status, complaint(), plan_.log.string(), kToolsRemedy));
  }

  BuildPlan plan_;
  std::vector<RtlSource> sources_;
};

void remove_outdated(const fs::path& library) {
  std::error_code ignored;
  for (const auto& name : names_in(library.parent_path(), ignored)) {
    const auto path = library.parent_path() / name;
    if (is_outdated(path, library)) fs::remove(path, ignored);
  }
}

}  // namespace

void observe_temporaries(TemporaryObserver told) { observer() = std::move(told); }

BuiltLibrary build_machine(const MachineConfig& machine, ArrayKind array,
                           const BuildOptions& options,
                           const std::function<void(std::string_view)>& step) {
  validate(machine);
  const fs::path full = library_file(machine, array, Effort::Full);
  const fs::path file = library_file(machine, array, options.effort);
  for (const fs::path& there : {full, file})
    if (!options.force && is_sealed(there)) return {there, false};
  toolchain().require();
  CacheDraft draft(file);
  fs::path log = file;
  fs::remove(log.replace_extension("log"));
  const Build build({machine, array, options.effort, options.folder, log});
  step("verilate");
  build.verilate();
  step("compile");
  build.compile();
  step("link");
  draft.keep(build.link());
  fs::remove(log);
  remove_outdated(file);
  return {file, true};
}

}  // namespace triptych::mmu
