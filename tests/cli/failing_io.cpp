// A library to be preloaded: it fails one call of those that touch files below a folder.
//   TRIPTYCH_FAULT_FOLDER  the folder
//   TRIPTYCH_FAULT_AT      number of the call that fails, from 1. 0: none
//   TRIPTYCH_FAULT_ERROR   errno that it fails with. 0: it writes or reads half of it
//   TRIPTYCH_FAULT_LOG     a file that gets a line for each call: number, name
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// The function of that name in the libraries that this one stands before.
template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));  // NOLINT: as POSIX has it
}

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

/// True for paths below the folder. Relative ones count as paths below it.
bool is_below(const char* path) {
  const char* folder = std::getenv("TRIPTYCH_FAULT_FOLDER");
  return folder != nullptr && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_below(int descriptor) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const auto length = ::readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = '\0';
  return is_below(path);
}

enum class Fate { Passes, Fails, Halves };

/// Counts a call below the folder, and returns its fate.
template <class Place>
Fate fate(const char* call, Place place) {
  static std::atomic<int> calls = 0;
  if (!is_below(place)) return Fate::Passes;
  const int number = ++calls;
  if (const char* log = std::getenv("TRIPTYCH_FAULT_LOG")) {
    char line[64];
    const int length = std::snprintf(line, sizeof line, "%d %s\n", number, call);
    const auto file = ::syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::syscall(SYS_write, file, line, length);
    ::syscall(SYS_close, file);
  }
  if (number != number_in("TRIPTYCH_FAULT_AT")) return Fate::Passes;
  errno = number_in("TRIPTYCH_FAULT_ERROR");
  return errno == 0 ? Fate::Halves : Fate::Fails;
}

/// Bytes to ask for: half of them for a call that is short, but never none.
std::size_t part(Fate fate, std::size_t count) {
  return fate == Fate::Halves && count > 1 ? count / 2 : count;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : mode_t{0};
  va_end(list);
  if (fate("open", path) == Fate::Fails) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat(int folder, const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : mode_t{0};
  va_end(list);
  if (fate("openat", folder) == Fate::Fails) return -1;
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
int openat64(int folder, const char* path, int flags, ...) __attribute__((alias("openat")));

FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  return fate("fopen", path) == Fate::Fails ? nullptr : real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) __attribute__((alias("fopen")));

ssize_t read(int descriptor, void* bytes, std::size_t count) {
  const auto what = fate("read", descriptor);
  if (what == Fate::Fails) return -1;
  return ::syscall(SYS_read, descriptor, bytes, part(what, count));
}
ssize_t pread(int descriptor, void* bytes, std::size_t count, off_t offset) {
  const auto what = fate("pread", descriptor);
  if (what == Fate::Fails) return -1;
  return ::syscall(SYS_pread64, descriptor, bytes, part(what, count), offset);
}
ssize_t pread64(int descriptor, void* bytes, std::size_t count, off_t offset)
    __attribute__((alias("pread")));
ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  const auto what = fate("write", descriptor);
  if (what == Fate::Fails) return -1;
  return ::syscall(SYS_write, descriptor, bytes, part(what, count));
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset) {
  const auto what = fate("pwrite", descriptor);
  if (what == Fate::Fails) return -1;
  return ::syscall(SYS_pwrite64, descriptor, bytes, part(what, count), offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t count, off_t offset)
    __attribute__((alias("pwrite")));

int fsync(int descriptor) {
  return fate("fsync", descriptor) == Fate::Fails
             ? -1
             : static_cast<int>(::syscall(SYS_fsync, descriptor));
}
int sync_file_range(int descriptor, off64_t offset, off64_t count, unsigned flags) {
  if (fate("sync_file_range", descriptor) == Fate::Fails) return -1;
  return static_cast<int>(::syscall(SYS_sync_file_range, descriptor, offset, count, flags));
}
int ftruncate(int descriptor, off_t length) {
  if (fate("ftruncate", descriptor) == Fate::Fails) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, length));
}
int rename(const char* from, const char* to) {
  return fate("rename", to) == Fate::Fails ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  if (fate("renameat", to_folder) == Fate::Fails) return -1;
  return static_cast<int>(::syscall(SYS_renameat, from_folder, from, to_folder, to));
}
int unlinkat(int folder, const char* path, int flags) {
  if (fate("unlinkat", folder) == Fate::Fails) return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}
int unlink(const char* path) {
  return fate("unlink", path) == Fate::Fails ? -1 : static_cast<int>(::syscall(SYS_unlink, path));
}
int mkdir(const char* path, mode_t mode) {
  return fate("mkdir", path) == Fate::Fails ? -1
                                            : static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

}  // extern "C"
