// Copies, barriers and products of matrices, of small integers: every sum is exact in any order,
// so that these tests are of the layouts alone.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "tests/ptx/bench.h"

namespace triptych::ptx {
namespace {

using testing::HasSubstr;

/// rows x 64 integers from -8 to 8.
struct Matrix {
  int rows;
  std::vector<int> values;

  Matrix(int row_count, unsigned seed)
      : rows(row_count), values(static_cast<std::size_t>(rows * 64)) {
    std::mt19937 random(seed);
    for (auto& value : values) value = static_cast<int>(random() % 17) - 8;
  }
  int at(int row, int k) const { return values[static_cast<std::size_t>(row * 64 + k)]; }
};

std::uint32_t bf16_bits(int value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
}

/// As words of two elements, rows of 128 bytes. Of each eight rows, the 16-byte pieces of row r at
/// piece p ^ r.
void append_swizzled(const Matrix& matrix, std::vector<std::uint32_t>& words) {
  const auto begin = words.size();
  words.resize(begin + static_cast<std::size_t>(matrix.rows) * 32);
  for (int row = 0; row < matrix.rows; ++row) {
    for (int k = 0; k < 64; k += 2) {
      const int piece = k / 8 ^ row % 8;
      words[begin + static_cast<std::size_t>(row * 32 + piece * 4 + k % 8 / 2)] =
          bf16_bits(matrix.at(row, k + 1)) << 16 | bf16_bits(matrix.at(row, k));
    }
  }
}

/// All threads copy `words` words from `out` to shared memory.
std::string copy_in(std::size_t words) {
  return fmt::format(R"(
    ld.param.u64 %rd0, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %r1;
    mov.u32 %r4, dynamic;
    $L_copy:
    setp.ge.u32 %p1, %r3, {};
    @%p1 bra $L_copied;
    mul.wide.u32 %rd1, %r3, 4; add.s64 %rd1, %rd0, %rd1; ld.global.u32 %r5, [%rd1];
    mad.lo.u32 %r6, %r3, 4, %r4; st.shared.u32 [%r6], %r5;
    add.u32 %r3, %r3, %r2;
    bra $L_copy;
    $L_copied:
    bar.sync 0;
)",
                     words);
}

/// Thread t stores its registers %f0 and on at out[count * t].
std::string copy_out(int count) {
  std::string body =
      fmt::format("mul.wide.u32 %rd1, %r1, {}; add.s64 %rd1, %rd0, %rd1;\n", 4 * count);
  for (int i = 0; i < count; ++i) body += fmt::format("st.global.f32 [%rd1+{}], %f{};\n", 4 * i, i);
  return body;
}

std::string list_of(const char* prefix, int first, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i)
    list += fmt::format("{}{}{}", i == 0 ? "" : ", ", prefix, first + i);
  return list + "}";
}

int product(const Matrix& a, const Matrix& b, int m, int n, int depth) {
  int sum = 0;
  for (int k = 0; k < depth; ++k) sum += a.at(m, k) * b.at(n, k);
  return sum;
}

/// Lane l of warp w holds, in sum i, row 16 w + l / 4 (+ 8) and one of two columns of each eight.
void expect_product(const std::vector<std::uint32_t>& words, const Matrix& a, const Matrix& b,
                    int threads, int sums, int depth) {
  for (int thread = 0; thread < threads; ++thread) {
    for (int i = 0; i < sums; ++i) {
      const int m = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
      const int n = i / 4 * 8 + thread % 4 * 2 + i % 2;
      const auto value = std::bit_cast<float>(words[static_cast<std::size_t>(thread * sums + i)]);
      ASSERT_EQ(value, static_cast<float>(product(a, b, m, n, depth))) << m << ", " << n;
    }
  }
}

TEST(PtxTensor, multiplies_what_ldmatrix_has_loaded) {
  const Matrix a(16, 1), b(8, 2);
  std::vector<std::uint32_t> words;
  for (const auto* matrix : {&a, &b}) {
    for (int i = 0; i < matrix->rows * 64; i += 2) {
      words.push_back(bf16_bits(matrix->values[static_cast<std::size_t>(i) + 1]) << 16 |
                      bf16_bits(matrix->values[static_cast<std::size_t>(i)]));
    }
  }
  // Lane l points to row l % 16 and column 8 (l / 16) of a, to row l % 8 and column 8 (l / 8) of b.
  Bench bench(copy_in(words.size()) + R"(
    and.b32 %r10, %r1, 15; shr.u32 %r11, %r1, 4; mad.lo.u32 %r12, %r10, 128, %r4;
    mad.lo.u32 %r12, %r11, 16, %r12;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r12];
    and.b32 %r10, %r1, 7; shr.u32 %r11, %r1, 3; mad.lo.u32 %r12, %r10, 128, %r4;
    mad.lo.u32 %r12, %r11, 16, %r12;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r24, %r25, %r26, %r27}, [%r12+2048];
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3},
      {%r20, %r21, %r22, %r23}, {%r24, %r25}, {%f0, %f1, %f2, %f3};)" +
              copy_out(4));
  bench.memory = words;
  expect_product(bench.run(32, words.size(), 8192), a, b, 32, 4, 16);
}

TEST(PtxTensor, transposes_what_it_loads) {
  // 8 x 8 elements: element (row, column) is 8 row + column.
  std::vector<std::uint32_t> words;
  for (std::uint32_t i = 0; i < 64; i += 2) words.push_back((i + 1) << 16 | i);
  Bench bench(copy_in(words.size()) + R"(
    and.b32 %r10, %r1, 7; mad.lo.u32 %r12, %r10, 16, %r4;
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r20}, [%r12];
    mov.b32 %f0, %r20;)" +
              copy_out(1));
  bench.memory = words;
  const auto result = bench.run(32, words.size(), 128);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const auto row = lane % 4 * 2, column = lane / 4;
    EXPECT_EQ(result[lane], ((8 * (row + 1) + column) << 16 | (8 * row + column))) << lane;
  }
}

TEST(PtxCopy, brings_no_number_before_it_is_waited_for_and_zeros_where_nothing_is_taken) {
  const auto copied = [](const std::string& wait) {
    Bench bench(R"(
      ld.param.u64 %rd0, [out]; mov.u32 %r1, dynamic;
      cp.async.cg.shared.global [%r1], [%rd0], 16, 8;
      cp.async.commit_group;)" +
                wait + R"(
      ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
      st.global.v4.u32 [%rd0], {%r2, %r3, %r4, %r5};)");
    bench.memory = {1, 2, 3, 4};
    return bench.run(1, 4, 16);
  };
  EXPECT_EQ(copied("cp.async.wait_group 0;"), (std::vector<std::uint32_t>{1, 2, 0, 0}));
  EXPECT_EQ(copied("cp.async.wait_group 1;"), (std::vector<std::uint32_t>(4, 0xFFFFFFFF)));
}

TEST(PtxBarrier, holds_those_who_wait_until_all_have_come) {
  const auto run = [](int arrivals) {
    Bench bench(fmt::format(R"(
      ld.param.u64 %rd0, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, dynamic;
      setp.ne.u32 %p1, %r1, 0;
      @%p1 bra $L_begun;
      mbarrier.init.shared::cta.b64 [%r2], {};
      $L_begun:
      bar.sync 0;
      setp.ge.u32 %p2, %r1, 32;
      @%p2 bra $L_wait;
      mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3+8], %r1;
      mbarrier.arrive.shared::cta.b64 _, [%r2];
      ret;
      $L_wait:
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
      @!%p3 bra $L_wait;
      sub.u32 %r4, %r1, 32; mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r5, [%r3+8];
      mul.wide.u32 %rd1, %r4, 4; add.s64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r5;)",
                            arrivals));
    return bench.run(64, 32, 136);
  };
  const auto words = run(32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], i);
  EXPECT_THAT(fault_of([&] { run(33); }), HasSubstr("never ends"));
}

/// Thread 0 asks for one box of 4 rows of 64 elements, at column 32 and row 2 of a tensor of 5 rows
/// of 64. Its map lies at the front of `out`, the tensor behind it.
std::string box(int expected_bytes) {
  return fmt::format(R"(
    ld.param.u64 %rd0, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, dynamic; add.u32 %r3, %r2, 1024;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $L_wait;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {};
    mov.u32 %r4, 32; mov.u32 %r5, 2;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r2], [%rd0, {{%r4, %r5}}], [%r3];
    $L_wait:
    bar.sync 0;
    $L_again:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
    @!%p3 bra $L_again;
    mad.lo.u32 %r6, %r1, 4, %r2; ld.shared.u32 %r7, [%r6];
    mul.wide.u32 %rd1, %r1, 4; add.s64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r7;)",
                     expected_bytes);
}

std::vector<std::uint32_t> copied_box(int expected_bytes) {
  Bench bench(box(expected_bytes));
  // 32 words of map, then the tensor, with space to align the map.
  bench.memory.assign(32 + 5 * 32 + 16, 0);
  const auto skipped = bench.align(64);
  TensorMap map;
  map.mark = TensorMap::kMark;
  map.rank = 2;
  map.element_bytes = 2;
  map.swizzle_bytes = 128;
  map.data = reinterpret_cast<std::uint64_t>(bench.memory.data() + skipped + 32);
  map.sizes = {64, 5};
  map.strides = {128};
  map.box = {64, 4};
  std::memcpy(bench.memory.data() + skipped, &map, sizeof map);
  for (std::uint32_t i = 0; i < 5 * 32; ++i) bench.memory[skipped + 32 + i] = i + 1;
  return bench.run(128, 128, 1032);
}

TEST(PtxBox, comes_swizzled_with_zeros_outside_of_the_tensor) {
  const auto words = copied_box(512);
  for (std::uint32_t i = 0; i < 128; ++i) {
    const auto row = i / 32, piece = (i % 32 / 4) ^ row, word = piece * 4 + i % 4;
    const bool inside = row + 2 < 5 && word + 16 < 32;
    EXPECT_EQ(words[i], inside ? (row + 2) * 32 + word + 16 + 1 : 0) << i;
  }
}

TEST(PtxBox, ends_no_phase_that_expects_other_bytes) {
  EXPECT_THAT(fault_of([] { copied_box(516); }), HasSubstr("never ends"));
  EXPECT_THAT(fault_of([] { copied_box(508); }), HasSubstr("never ends"));
}

/// A product of 64 x 64 by 128 rows of 64. `before_wait` runs while it is under way. depth_outside:
/// rows are values of k, and 64 of them after another.
struct Warpgroup {
  Matrix a{64, 3}, b{128, 4};
  bool fenced = true, depth_outside = false;
  std::string before_wait, adds = "1";

  std::vector<std::uint32_t> run() const {
    std::vector<std::uint32_t> words;
    append_swizzled(a, words);
    append_swizzled(b, words);
    // Eight rows are 1024 bytes, 64 of them 8192, in units of 16.
    const std::uint64_t aside = depth_outside ? 512 : 1;
    const auto layout = std::uint64_t{1} << 62 | std::uint64_t{64} << 32 | aside << 16;
    std::string body =
        copy_in(words.size()) +
        fmt::format(
            "shr.u32 %r10, %r4, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, {};\n"
            "add.s64 %rd11, %rd10, 512; mov.u32 %r11, {}; setp.ne.b32 %p2, %r11, 0;\n",
            layout, adds);
    for (int i = 0; i < 64; ++i) body += fmt::format("mov.f32 %f{}, 0f00000000;\n", i);
    if (fenced) body += "wgmma.fence.sync.aligned;\n";
    for (int step = 0; step < 4; ++step) {
      body += fmt::format(
          "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {0}, %rd10, %rd11, %p2, 1, 1, "
          "{1}, {1};\n"
          "add.s64 %rd10, %rd10, {2}; add.s64 %rd11, %rd11, {2};\n",
          list_of("%f", 0, 64), depth_outside ? 1 : 0, depth_outside ? 128 : 2);
    }
    body += "wgmma.commit_group.sync.aligned;\n" + before_wait +
            "wgmma.wait_group.sync.aligned 0;\n" + copy_out(64);
    Bench bench(body);
    bench.memory = words;
    return bench.run(128, 128 * 64, 192 * 128);
  }
};

TEST(PtxWarpgroup, multiplies_swizzled_tiles_in_the_documented_layout) {
  const Warpgroup group;
  expect_product(group.run(), group.a, group.b, 128, 64, 64);
}

/// Each 64 rows of a matrix transposed.
Matrix turned(const Matrix& matrix) {
  Matrix result = matrix;
  for (int row = 0; row < matrix.rows; ++row) {
    for (int k = 0; k < 64; ++k) {
      result.values[static_cast<std::size_t>((row / 64 * 64 + k) * 64 + row % 64)] =
          matrix.at(row, k);
    }
  }
  return result;
}

TEST(PtxWarpgroup, multiplies_tiles_whose_rows_are_values_of_k) {
  Warpgroup group;
  group.depth_outside = true;
  expect_product(group.run(), turned(group.a), turned(group.b), 128, 64, 64);
}

TEST(PtxWarpgroup, starts_anew_without_the_predicate) {
  Warpgroup group;
  group.adds = "0";
  const auto words = group.run();  // the last 16 of 64
  int sum = 0;
  for (int k = 48; k < 64; ++k) sum += group.a.at(0, k) * group.b.at(0, k);
  EXPECT_EQ(std::bit_cast<float>(words[0]), static_cast<float>(sum));
}

TEST(PtxWarpgroup, has_no_numbers_before_the_wait) {
  Warpgroup group;
  group.before_wait = "mov.f32 %f200, %f0;\n";
  Warpgroup early = group;
  early.before_wait += "st.global.f32 [%rd0], %f200; ret;\n";
  EXPECT_THAT(fault_of([&] { early.run(); }), HasSubstr("without waiting for a product"));
  group.before_wait += "wgmma.wait_group.sync.aligned 0; mov.f32 %f0, %f200;\n";
  EXPECT_EQ(group.run()[0], 0xFFFFFFFFU);
}

TEST(PtxWarpgroup, finds_operands_that_change_under_way_and_a_missing_fence) {
  Warpgroup group;
  group.before_wait = "st.shared.u32 [%r4+256], 0;\n";
  EXPECT_THAT(fault_of([&] { group.run(); }), HasSubstr("changed between its start and its wait"));
  group.before_wait.clear();
  group.fenced = false;
  EXPECT_THAT(fault_of([&] { group.run(); }), HasSubstr("fence"));
}

}  // namespace
}  // namespace triptych::ptx
