// Text of others in a form that cannot harm a terminal, and as fields of CSV.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/file_text.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/csv_text.h"

namespace triptych {
namespace {

TEST(FileText, printable_text_stays_as_it_is) {
  for (const std::string text : {"", "plain", "two\nlines\t", "größe 日本 😀", "\\u001b"})
    EXPECT_EQ(escaped(text), text);
}

TEST(FileText, what_steers_a_terminal_becomes_an_escape) {
  EXPECT_EQ(escaped("a\x1b[31m\x07\x7f"), "a\\u001b[31m\\u0007\\u007f");
  EXPECT_EQ(escaped("\u009b\u0085"), "\\u009b\\u0085") << "C1 in UTF-8";
  EXPECT_EQ(escaped("\u202e\u2066\u2028\u2029\u200f\u061c"),
            "\\u202e\\u2066\\u2028\\u2029\\u200f\\u061c");
  EXPECT_EQ(escaped("a\r\nb\rc"), "a\nb\\u000dc");
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a\\u0000b");
}

TEST(FileText, bytes_that_are_no_utf8_become_escapes) {
  EXPECT_EQ(escaped("\x9b\xff"), "\\x9b\\xff");
  EXPECT_EQ(escaped("\xc3"), "\\xc3") << "cut";
  EXPECT_EQ(escaped("\xe2\x28\xa1"), "\\xe2(\\xa1") << "no continuation";
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf") << "two bytes for one";
  EXPECT_EQ(escaped("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf") << "three bytes for two";
  EXPECT_EQ(escaped("\xe0\xa0\x80"), "\xe0\xa0\x80") << "the first of three bytes";
  EXPECT_EQ(escaped("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf") << "four bytes for three";
  EXPECT_EQ(escaped("\xf0\x90\x80\x80"), "\xf0\x90\x80\x80") << "the first of four bytes";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
}

TEST(FileText, a_long_text_is_cut_between_characters) {
  EXPECT_EQ(shortened("short"), "short");
  std::string text(8191, 'a');
  text += "ä" + std::string(100, 'b');
  EXPECT_EQ(shortened(text), std::string(8191, 'a') + "... (102 bytes more)");
  EXPECT_TRUE(shortened(std::string(10000, '\x9b')).ends_with("... (1812 bytes more)"));
}

TEST(CsvText, formulas_get_an_apostrophe) {
  EXPECT_EQ(csv_text("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(csv_text("@SUM(1)"), "'@SUM(1)");
  EXPECT_EQ(csv_text("+1+2"), "'+1+2");
  EXPECT_EQ(csv_text("-1+2"), "'-1+2");
  EXPECT_EQ(csv_text("\t=1"), "\"'\t=1\"");
  EXPECT_EQ(csv_text("\r=1"), "\"'\r=1\"");
  EXPECT_EQ(csv_text("=1,2"), "\"'=1,2\"");
}

TEST(CsvText, numbers_and_other_text_stay) {
  for (const std::string text : {"", "-", "-1.5", "-3e-05", "cell 7", "a=b", "'tis", "'"})
    EXPECT_EQ(csv_text(text), text);
  EXPECT_EQ(csv_text("say \"a\", b"), "\"say \"\"a\"\", b\"");
}

TEST(CsvText, a_reader_gets_the_text_back) {
  for (const std::string text :
       {"=1+1", "'=1+1", "''=1+1", "-x", "@", "@a", "plain", "'tis", "-1.5", "\t=1"}) {
    auto field = csv_text(text);
    if (field.starts_with('"')) field = field.substr(1, field.size() - 2);
    EXPECT_EQ(text_of_csv(field), text);
  }
  EXPECT_EQ(text_of_csv("'tis"), "'tis");
}

}  // namespace
}  // namespace triptych
