// SPDX-License-Identifier: Apache-2.0
#include "core/io/safetensors.h"

#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <limits>

#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

std::string length_prefix(std::uint64_t length) {
  const auto bytes = std::bit_cast<std::array<char, 8>>(length);
  return {bytes.begin(), bytes.end()};
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  return length_prefix(header.size()) + header + std::string(data_bytes, '\0');
}

TensorMap one_of_each_dtype() {
  TensorMap tensors;
  for (const auto dtype : kAllDTypes) {
    const double values[] = {0, 1, 1, 0, 1, 0};
    tensors.emplace(std::string(to_string(dtype)), from_doubles({dtype, {2, 3}}, values));
  }
  tensors.emplace("scalar", scalar_tensor(std::numeric_limits<std::int64_t>::min()));
  tensors.emplace("empty", Tensor(TensorSpec{DType::F32, {4, 0}}));
  tensors.emplace("name with \"quotes\", a \\ and \u00e4", scalar_tensor(-0.0F));
  return tensors;
}

TEST(Safetensors, round_trip_keeps_names_specs_bits_and_metadata) {
  const test::TemporaryFolder folder;
  const auto tensors = one_of_each_dtype();
  const StringMap metadata = {{"format", "pt"}, {"note", "line\nbreak"}};
  save_safetensors(folder / "a", tensors, metadata);
  const auto loaded = load_safetensors(folder / "a");
  EXPECT_EQ(loaded.metadata, metadata);
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto& other = loaded.tensors.at(name);
    EXPECT_EQ(other.spec(), tensor.spec()) << name;
    EXPECT_TRUE(std::ranges::equal(other.bytes(), tensor.bytes())) << name;
  }
}

TEST(Safetensors, equal_tensors_give_equal_bytes_aligned_to_their_elements) {
  const test::TemporaryFolder folder;
  const auto digest = save_safetensors(folder / "a", one_of_each_dtype());
  EXPECT_EQ(digest, save_safetensors(folder / "b", one_of_each_dtype()));
  const auto file = test::get_file(folder / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = parse_safetensors_header(std::string_view(file).substr(8, length),
                                               static_cast<std::int64_t>(file.size() - 8 - length));
  for (const auto& entry : header.entries) {
    EXPECT_EQ(static_cast<std::size_t>(entry.offset) % dtype_size(entry.spec.dtype), 0u);
  }
}

TEST(Safetensors, no_tensors_and_trailing_spaces_are_valid) {
  const test::TemporaryFolder folder;
  save_safetensors(folder / "a", {});
  EXPECT_TRUE(load_safetensors(folder / "a").tensors.empty());
  test::put_file(folder / "b", file_of("{}      ", 0));
  EXPECT_TRUE(load_safetensors(folder / "b").tensors.empty());
}

TEST(Safetensors, writer_refuses_names_that_no_reader_accepts) {
  const test::TemporaryFolder folder;
  for (const auto* name : {"__metadata__", "\xFF\xFE"}) {
    TensorMap tensors;
    tensors.emplace(name, scalar_tensor(1.0F));
    EXPECT_THROW(save_safetensors(folder / "a", tensors), InvalidArgument);
  }
  EXPECT_EQ(test::files_in(folder.path()), 0);
}

TEST(Safetensors, size_limit_is_checked_first) {
  const test::TemporaryFolder folder;
  save_safetensors(folder / "a", one_of_each_dtype());
  EXPECT_THROW(load_safetensors(folder / "a", 100), IoError);
}

TEST(Safetensors, a_dtype_of_the_format_that_triptych_lacks_is_unsupported) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "a",
                 file_of(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8));
  try {
    load_safetensors(folder / "a");
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder / "a").string()));
    EXPECT_THAT(error.what(), HasSubstr("F64"));
  }
}

struct Hostile {
  const char* what;
  std::string file;
};

void PrintTo(const Hostile& hostile, std::ostream* stream) { *stream << hostile.what; }

class HostileSafetensors : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, is_refused) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "hostile", GetParam().file);
  try {
    load_safetensors(folder / "hostile");
    FAIL() << "loaded";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder / "hostile").string()));
  }
}

Hostile header(const char* what, const std::string& json, std::size_t data_bytes) {
  return {what, file_of(json, data_bytes)};
}

/// A file of one u8 tensor "a" with the given members.
Hostile tensor(const char* what, const std::string& members, std::size_t data_bytes) {
  return header(what, R"({"a":{)" + members + "}}", data_bytes);
}

Hostile two(const char* what, const std::string& first, const std::string& second,
            std::size_t data_bytes) {
  const auto entry = [](const std::string& range) {
    return R"({"dtype":"U8","shape":[4],"data_offsets":)" + range + "}";
  };
  return header(what, R"({"a":)" + entry(first) + R"(,"b":)" + entry(second) + "}", data_bytes);
}

Hostile bool_of_2() {
  const std::string json = R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})";
  return {"bool of 2", file_of(json, 0) + "\x02"};
}

const std::string kU8 = R"("dtype":"U8",)";
const std::string kRange4 = R"("data_offsets":[0,4])";

INSTANTIATE_TEST_SUITE_P(
    Cases, HostileSafetensors,
    ::testing::Values(
        Hostile{"empty file", ""}, Hostile{"seven bytes", "1234567"},
        Hostile{"header beyond the file", length_prefix(100) + "{}"},
        Hostile{"header of 2^64 - 1 bytes", length_prefix(~std::uint64_t{0}) + "{}"},
        Hostile{"header of 2^63 bytes", length_prefix(std::uint64_t{1} << 63) + "{}"},
        Hostile{"header of 0 bytes", length_prefix(0)},
        header("header above the limit", "{}" + std::string(kMaxSafetensorsHeader, ' '), 0),
        header("not JSON", "hello", 0), header("half JSON", R"({"a":)", 0),
        header("list on top", "[]", 0), header("space first", " {}", 0),
        header("text after the end", "{} x", 0),
        header("NUL after the end", std::string("{}\0hidden", 9), 0),
        header("invalid UTF-8", "{\"__metadata__\":{\"a\":\"\xC3\x28\"}}", 0),
        header("comment", "{/* */}", 0),
        header("deep nesting", R"({"a":)" + std::string(1000000, '['), 0),
        header("metadata that is no string map", R"({"__metadata__":{"a":1}})", 0),
        header("nested metadata", R"({"__metadata__":{"a":{}}})", 0),
        header("metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0),
        header("metadata key twice", R"({"__metadata__":{"a":"1","a":"2"}})", 0),
        header("tensor that is a number", R"({"a":1})", 0),
        header("tensor that is a list", R"({"a":[]})", 0),
        header("tensor that is a string", R"({"a":"U8"})", 0), tensor("no members", "", 0),
        tensor("no dtype", R"("shape":[4],)" + kRange4, 4), tensor("no shape", kU8 + kRange4, 4),
        tensor("no offsets", kU8 + R"("shape":[4])", 4),
        tensor("unknown member", kU8 + R"("shape":[4],"x":[1],)" + kRange4, 4),
        tensor("member twice", kU8 + R"("shape":[4],"shape":[4],)" + kRange4, 4),
        tensor("dtype twice", kU8 + kU8 + R"("shape":[4],)" + kRange4, 4),
        tensor("unknown dtype", R"("dtype":"Q8","shape":[4],)" + kRange4, 4),
        tensor("negative size", kU8 + R"("shape":[-4],)" + kRange4, 4),
        tensor("two negative sizes", kU8 + R"("shape":[-2,-2],)" + kRange4, 4),
        tensor("fractional size", kU8 + R"("shape":[4.0],)" + kRange4, 4),
        tensor("size as text", kU8 + R"("shape":["4"],)" + kRange4, 4),
        tensor("nested shape", kU8 + R"("shape":[[4]],)" + kRange4, 4),
        tensor("size of 2^63", kU8 + R"("shape":[9223372036854775808],)" + kRange4, 4),
        tensor("size of 2^80", kU8 + R"("shape":[1208925819614629174706176],)" + kRange4, 4),
        tensor("product that wraps to 4",
               kU8 + R"("shape":[4294967297,4294967296,4294967296],)" + kRange4, 4),
        tensor("bytes that wrap", R"("dtype":"F32","shape":[4611686018427387904],)" + kRange4, 4),
        tensor("wrapping product hidden by 0",
               kU8 + R"("shape":[0,9223372036854775807,4],"data_offsets":[0,0])", 0),
        tensor(
            "100 dimensions",
            kU8 + R"("shape":[1)" +
                [] {
                  std::string ones;
                  for (int i = 0; i < 99; ++i) ones += ",1";
                  return ones;
                }() +
                R"(],"data_offsets":[0,1])",
            1),
        tensor("range shorter than the shape", kU8 + R"("shape":[5],)" + kRange4, 4),
        tensor("range longer than the shape", kU8 + R"("shape":[3],)" + kRange4, 4),
        tensor("range beyond the data", kU8 + R"("shape":[4],)" + kRange4, 3),
        tensor("range backwards", kU8 + R"("shape":[4],"data_offsets":[4,0])", 4),
        tensor("one offset", kU8 + R"("shape":[4],"data_offsets":[4])", 4),
        tensor("three offsets", kU8 + R"("shape":[4],"data_offsets":[0,4,4])", 4),
        tensor("trailing bytes", kU8 + R"("shape":[4],)" + kRange4, 5),
        tensor("hole at the start", kU8 + R"("shape":[4],"data_offsets":[4,8])", 8),
        two("same range twice", "[0,4]", "[0,4]", 4), two("overlap", "[0,4]", "[2,6]", 6),
        two("same range twice and a rest", "[0,4]", "[0,4]", 8),
        two("hole between", "[0,4]", "[6,10]", 10), bool_of_2()));

TEST(Safetensors, every_truncation_of_a_valid_file_is_refused) {
  const test::TemporaryFolder folder;
  TensorMap tensors;
  tensors.emplace("a", Tensor(Shape{3}, std::vector<float>{1, 2, 3}));
  save_safetensors(folder / "whole", tensors);
  const auto whole = test::get_file(folder / "whole");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::put_file(folder / "part", whole.substr(0, size));
    EXPECT_THROW(load_safetensors(folder / "part"), IoError) << size;
  }
}

}  // namespace
}  // namespace triptych
