// SPDX-License-Identifier: Apache-2.0
#include "core/io/strict_json.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

using Json = nlohmann::ordered_json;

std::string complaint(const std::string& text) {
  try {
    parse_strict<Json>(text);
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

std::string object_with(int keys) {
  Json json;
  for (int i = 0; i < keys; ++i) json["k" + std::to_string(i)] = i;
  return json.dump();
}

TEST(StrictJson, refuses_what_the_parser_would_accept) {
  EXPECT_EQ(complaint(R"({"a": {"b": 1}})"), "");
  EXPECT_EQ(complaint(R"({"a": 1, "a": 2})"), "key \"a\" appears twice");
  EXPECT_EQ(complaint(std::string("{}\0", 3)), "the JSON holds a NUL");
  EXPECT_EQ(complaint(std::string(100, '[') + std::string(100, ']')),
            "the JSON is nested too deeply");
}

TEST(StrictJson, a_version_is_required_and_must_be_the_one_that_is_read) {
  const auto problem = [](const Json& json) -> std::string {
    try {
      require_schema(json, 2, "make it again");
    } catch (const UnsupportedError& error) {
      return fmt::format("unsupported: {}", error.what());
    } catch (const IoError& error) {
      return error.what();
    }
    return "";
  };
  const std::string missing =
      "it has no whole number \"schema\"; this version reads schema 2; make it again";
  EXPECT_EQ(problem({{"schema", 2}}), "");
  EXPECT_EQ(problem({{"schema", 3}}),
            "unsupported: it has schema 3; this version reads schema 2; make it again");
  EXPECT_EQ(problem({{"schema", "2"}}), missing);
  EXPECT_EQ(problem(Json::object()), missing);
  EXPECT_EQ(problem(Json::array({2})), missing);
  EXPECT_EQ(problem(nullptr), missing);
}

TEST(StrictJson, refuses_an_object_with_too_many_keys) {
  EXPECT_EQ(complaint("[" + object_with(1000) + "," + object_with(1000) + "]"), "");
  std::string text = "{";  // ends before its end: the limit holds while the text is read
  for (int i = 0; i < 10'001; ++i) text += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_EQ(complaint(text), "an object has more than 10000 keys");
}

}  // namespace
}  // namespace triptych
