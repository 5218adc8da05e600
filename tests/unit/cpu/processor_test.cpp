// The processor as the system describes it: its name and its data caches.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "backends/cpu/caches.h"
#include "backends/cpu/cpu_device.h"
#include "tests/unit/io/test_files.h"

namespace triptych::cpu {
namespace {

TEST(ProcessorName, stands_behind_the_first_model_name) {
  const test::TemporaryFolder folder;
  const auto named = [&](const char* text) {
    test::put_file(folder / "cpuinfo", text);
    return processor_name((folder / "cpuinfo").string());
  };
  EXPECT_EQ(named("processor\t: 0\nmodel\t\t: 85\nmodel name\t: A B: C\nmodel name\t: D\n"),
            "A B: C");
  EXPECT_EQ(named("model name\nmodel name\t: second\n"), "second");
  EXPECT_EQ(named("Processor : other\n"), "unknown processor");
  EXPECT_EQ(processor_name((folder / "absent").string()), "unknown processor");
}

TEST(DataCaches, are_those_of_the_system_by_level) {
  const test::TemporaryFolder folder;
  const auto add = [&](int i, const char* type, const char* level, const char* size,
                       const char* map) {
    const auto place = folder / ("index" + std::to_string(i));
    std::filesystem::create_directory(place);
    test::put_file(place / "type", type);
    test::put_file(place / "level", level);
    test::put_file(place / "size", size);
    test::put_file(place / "shared_cpu_map", map);
  };
  add(0, "Unified", "3", "1M", "0000000f,ffffffff\n");
  add(1, "Data", "1", "48K\n", "00000003\n");
  add(2, "Instruction", "1", "32K", "3");
  add(3, "Unified", "2", "300", "");
  add(4, "Unified", "4", "none", "1");
  add(5, "Unified", "0", "1M", "1");
  const auto caches = data_caches(folder.path().string());
  ASSERT_EQ(caches.size(), 3U);
  const int sharers[] = {2, 1, 36};
  const double bytes[] = {49152, 300, 1048576};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(caches[i].level, static_cast<int>(i) + 1);
    EXPECT_EQ(caches[i].bytes, bytes[i]);
    EXPECT_EQ(caches[i].sharers, sharers[i]);
  }
}

TEST(DataCaches, are_those_of_the_c_library_where_the_system_says_nothing) {
  const test::TemporaryFolder folder;
  const auto caches = data_caches(folder.path().string());
  for (const auto& cache : caches) EXPECT_GT(cache.bytes, 0);
  const long first = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  if (first <= 0) GTEST_SKIP() << "the C library does not know the caches of this machine";
  ASSERT_FALSE(caches.empty());
  EXPECT_EQ(caches[0].level, 1);
  EXPECT_EQ(caches[0].bytes, static_cast<double>(first));
  EXPECT_EQ(caches[0].sharers, 1);
}

}  // namespace
}  // namespace triptych::cpu
