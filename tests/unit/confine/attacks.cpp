// Attacks of a command that is not trusted, each tried in a process of its own.
//   attacks quick WORLD VICTIM PORT   all of the table; a line "NAME: success" or "NAME: denied"
//   attacks NAME ...                  one that goes on: it hides files, or stays behind
// WORLD stands for the lecturer's home, VICTIM is a process of the lecturer's, PORT one of
// 127.0.0.1 where somebody listens. confined_attack_test runs all with and without the confinement.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string g_world;
pid_t g_victim = 0;
int g_port = 0;

std::string in_world(const std::string& name) { return g_world + "/" + name; }

bool can_read(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  return std::getline(file, text, '\0') && !text.empty();
}

bool can_open(const std::string& path, int flags, mode_t mode = 0600) {
  const int file = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, mode);
  if (file >= 0) close(file);
  return file >= 0;
}

bool can_write_new(const std::string& path) {
  const bool good = can_open(path, O_WRONLY | O_CREAT | O_EXCL);
  if (good) unlink(path.c_str());
  return good;
}

std::string of_victim(const char* name) { return "/proc/" + std::to_string(g_victim) + "/" + name; }

/// Address of the victim's first writable pages.
unsigned long writable_address() {
  std::ifstream maps(of_victim("maps"));
  for (std::string line; std::getline(maps, line);)
    if (line.find(" rw-p ") != line.npos) return std::stoul(line, nullptr, 16);
  return 0;
}

bool change_memory(bool writes) {
  const int file = open(of_victim("mem").c_str(), O_RDWR | O_CLOEXEC);
  const auto address = static_cast<off_t>(writable_address());
  char byte = 0;
  return file >= 0 && pread(file, &byte, 1, address) == 1 &&
         (!writes || pwrite(file, &byte, 1, address) == 1);
}

bool can_connect() {
  const int end = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(g_port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(end, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool can_bind_abstract() {
  const int end = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "triptych-%d", getpid());
  return bind(end, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool share_memory() {
  const int id = shmget(IPC_PRIVATE, 1 << 20, 0600);
  void* at = id < 0 ? nullptr : shmat(id, nullptr, 0);
  if (id >= 0) shmctl(id, IPC_RMID, nullptr);
  return at != nullptr && at != reinterpret_cast<void*>(-1);
}

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  stat(path.c_str(), &status);
  return status.st_mode & 07777;
}

bool has_set_user_id(const std::string& path) { return (mode_of(path) & S_ISUID) != 0; }

/// The path is at an address with a lower half of zero, which looks like no path at a glance.
bool touch_by_odd_address() {
  auto* at =
      static_cast<char*>(mmap(reinterpret_cast<void*>(1UL << 32), 4096, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  if (at == MAP_FAILED) return false;
  std::strcpy(at, in_world("secret").c_str());
  const timespec times[2] = {{1, 0}, {1, 0}};
  return syscall(SYS_utimensat, AT_FDCWD, at, times, 0) == 0;
}

bool can_list_processes() {
  DIR* all = opendir("/proc");
  int count = 0;
  while (all != nullptr)
    if (const auto* entry = readdir(all); entry == nullptr)
      break;
    else
      count += std::atoi(entry->d_name) > 0 ? 1 : 0;
  return count > 0;
}

bool can_run_from_world() {
  const auto program = in_world("program");
  const pid_t child = fork();
  if (child == 0) {
    execl(program.c_str(), "program", nullptr);
    _exit(1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

/// True for anything but EPERM and ENOSYS: the arguments are wrong, so that no privilege is needed.
bool reaches_kernel(long call, long a = 0, long b = 0, long c = 0, long d = 0) {
  errno = 0;
  return syscall(call, a, b, c, d) >= 0 || (errno != EPERM && errno != ENOSYS);
}

#if defined(__x86_64__)
/// getpid of 32 bits: its numbers mean other calls, which a filter of 64 bits would let through.
bool call_of_32_bits() {
  long result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return result > 0;
}
#endif

struct Attack {
  const char* name;
  std::function<bool()> succeeds;
  const char* unless = "";  ///< "user": needs root when nothing confines it; "any": may never work
};

constexpr long kBad = -1;

std::vector<Attack> attacks() {
  std::vector<Attack> list = {
    // Files of the lecturer and of other students.
    {"read_secret", [] { return can_read(in_world("secret")); }},
    {"read_solution", [] { return can_read(in_world("solutions/answers.json")); }},
    {"read_other_submission", [] { return can_read(in_world("other/answers.json")); }},
    {"write_other_submission", [] { return can_open(in_world("other/answers.json"), O_WRONLY); }},
    {"append_to_bashrc", [] { return can_open(in_world("secret"), O_WRONLY | O_APPEND); }},
    {"make_file_outside", [] { return can_write_new(in_world("new")); }},
    {"list_home", [] { return opendir(g_world.c_str()) != nullptr; }},
    {"make_directory_outside", [] { return mkdir(in_world("made").c_str(), 0700) == 0; }},
    {"remove_file_outside", [] { return unlink(in_world("victim_1").c_str()) == 0; }},
    {"rename_file_outside",
     [] { return rename(in_world("victim_2").c_str(), in_world("moved").c_str()) == 0; }},
    {"move_file_in", [] { return rename(in_world("victim_3").c_str(), "stolen") == 0; }},
    {"hard_link_in", [] { return link(in_world("secret").c_str(), "linked") == 0; }},
    {"read_through_own_link",
     [] { return symlink(in_world("secret").c_str(), "soft") == 0 && can_read("soft"); }},
    {"cut_file", [] { return truncate(in_world("victim_4").c_str(), 0) == 0; }},
    {"cut_by_reading", [] { return can_open(in_world("victim_5"), O_RDONLY | O_TRUNC); }},
    {"cut_by_odd_access", [] { return can_open(in_world("victim_6"), O_ACCMODE | O_TRUNC); }},
    {"open_secret_to_others", [] { return chmod(in_world("secret").c_str(), 0666) == 0; }},
    {"change_owner", [] { return chown(in_world("secret").c_str(), getuid(), getgid()) == 0; }},
    {"change_times",
     [] { return utimensat(AT_FDCWD, in_world("secret").c_str(), nullptr, 0) == 0; }},
    {"change_times_by_odd_address", touch_by_odd_address},
    {"run_program_outside", can_run_from_world},
    {"write_to_pipe_outside", [] { return can_open(in_world("pipe"), O_RDWR); }},
    {"make_device_or_pipe_outside", [] { return mkfifo(in_world("pipe_2").c_str(), 0600) == 0; }},
    {"write_tmp", [] { return can_write_new("/tmp/triptych-attack-" + std::to_string(getpid())); }},
    {"write_var_tmp",
     [] { return can_write_new("/var/tmp/triptych-attack-" + std::to_string(getpid())); }},
    {"write_dev_shm",
     [] { return can_write_new("/dev/shm/triptych-attack-" + std::to_string(getpid())); }},
    {"read_group_list", [] { return can_read("/etc/group"); }},
    // A file that runs as its owner serves an accomplice outside.
    {"set_user_id",
     [] {
       return can_open("suid_1", O_WRONLY | O_CREAT) && chmod("suid_1", 04755) == 0 &&
              has_set_user_id("suid_1");
     }},
    {"set_user_id_at_once",
     [] { return can_open("suid_2", O_WRONLY | O_CREAT, 04755) && has_set_user_id("suid_2"); }},
    {"set_user_id_by_mknod",
     [] { return mknod("suid_3", S_IFREG | 04755, 0) == 0 && has_set_user_id("suid_3"); }},
    // The lecturer's processes.
    {"environment_of_parent", [] { return can_read(of_victim("environ")); }},
    {"command_line_of_parent", [] { return can_read(of_victim("cmdline")); }},
    {"list_processes", can_list_processes},
    {"read_memory", [] { return change_memory(false); }},
    {"write_memory", [] { return change_memory(true); }},
    {"attach_debugger",
     [] { return syscall(SYS_ptrace, 0x4206 /* SEIZE */, g_victim, 0, 0) == 0; }},
    {"signal", [] { return kill(g_victim, SIGCONT) == 0; }},
    {"signal_to_thread", [] { return syscall(SYS_tgkill, g_victim, g_victim, SIGCONT) == 0; }},
    {"signal_with_value",
     [] {
       siginfo_t info = {};
       info.si_code = SI_QUEUE;
       return syscall(SYS_rt_sigqueueinfo, g_victim, SIGCONT, &info) == 0;
     }},
    {"limit_parent",
     [] {
       rlimit old = {};
       return prlimit(g_victim, RLIMIT_CORE, nullptr, &old) == 0;
     }},
    {"slow_parent_down",
     [] { return setpriority(PRIO_PROCESS, static_cast<id_t>(g_victim), 19) == 0; }},
    {"move_parent",
     [] {
       cpu_set_t all;
       CPU_ZERO(&all);
       for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
       return sched_setaffinity(g_victim, sizeof all, &all) == 0;
     }},
    {"secret_variable", [] { return std::getenv("TRIPTYCH_TEST_TOKEN") != nullptr; }},
    {"inherited_descriptor", [] { return write(9, "x", 1) == 1; }},
    {"standard_input",
     [] {
       char byte = 0;
       return read(STDIN_FILENO, &byte, 1) == 1;
     }},
    // The network.
    {"connect", can_connect},
    {"datagrams", [] { return socket(AF_INET, SOCK_DGRAM, 0) >= 0; }},
    {"netlink", [] { return socket(AF_NETLINK, SOCK_RAW, 0) >= 0; }},
    {"abstract_socket", can_bind_abstract},
    {"socket_pair",
     [] {
       int ends[2];
       return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0;
     }},
    // Memory that no limit counts, and objects that outlive a process.
    {"memory_file", [] { return memfd_create("x", 0) >= 0; }},
    {"shared_segment", share_memory},
    {"shared_pages",
     [] {
       return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
              MAP_FAILED;
     }},
    // Namespaces.
    {"user_namespace", [] { return unshare(CLONE_NEWUSER) == 0; }, "any"},
    {"clone_into_namespace",
     [] {
       const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
       if (child == 0) _exit(0);
       return child > 0;
     },
     "any"},
#if defined(__x86_64__)
    {"call_of_32_bits", call_of_32_bits, "any"},
#endif
  };
  const auto call = [&list](const char* name, long number, long a = 0, long b = 0, long c = 0,
                            long d = 0) {
    list.push_back({name, [=] { return reaches_kernel(number, a, b, c, d); }});
  };
  call("call unshare", SYS_unshare, 0x10);
  call("call setns", SYS_setns, kBad);
  call("call mount", SYS_mount, 1, 1, 1);
  call("call umount", SYS_umount2, 1);
  call("call pivot_root", SYS_pivot_root, 1, 1);
  list.back().unless = "user";
  call("call keyctl", SYS_keyctl, 0, kBad);
  call("call add_key", SYS_add_key, 1, 1);
  call("call io_uring_setup", SYS_io_uring_setup, 1, 0);
  call("call bpf", SYS_bpf, 9999, 1, 8);
  list.back().unless = "user";
  call("call userfaultfd", SYS_userfaultfd, 1);
  call("call perf_event_open", SYS_perf_event_open, 1);
  call("call process_vm_readv", SYS_process_vm_readv, 1, 0, 0, 0);
  call("call process_vm_writev", SYS_process_vm_writev, 1, 0, 0, 0);
  call("call kcmp", SYS_kcmp, kBad, kBad, 99);
  call("call pidfd_open", SYS_pidfd_open, 0);
  call("call pidfd_getfd", SYS_pidfd_getfd, kBad, 0, 0);
  call("call mq_open", SYS_mq_open, 1, O_RDONLY);
  call("call msgget", SYS_msgget, 12345, 0);
  call("call semget", SYS_semget, 12345, kBad);
  call("call inotify_init1", SYS_inotify_init1, 0);
  call("call name_to_handle_at", SYS_name_to_handle_at, kBad, 1);
  call("call setxattr", SYS_setxattr, 1, 1, 1, 1);
  call("call move_pages", SYS_move_pages, kBad);
  call("call quotactl", SYS_quotactl, 0x7FFFFFFF, 1);
  call("call clone3", SYS_clone3, 1, 8);
  call("call openat2", SYS_openat2, kBad, 1, 1, 24);
  call("call fchmod", SYS_fchmod, kBad, 0);
  call("call hiding from inspection", SYS_prctl, PR_SET_DUMPABLE, 1);
  return list;
}

/// Each in a child: some would end this process.
int try_quick() {
  for (const auto& attack : attacks()) {
    std::cout.flush();
    const pid_t child = fork();
    if (child == 0) _exit(attack.succeeds() ? 7 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    const bool success = WIFEXITED(status) && WEXITSTATUS(status) == 7;
    std::cout << attack.name << ": " << (success ? "success" : "denied") << " " << attack.unless
              << "\n";
  }
  return 0;
}

constexpr int kPieces = 8;

/// A file of 4 MiB.
int fill(const std::string& name) {
  const int file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  static const std::vector<char> block(1 << 20, 'x');
  for (int i = 0; i < 4; ++i)
    if (write(file, block.data(), block.size()) < 0) return -1;
  return file;
}

/// 32 MiB below a path that is longer than any that a call takes.
void hide_deep() {
  const std::string name(250, 'd');
  for (int i = 0; i < 20; ++i)
    if (mkdir(name.c_str(), 0700) != 0 || chdir(name.c_str()) != 0) std::exit(1);
  for (int i = 0; i < kPieces; ++i) close(fill("large" + std::to_string(i)));
}

/// In a directory that can be entered, and not be listed.
void hide_in_closed_directory() {
  mkdir("closed", 0300);
  for (int i = 0; i < kPieces; ++i) close(fill("closed/large" + std::to_string(i)));
}

/// Without a name, but open.
void hide_without_name() {
  for (int i = 0; i < kPieces; ++i) {
    fill("large");
    unlink("large");
  }
}

/// Without a name and a descriptor: mapped.
void hide_in_mappings() {
  for (int i = 0; i < kPieces; ++i) {
    const int file = fill("large");
    mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
    unlink("large");
    close(file);
  }
}

/// Empty files take inodes.
void make_many() {
  for (int i = 0; i < 6000; ++i)
    close(open(("empty" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0600));
}

/// Processes in sessions of their own, which no signal but SIGKILL ends.
void stay_behind() {
  for (int i = 0; i < 3; ++i) {
    if (fork() != 0) continue;
    setsid();
    if (fork() != 0) _exit(0);
    for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    while (true) pause();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "quick" && argc == 5) {
    g_world = argv[2];
    g_victim = std::atoi(argv[3]);
    g_port = std::atoi(argv[4]);
    return try_quick();
  }
  const std::pair<const char*, void (*)()> long_ones[] = {{"deep", hide_deep},
                                                          {"closed", hide_in_closed_directory},
                                                          {"nameless", hide_without_name},
                                                          {"mapped", hide_in_mappings},
                                                          {"many", make_many},
                                                          {"stay", stay_behind}};
  for (const auto& [each, run] : long_ones) {
    if (name != each) continue;
    run();
    std::cout << "done" << std::endl;
    if (argc > 3 && std::string(argv[3]) == "wait") poll(nullptr, 0, 60000);
    return 0;
  }
  return 2;
}
