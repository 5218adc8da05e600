// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/file_rules.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <link.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "experiments/confine/sanitizer.h"

namespace triptych::confine {
namespace {

namespace fs = std::filesystem;
using internal::FileDescriptor;

/// Newer than the headers of Debian 12: the attributes of Linux 6.12. Older kernels use the part
/// that they know.
struct RulesetAttributes {
  std::uint64_t files, network, scopes;
};
constexpr std::uint64_t kTruncate = 1U << 14, kDeviceControl = 1U << 15;
constexpr std::uint64_t kBindAndConnect = 3, kAbstractSocketsAndSignals = 3;

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kExecute = kRead | LANDLOCK_ACCESS_FS_EXECUTE;
/// Accesses that a rule about a file may have. Those of directories are refused there.
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                   LANDLOCK_ACCESS_FS_EXECUTE | kTruncate | kDeviceControl;

constexpr const char* kToolchain[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"};
/// Lists without secrets, which run times and compilers read.
constexpr const char* kLists[] = {"/etc/ld.so.cache",
                                  "/etc/ssl/openssl.cnf",
                                  "/etc/localtime",
                                  "/etc/passwd",
                                  "/proc/meminfo",
                                  "/proc/cpuinfo",
                                  "/proc/stat",
                                  "/proc/filesystems",
                                  "/proc/sys/vm/overcommit_memory",
                                  "/sys/devices/system/cpu",
                                  "/sys/devices/system/node",
                                  "/dev/zero",
                                  "/dev/random",
                                  "/dev/urandom"};

std::uint64_t all_accesses(int version) {
  std::uint64_t all = (std::uint64_t{1} << 13) - 1;
  if (version >= 2) all |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) all |= kTruncate;
  if (version >= 5) all |= kDeviceControl;
  return all;
}

/// Builds a list of rules.
class Rules {
 public:
  Rules() : all_(all_accesses(landlock_version())) {
    const int version = landlock_version();
    const RulesetAttributes attributes = {all_, version >= 4 ? kBindAndConnect : 0,
                                          version >= 6 ? kAbstractSocketsAndSignals : 0};
    const auto size = version >= 6 ? sizeof attributes : version >= 4 ? 16U : 8U;
    rules_ = FileDescriptor(
        static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0)));
    if (rules_.get() < 0) fail();
  }

  void allow(const char* path, std::uint64_t accesses) {
    const FileDescriptor place(open(path, O_PATH | O_CLOEXEC));
    struct stat status = {};
    if (place.get() < 0 || fstat(place.get(), &status) != 0) return;  // not on this system
    landlock_path_beneath_attr rule = {};
    rule.allowed_access =
        accesses & all_ & (S_ISDIR(status.st_mode) ? ~std::uint64_t{0} : kOfFiles);
    rule.parent_fd = place.get();
    if (syscall(SYS_landlock_add_rule, rules_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
      fail();
  }
  void allow_all(const fs::path& folder) { allow(folder.c_str(), all_); }
  FileDescriptor finish() { return std::move(rules_); }

 private:
  [[noreturn]] static void fail() {
    throw DeviceError(fmt::format("Landlock refuses a rule: {}", std::strerror(errno)));
  }

  std::uint64_t all_;
  FileDescriptor rules_;
};

std::vector<fs::path> folders_of(const char* variable) {
  std::vector<fs::path> folders;
  const char* text = std::getenv(variable);
  std::istringstream parts(text == nullptr ? "" : text);
  for (std::string part; std::getline(parts, part, ':');)
    if (part.starts_with('/')) folders.emplace_back(fs::path(part).lexically_normal());
  return folders;
}

/// Directories of the PATH outside of the system's: DIRECTORY/bin, and /opt/NAME for /opt/NAME/bin.
/// Other directories of the PATH may belong to anybody.
void allow_path(Rules& rules) {
  for (auto folder : folders_of("PATH")) {
    if (!folder.has_filename()) folder = folder.parent_path();
    if (folder.filename() != "bin" && folder.filename() != "sbin") continue;
    const auto prefix = folder.parent_path();
    rules.allow(prefix.parent_path() == "/opt" ? prefix.c_str() : folder.c_str(), kExecute);
  }
}

int allow_library(dl_phdr_info* loaded, std::size_t /*size*/, void* rules) {
  if (loaded->dlpi_name[0] == '/') static_cast<Rules*>(rules)->allow(loaded->dlpi_name, kExecute);
  return 0;
}

}  // namespace

int landlock_version() {
  static const int version = [] {
    const auto result =
        syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return result < 0 ? 0 : static_cast<int>(result);
  }();
  return version;
}

FileDescriptor file_rules(const fs::path& folder) {
  Rules rules;
  for (const char* path : kToolchain) rules.allow(path, kExecute);
  for (const char* path : kLists) rules.allow(path, kRead);
  if (kSanitized) rules.allow("/proc", kRead);
  rules.allow("/dev/null", kRead | LANDLOCK_ACCESS_FS_WRITE_FILE);
  allow_path(rules);
  rules.allow("/proc/self/exe", kExecute);
  dl_iterate_phdr(allow_library, &rules);
  rules.allow_all(folder);
  return rules.finish();
}

bool apply_file_rules(const FileDescriptor& rules) {
  return syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0;
}

}  // namespace triptych::confine
