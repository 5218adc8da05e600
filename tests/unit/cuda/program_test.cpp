// Whole CUDA programs: mistakes of their host's code, calls without types, memory, devices.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

#include "backends/cuda/plain/array_content.h"
#include "backends/cuda/plain/code_places.h"
#include "backends/cuda/program/bridge.h"
#include "backends/cuda/program/calls.h"
#include "backends/cuda/program/devices.h"
#include "backends/cuda/program/gpus.h"
#include "backends/cuda/program/heap.h"
#include "backends/cuda/program/kernel_call.h"
#include "core/base/error.h"
#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "experiments/kernels/program_run.h"
#include "experiments/kernels/program_source.h"

namespace triptych::cuda::program {
namespace {

std::string source_file() {
  return std::string(TRIPTYCH_SOURCE_DIR) + "/tests/unit/cuda/programs/mistakes.cu";
}

const std::filesystem::path& libraries() {
  static const TemporaryFolder folder("programs");
  static const bool compiled = [] {
    kernels::ProgramSource source;
    source.files = {source_file()};
    kernels::compile_program(source, folder.path());
    return true;
  }();
  EXPECT_TRUE(compiled);
  return folder.path();
}

/// Lines about a run: "STATUS REASON", then "LINE: MESSAGE" for each finding.
std::string describe(const ProgramReport& report) {
  std::string text = std::to_string(report.status) + " " + report.reason + "\n";
  for (const auto& each : report.findings) {
    text += std::to_string(each.line) + ": " + each.call + ": " + each.message + "\n";
  }
  if (report.fault) {
    text += std::to_string(report.fault->place().line) + ": " + report.fault->reason() + "\n";
  }
  return text;
}

/// There is one program in a process: each runs in a child of its own.
std::string run_with(const std::string& word) {
  const auto folder = libraries();
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  std::fflush(stdout);
  const auto child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = describe(run(folder, {"mistakes", word}, {.gpu = &gpus().front()}));
    } catch (const std::exception& error) {
      text = error.what();
    }
    const auto written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (auto got = read(ends[0], part.data(), part.size()); got > 0;
       got = read(ends[0], part.data(), part.size())) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << word;
  return text;
}

/// "12: " for the line with this comment.
std::string line_of(const std::string& comment) {
  std::ifstream stream(source_file());
  unsigned number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.ends_with("// " + comment)) return std::to_string(number) + ": ";
  }
  ADD_FAILURE() << "no line says " << comment;
  return {};
}

bool has_compilers() { return find_program("clang++") && find_program("g++"); }

struct Mistake {
  const char *word, *comment, *call, *message;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, is_found_with_its_line) {
  if (!has_compilers()) GTEST_SKIP() << "there is no clang++ or no g++";
  const auto& [word, comment, call, message] = GetParam();
  const auto text = run_with(word);
  const auto begin = "\n" + line_of(comment) + call;
  EXPECT_NE(text.find(begin), text.npos) << text << begin;
  EXPECT_NE(text.find(message), text.npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Program, Mistakes,
    testing::Values(
        Mistake{"missing copy", "access", "", "which nothing has written"},
        Mistake{"large copy", "large copy", "cudaMemcpy",
                "512 bytes are copied, and the destination"},
        Mistake{"wrong direction", "wrong direction", "cudaMemcpy",
                "the destination is memory of the GPU, and it is of the host"},
        Mistake{"null copy", "null copy", "cudaMemcpy", "the destination is a null pointer"},
        Mistake{"large set", "large set", "cudaMemset", "the destination has 128 of the 256-byte"},
        Mistake{"set of host", "set of host", "cudaMemset", "no memory of the GPU"},
        Mistake{"freed twice", "freed twice", "cudaFree", "is freed, but it was freed at"},
        Mistake{"freed inside", "freed inside", "cudaFree", "4 bytes behind the beginning"},
        Mistake{"freed from host", "freed from host", "cudaFree", "gave this pointer"},
        Mistake{"freed as pinned", "freed as pinned", "cudaFreeHost", "is freed with cudaFree"},
        Mistake{"freed and copied", "freed and copied", "cudaMemcpy", "which was freed at"},
        Mistake{"freed and used", "access", "", "which was freed at"},
        Mistake{"host pointer", "access", "", "memory of the host"},
        Mistake{"wrong count", "access", "", "element 64 of the 256-byte array"},
        Mistake{"large block", "large block", "launch", "at most 1024 are allowed"},
        Mistake{"empty grid", "empty grid", "launch", "no size may be 0"},
        Mistake{"large shared", "large shared", "launch", "49152 are allowed"},
        Mistake{"wrong symbol", "wrong symbol", "cudaMemcpyToSymbol", "no variable of __device__"},
        Mistake{"large symbol", "large symbol", "cudaMemcpyToSymbol", "and table has 16"},
        Mistake{"read on host", "read on host", "", "memory of the GPU; copy it with cudaMemcpy"},
        Mistake{"copied on host", "copied on host", "",
                "memory of the GPU; copy it with cudaMemcpy"},
        Mistake{"not synchronised", "not synchronised", "", "call cudaDeviceSynchronize first"},
        Mistake{"copy not awaited", "copy not awaited", "", "call cudaDeviceSynchronize first"},
        Mistake{"nothing written", "nothing written", "cudaMemcpy", "nothing has written any"},
        Mistake{"destroyed stream", "destroyed stream", "cudaStreamSynchronize", "was destroyed"},
        Mistake{"event not recorded", "event not recorded", "cudaEventElapsedTime", "not recorded"},
        Mistake{"wrong device", "wrong device", "cudaSetDevice", "there is no device 3"},
        Mistake{"too much memory", "too much memory", "cudaMalloc", "in use"},
        Mistake{"null pointer", "null pointer", "", "uses a null pointer"},
        Mistake{"wrong shape", "read of a texture", "", "as a texture that is 1-D; it is 2-D"},
        Mistake{"destroyed texture", "read of a texture", "", "was destroyed"},
        Mistake{"plain array", "plain array", "cudaCreateSurfaceObject",
                "was not allocated with cudaArraySurfaceLoadStore"},
        Mistake{"wide rows", "wide rows", "cudaMemcpy2DToArray", "has 4 rows of 16"},
        Mistake{"freed array", "freed array", "cudaMemcpyToArray", "or was freed"},
        Mistake{"filtered integers", "filtered integers", "cudaCreateTextureObject",
                "choose cudaFilterModePoint"},
        Mistake{"beyond a surface", "write to a surface", "", "which has 4 x 4 x 1 texels"},
        Mistake{"registered twice", "registered twice", "cudaHostRegister", "is part of"},
        Mistake{"memory before the launch", "memory before the launch", "cudaMemset",
                "does not exist before its graph is launched"},
        Mistake{"allocated twice", "graph memory", "a memory node", "nothing has freed it"},
        Mistake{"cycle of nodes", "cycle of nodes", "cudaGraphInstantiate", "form a cycle"},
        Mistake{"destroyed graph", "destroyed graph", "cudaGraphLaunch", "or was destroyed"},
        Mistake{"foreign node", "foreign node", "cudaGraphAddEmptyNode", "no node of this graph"},
        Mistake{"wait in a capture", "wait in a capture", "cudaStreamSynchronize",
                "only recorded; the capture that began at"},
        Mistake{"default stream in a capture", "default stream in a capture", "launch",
                "depends on the captured stream"},
        Mistake{"unjoined capture", "unjoined capture", "cudaStreamEndCapture", "is not joined"},
        Mistake{"changed graph", "changed graph", "cudaGraphExecUpdate", "instantiate the new"},
        Mistake{"no capture", "no capture", "cudaStreamEndCapture", "is not captured"},
        Mistake{"not registered", "not registered", "cudaHostUnregister", "had this pointer"}),
    [](const auto& row) {
      std::string name = row.param.word;
      for (auto& c : name) c = c == ' ' ? '_' : c;
      return name;
    });

TEST(Program, ends_in_every_way) {
  if (!has_compilers()) GTEST_SKIP() << "there is no clang++ or no g++";
  EXPECT_EQ(run_with("nothing"), "0 \n");
  EXPECT_EQ(run_with("exit"), "3 \n");
  EXPECT_NE(run_with("abort").find("134 the program calls abort"), std::string::npos);
  EXPECT_NE(run_with("assert").find("134 the assertion which.empty()"), std::string::npos);
  EXPECT_NE(run_with("exception").find("nothing catches: out of words"), std::string::npos);
}

TEST(Program, is_told_from_a_file_of_kernels) {
  const TemporaryFolder folder("sources");
  const auto file = folder.path() / "my.cu";
  const auto is_whole = [&](const char* text) {
    std::ofstream(file) << text;
    return kernels::is_whole_program(file);
  };
  EXPECT_TRUE(is_whole("int main() {}"));
  EXPECT_TRUE(is_whole("int main\n  (int argc) {}"));
  EXPECT_TRUE(is_whole("void f() { k<<<1, 2>>>(); }"));
  EXPECT_FALSE(is_whole("__global__ void k(int* x) { x[0] = 1 << 2; }"));
  EXPECT_FALSE(is_whole("// int main() { k<<<1, 1>>>(); }\n/* main( */ void domain(int x);"));
  EXPECT_FALSE(is_whole("const char* t = \"main(<<<\"; char c = '\\''; auto r = R\"x(<<<)x\";"));
  EXPECT_TRUE(is_whole("int n = 1'000; int main() {}"));
}

TEST(KernelCall, learns_places_and_calls_with_values) {
  struct Large {
    std::array<int, 7> values;
  };
  static std::array<double, 5> got;
  // A stub as clang writes it: it hands on its parameters, one by one.
  using Function = void (*)(char, double, Large, float, bool);
  const Function stub = [](char a, double b, Large c, float d, bool e) {
    probe_argument(&a, sizeof(a), 0);
    probe_argument(&b, sizeof(b), 8);
    probe_argument(&c, sizeof(c), 16);
    probe_argument(&d, sizeof(d), 44);
    probe_argument(&e, sizeof(e), 48);
  };
  const Function kernel = [](char a, double b, Large c, float d, bool e) {
    got = {double(a), b, double(c.values[6]), d, double(e)};
    c.values.fill(0);
  };
  const auto places = probe_parameters(reinterpret_cast<const void*>(stub));
  ASSERT_EQ(places.size(), 5U);
  EXPECT_FALSE(is_probing());
  const char a = 'x';
  const double b = 2.5;
  const Large c = {{1, 2, 3, 4, 5, 6, 7}};
  const float d = -1;
  const bool e = true;
  const void* values[] = {&a, &b, &c, &d, &e};
  const KernelCall call(places, values);
  for (int i = 0; i < 2; ++i) {  // a call gets copies of its own
    got = {};
    call.run(reinterpret_cast<const void*>(kernel));
    EXPECT_EQ(got, (std::array<double, 5>{'x', 2.5, 7, -1, 1}));
  }
}

TEST(KernelCall, passes_as_many_bytes_as_cuda_allows) {
  struct Large {
    std::array<int, (kMostParameterBytes - 4) / 4> values;
  };
  static long sum;
  using Function = void (*)(Large, short);
  const Function stub = [](Large a, short b) {
    probe_argument(&a, sizeof(a), 0);
    probe_argument(&b, sizeof(b), sizeof(a));
  };
  const Function kernel = [](Large a, short b) {
    sum = b;
    for (const int value : a.values) sum += value;
  };
  static Large numbers;
  long expected = -7;
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    expected += numbers.values[i] = static_cast<int>(i * 7);
  }
  const short last = -7;
  const void* values[] = {&numbers, &last};
  const auto places = probe_parameters(reinterpret_cast<const void*>(stub));
  KernelCall(places, values).run(reinterpret_cast<const void*>(kernel));
  EXPECT_EQ(sum, expected);
}

TEST(Heap, keeps_freed_memory_and_what_was_written) {
  Heap heap;
  auto& array = heap.allocate(MemoryKind::Device, 100, 4, "a", 1);
  auto* data = array.data();
  EXPECT_EQ(heap.find(data + 99), &array);
  EXPECT_EQ(heap.find(data + 100), nullptr);
  EXPECT_FALSE(array.content.any_written(0, 100));
  array.content.write(8, 4);
  EXPECT_TRUE(array.content.any_written(0, 100));
  EXPECT_EQ(array.content.undefined_in(8, 8), 12U);
  EXPECT_EQ(array.content.undefined_in(8, 4), std::nullopt);
  EXPECT_EQ(heap.used_bytes(1), 100U);
  EXPECT_EQ(heap.used_bytes(0), 0U);
  heap.free(array, "my.cu:3");
  EXPECT_EQ(heap.used_bytes(1), 0U);
  ASSERT_NE(heap.find(data), nullptr);
  EXPECT_EQ(heap.find(data)->gone, "was freed at my.cu:3");
  EXPECT_TRUE(heap.arrays([](const Allocation&) { return true; }).empty());
}

TEST(Devices, use_memory_of_peers_and_pools_with_permission) {
  Heap heap;
  Devices devices;
  auto& array = heap.allocate(MemoryKind::Device, 100, 4, "a", 1);
  auto& pooled = heap.allocate(MemoryKind::Device, 100, 4, "b", 1);
  auto& managed = heap.allocate(MemoryKind::Managed, 100, 4, "c", 1);
  pooled.is_of_pool = true;
  const auto usable = [&] {
    return heap.arrays([&](const Allocation& each) { return devices.may_use(0, each); }).size();
  };
  EXPECT_TRUE(devices.may_use(1, array));
  EXPECT_TRUE(devices.may_use(0, managed));
  EXPECT_EQ(usable(), 1U);
  EXPECT_TRUE(devices.allow(0, 1));
  EXPECT_FALSE(devices.allow(0, 1));
  EXPECT_EQ(usable(), 2U);
  EXPECT_FALSE(devices.may_use(0, pooled));
  devices.set_pool_access(0, 1, true);
  EXPECT_EQ(usable(), 3U);
  EXPECT_TRUE(devices.forbid(0, 1));
  EXPECT_FALSE(devices.forbid(0, 1));
  EXPECT_FALSE(devices.may_use(0, array));
}

TEST(Devices, have_values_of_variables_of_their_own) {
  Devices devices;
  std::array<std::byte, 2> variable = {std::byte{1}, std::byte{2}};
  devices.add_variable(variable);
  variable[0] = std::byte{5};
  Devices::current() = 1;
  devices.select_variables();
  EXPECT_EQ(variable[0], std::byte{1});
  variable[1] = std::byte{7};
  Devices::current() = 0;
  devices.select_variables();
  EXPECT_EQ(variable[0], std::byte{5});
  EXPECT_EQ(variable[1], std::byte{2});
  Devices::current() = 1;
  devices.select_variables();
  EXPECT_EQ(variable[1], std::byte{7});
  Devices::current() = 0;
}

TEST(Gpus, have_the_figures_of_their_capability) {
  for (const auto& gpu : gpus()) {
    const auto p = properties_of(gpu);
    EXPECT_EQ(std::string(p.name), gpu.name);
    EXPECT_EQ(p.maxThreadsPerMultiProcessor, 32 * multiprocessor_of(gpu).max_warps);
    EXPECT_GT(p.sharedMemPerBlockOptin, p.sharedMemPerBlock);
    EXPECT_EQ(p.totalGlobalMem % (std::size_t{1} << 30), 0U);
  }
  EXPECT_EQ(properties_of(gpus().front()).major, 9);
}

TEST(Runtime, has_every_function) {
  const auto& table = runtime_table();
  EXPECT_EQ(table.cudaMemcpy, &calls::cudaMemcpy);
  std::array<void*, sizeof(Runtime) / sizeof(void*)> entries{};
  std::memcpy(entries.data(), &table, sizeof(table));
  for (const auto* entry : entries) EXPECT_NE(entry, nullptr);
}

}  // namespace
}  // namespace triptych::cuda::program
