// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/system_calls.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "experiments/confine/sanitizer.h"

namespace triptych::confine {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr int kFchmodat2 = 452;  // the same number everywhere, and newer than Debian 12's headers

/// The last number of Linux 6.10 (mseal). The calls of x32 lie above it, too.
constexpr std::uint32_t kLastKnown = 462;

/// A comparison of half an argument: (half & mask) == value, or its reverse. Both processors of
/// this filter are little-endian.
struct Condition {
  unsigned argument = 0;
  std::uint32_t mask = 0, value = 0;
  bool equal = true;
  bool upper = false;  ///< half of the 64 bits
};

/// Calls that reach other processes, the network, mounts, kernel features with a long history of
/// faults, or memory that no limit counts.
constexpr int kDenied[] = {
    // Network. A socket's buffers are memory, too.
    SYS_socket,
    SYS_socketpair,
    // Memory and descriptors of other processes.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_migrate_pages,
    SYS_move_pages,
    // Priorities of other processes of the same user.
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_sched_setattr,
    // Namespaces and mounts.
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    // Memory outside of limits, and objects that outlive a process.
    SYS_memfd_create,
    SYS_memfd_secret,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgctl,
    SYS_semget,
    SYS_semctl,
    SYS_mq_open,
    SYS_mq_unlink,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    // Parts of the kernel that no compiler needs.
    SYS_bpf,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_userfaultfd,
    SYS_perf_event_open,
    SYS_fanotify_init,
    SYS_inotify_init1,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_syslog,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_lookup_dcookie,
    // Landlock does not see these changes of files outside: owner, mode, attributes, length.
    SYS_fchmod,
    SYS_fchmodat,
    kFchmodat2,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
#if defined(__x86_64__)
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_inotify_init,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_kexec_file_load,
#endif
};

class Program {
 public:
  Program() {
    load(offsetof(seccomp_data, arch));
    put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    put(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastKnown, 0, 1));
    answer(SECCOMP_RET_ERRNO | ENOSYS);
  }

  void deny(int call, int error = EPERM) {
    put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
  }

  /// Denies the call where all of the conditions hold.
  void deny_where(int call, std::initializer_list<Condition> conditions) {
    const auto length = static_cast<std::uint8_t>(3 * conditions.size() + 2);
    put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, length));
    auto left = static_cast<std::uint8_t>(length - 1);
    for (const auto& [argument, mask, value, equal, upper] : conditions) {
      load(offsetof(seccomp_data, args) + 8 * argument + (upper ? 4 : 0));
      put(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
      left = static_cast<std::uint8_t>(left - 3);
      const std::uint8_t fails = left;
      put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, equal ? std::uint8_t{0} : fails,
                   equal ? fails : std::uint8_t{0}));
    }
    answer(SECCOMP_RET_ERRNO | std::uint32_t{EPERM});
    load(offsetof(seccomp_data, nr));
  }

  std::vector<sock_filter> finish() {
    answer(SECCOMP_RET_ALLOW);
    return std::move(code_);
  }

 private:
  void put(sock_filter instruction) { code_.push_back(instruction); }
  void load(std::size_t offset) {
    put(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void answer(std::uint32_t value) { put(BPF_STMT(BPF_RET | BPF_K, value)); }

  std::vector<sock_filter> code_;
};

constexpr std::uint32_t kAll = ~0U;

/// Files that run as their owner, made by a student's code, would serve an accomplice.
void deny_set_user_id(Program& program) {
  constexpr std::uint32_t bits = S_ISUID | S_ISGID;
  program.deny_where(SYS_mkdirat, {{2, bits, 0, false}});
  program.deny_where(SYS_mknodat, {{2, bits, 0, false}});
  program.deny_where(SYS_openat, {{2, O_CREAT, O_CREAT}, {3, bits, 0, false}});
#if defined(__x86_64__)
  program.deny_where(SYS_mkdir, {{1, bits, 0, false}});
  program.deny_where(SYS_mknod, {{1, bits, 0, false}});
  program.deny_where(SYS_creat, {{1, bits, 0, false}});
  program.deny_where(SYS_open, {{1, O_CREAT, O_CREAT}, {2, bits, 0, false}});
#endif
}

/// Landlock before its ABI 3 lets a file be cut that is opened for anything but writing.
void deny_cutting(Program& program) {
  for (const std::uint32_t access : {O_RDONLY, O_ACCMODE}) {
    program.deny_where(SYS_openat, {{2, O_TRUNC | O_ACCMODE, O_TRUNC | access}});
#if defined(__x86_64__)
    program.deny_where(SYS_open, {{1, O_TRUNC | O_ACCMODE, O_TRUNC | access}});
#endif
  }
}

std::vector<sock_filter> make_filter() {
  Program program;
  program.deny(SYS_clone3, ENOSYS);
  program.deny(SYS_openat2, ENOSYS);
  for (const int call : kDenied) program.deny(call);
  constexpr std::uint32_t spaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  program.deny_where(SYS_clone, {{0, spaces, 0, false}});
  // Process 0 is the caller. Limits and processors of another process are not its own.
  program.deny_where(SYS_prlimit64, {{0, kAll, 0, false}});
  program.deny_where(SYS_sched_setaffinity, {{0, kAll, 0, false}});
  // The times of an open file may change: the call then names no path.
  for (const bool upper : {false, true})
    program.deny_where(SYS_utimensat, {{1, kAll, 0, false, upper}});
  program.deny_where(SYS_prctl, {{0, kAll, PR_SET_DUMPABLE}});  // hides files from the limit
  program.deny_where(SYS_ioctl, {{1, kAll, TIOCSTI}});
  program.deny_where(SYS_ioctl, {{1, kAll, TIOCLINUX}});
  // Pages of a nameless shared mapping stay in memory when no process shows them any more.
  for (const std::uint32_t type : {MAP_SHARED, MAP_SHARED_VALIDATE})
    if (!kSanitized)
      program.deny_where(SYS_mmap, {{3, MAP_ANONYMOUS | MAP_TYPE, MAP_ANONYMOUS | type}});
  deny_set_user_id(program);
  deny_cutting(program);
  return program.finish();
}

}  // namespace

bool filters_system_calls() {
  static const bool known = [] {
    const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
    return kArchitecture != 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  }();
  return known;
}

std::span<const sock_filter> system_call_filter() {
  static const auto filter = make_filter();
  return filter;
}

bool apply_system_call_filter(std::span<const sock_filter> filter) {
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              const_cast<sock_filter*>(filter.data())};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace triptych::confine
