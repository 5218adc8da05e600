// SPDX-License-Identifier: Apache-2.0
#include "core/io/npy.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy_of(const std::string& dictionary, std::size_t data_bytes) {
  const auto size = dictionary.size() + 1;
  std::string file = "\x93NUMPY";
  file += {1, 0, static_cast<char>(size & 0xFF), static_cast<char>(size >> 8)};
  return file + dictionary + "\n" + std::string(data_bytes, '\0');
}

std::string dictionary(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(Npy, round_trip_keeps_specs_and_bits) {
  const test::TemporaryFolder folder;
  for (const auto dtype : kAllDTypes) {
    if (dtype == DType::BF16) continue;
    for (const auto& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{1, 0, 4}}) {
      std::vector<double> values(static_cast<std::size_t>(shape.elements()), 1);
      const auto tensor = from_doubles({dtype, shape}, values);
      save_npy(folder / "a.npy", tensor);
      const auto loaded = load_npy(folder / "a.npy");
      EXPECT_EQ(loaded.spec(), tensor.spec());
      EXPECT_TRUE(std::ranges::equal(loaded.bytes(), tensor.bytes()));
    }
  }
}

TEST(Npy, writes_what_numpy_writes) {
  const test::TemporaryFolder folder;
  save_npy(folder / "a.npy", Tensor(Shape{3}, std::vector<float>{1, 2, 3}));
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  const std::string expected = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text +
                               std::string(117 - text.size(), ' ') + "\n" +
                               std::string("\0\0\x80\x3F\0\0\0\x40\0\0\x40\x40", 12);
  EXPECT_EQ(test::get_file(folder / "a.npy"), expected);
}

TEST(Npy, reads_version_2_and_keys_in_any_order) {
  const test::TemporaryFolder folder;
  const std::string text = R"({"shape":(2,1),"fortran_order":False,"descr":"<i4"})"
                           "\n";
  std::string file("\x93NUMPY\x02\x00", 8);
  file += {static_cast<char>(text.size()), 0, 0, 0};
  file += text + std::string("\x07\0\0\0\xFF\xFF\xFF\xFF", 8);
  test::put_file(folder / "a.npy", file);
  const auto tensor = load_npy(folder / "a.npy");
  EXPECT_EQ(tensor.shape(), (Shape{2, 1}));
  EXPECT_THAT(tensor.as<std::int32_t>(), ElementsAre(7, -1));
}

TEST(Npy, size_limit_is_checked_first) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "a.npy", npy_of(dictionary("|u1", "(100,)"), 100));
  EXPECT_THROW(load_npy(folder / "a.npy", 99), IoError);
}

TEST(Npy, bf16_is_written_as_float32) {
  const test::TemporaryFolder folder;
  save_npy(folder / "a.npy", from_doubles({DType::BF16, {1}}, std::vector<double>{-1.5}));
  EXPECT_EQ(load_npy(folder / "a.npy").as<float>()[0], -1.5F);
}

TEST(Npy, what_triptych_lacks_is_unsupported_and_says_what_to_do) {
  const test::TemporaryFolder folder;
  const std::pair<std::string, const char*> cases[] = {
      {dictionary("<f8", "(1,)"), "astype"},
      {dictionary(">f4", "(2,)"), "little-endian"},
      {dictionary("<u2", "(4,)"), "astype"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "ascontiguousarray"}};
  for (const auto& [text, advice] : cases) {
    test::put_file(folder / "a.npy", npy_of(text, 8));
    try {
      load_npy(folder / "a.npy");
      FAIL() << text;
    } catch (const UnsupportedError& error) {
      EXPECT_THAT(error.what(), HasSubstr(advice));
      EXPECT_THAT(error.what(), HasSubstr("a.npy"));
    }
  }
}

TEST(Npy, a_record_is_told_from_an_array_of_numbers) {
  const test::TemporaryFolder folder;
  test::put_file(
      folder / "a.npy",
      npy_of("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (1,), }",
             8));
  try {
    load_npy(folder / "a.npy");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"[('a', '<f4'), ('b', '<i4')]\", a record"));
    EXPECT_THAT(error.what(), HasSubstr("f4, f2, i1, u1, i4, i8 and b1"));
  }
}

struct HostileArray {
  const char* what;
  std::string file;
};

void PrintTo(const HostileArray& hostile, std::ostream* stream) { *stream << hostile.what; }

class HostileNpy : public ::testing::TestWithParam<HostileArray> {};

TEST_P(HostileNpy, is_refused) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "hostile.npy", GetParam().file);
  try {
    load_npy(folder / "hostile.npy");
    FAIL() << "loaded";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hostile.npy"));
  }
}

HostileArray shape(const char* what, const std::string& text, std::size_t data_bytes) {
  return {what, npy_of(dictionary("<f4", text), data_bytes)};
}

HostileArray text(const char* what, const std::string& header, std::size_t data_bytes = 8) {
  return {what, npy_of(header, data_bytes)};
}

std::string version_1_7() {
  auto file = npy_of(dictionary("<f4", "(2,)"), 8);
  file[7] = 7;
  return file;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, HostileNpy,
    ::testing::Values(
        HostileArray{"empty", ""}, HostileArray{"magic only", "\x93NUMPY"},
        HostileArray{"other magic", "\x89NUMPY" + npy_of(dictionary("<f4", "(2,)"), 8).substr(6)},
        HostileArray{"version 9", std::string("\x93NUMPY\x09\x00\x02\x00{}", 12)},
        HostileArray{"version 1.7", version_1_7()},
        HostileArray{"header beyond the file", std::string("\x93NUMPY\x01\x00\xFF\xFF{}", 12)},
        HostileArray{"header of 4 GiB", std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{}", 14)},
        HostileArray{"version 2 cut in its length", std::string("\x93NUMPY\x02\x00\x01\x00", 10)},
        HostileArray{"empty header", std::string("\x93NUMPY\x01\x00\x00\x00", 10)},
        shape("negative size", "(-2,)", 8), shape("negative zero", "(-0,)", 0),
        shape("two negative sizes", "(-1, -2)", 8),
        shape("product that wraps", "(4294967296, 4294967296, 4294967297)", 8),
        shape("bytes that wrap", "(4611686018427387904,)", 0),
        shape("size above 63 bits", "(9223372036854775808,)", 8),
        shape("size of 2^80", "(1208925819614629174706176,)", 8),
        shape("exabytes on 8 bytes", "(1152921504606846976,)", 8),
        shape("0 hiding a wrap", "(0, 9223372036854775807, 3)", 0),
        shape("number instead of a tuple", "2", 8), shape("parenthesis only", "(2)", 8),
        shape("tuple without end", "(2, ", 8), shape("fraction", "(2.0,)", 8),
        shape("long suffix", "(2L,)", 8), shape("hexadecimal", "(0x2,)", 8),
        shape("expression", "(1+1,)", 8), shape("nested tuple", "((2,),)", 8),
        shape("too little data", "(2,)", 7), shape("trailing data", "(2,)", 9),
        shape(
            "65 dimensions",
            [] {
              std::string ones = "(";
              for (int i = 0; i < 65; ++i) ones += "1, ";
              return ones + ")";
            }(),
            4),
        text("object array", dictionary("|O", "(1,)")),
        text("record array", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
        text("text array", dictionary("<U2", "(1,)")), text("empty descr", dictionary("", "(1,)")),
        text("void array", dictionary("|V8", "(1,)")),
        text("no descr", "{'fortran_order': False, 'shape': (2,), }"),
        text("no order", "{'descr': '<f4', 'shape': (2,), }"),
        text("no shape", "{'descr': '<f4', 'fortran_order': False, }"),
        text("order as number", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }"),
        text("unknown key", dictionary("<f4", "(2,), 'x': 1")),
        text("key twice", dictionary("<f4", "(2,), 'shape': (2,)")),
        text("order twice", dictionary("<f4", "(2,), 'fortran_order': False")),
        text("code", "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,), }"),
        text("text after the dictionary", dictionary("<f4", "(2,)") + "x"),
        text("string without end", "{'descr"), text("list", "['<f4', False, (2,)]"),
        HostileArray{"bool of 2", npy_of(dictionary("|b1", "(1,)"), 0) + "\x02"}));

TEST(Npy, float64_becomes_float32_where_that_is_asked_for) {
  const test::TemporaryFolder folder;
  const Tensor tensor(Shape{3}, std::vector<float>{1, -2.5F, 0});
  test::put_file(folder / "a", encode_npy_widened(tensor));
  EXPECT_THROW(load_npy(folder / "a"), UnsupportedError);
  const auto back = load_npy_narrowed(folder / "a");
  EXPECT_TRUE(std::ranges::equal(back.bytes(), tensor.bytes()));
  test::put_file(folder / "b", encode_npy(tensor));
  EXPECT_THROW(load_npy_narrowed(folder / "b"), IoError);
}

TEST(Npy, float64_that_float32_has_no_place_for_is_refused) {
  for (const double value : {1e39, -1e39, 1e-39}) EXPECT_FALSE(fits_float(value)) << value;
  for (const double value : {0.0, 1.0, 3e38, 1.2e-38, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    EXPECT_TRUE(fits_float(value)) << value;
  }
  const test::TemporaryFolder folder;
  auto file = encode_npy_widened(Tensor(Shape{1}, std::vector<float>{1}));
  const double large = 1e300;
  std::memcpy(file.data() + file.size() - sizeof(large), &large, sizeof(large));
  test::put_file(folder / "a", file);
  EXPECT_THROW(load_npy_narrowed(folder / "a"), UnsupportedError);
}

TEST(Npy, every_truncation_of_a_valid_file_is_refused) {
  const test::TemporaryFolder folder;
  save_npy(folder / "whole", Tensor(Shape{3}, std::vector<float>{1, 2, 3}));
  const auto whole = test::get_file(folder / "whole");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::put_file(folder / "part", whole.substr(0, size));
    EXPECT_THROW(load_npy(folder / "part"), IoError) << size;
  }
}

}  // namespace
}  // namespace triptych
