#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of conditions.py: which conditions it finds, and that a program has the fault that is selected.

  conditions_test.py COMPILER SOURCE_DIR
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import conditions

COMPILER, SOURCES = "c++", pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """
#include <cstdio>
// if (in_a_comment && "skipped") {}
struct Window { int stride; const char* name; };
static const char* verdict(const Window& w, int pad) {
  if (w.stride == 2 &&
      pad == 0) {  // the fast path
    return "fast";
  }
  return w.stride > 2 ? "far" : "slow";
}
constexpr bool small(int n) { return n < 3; }
static_assert(small(2));
Window&& moved(Window&& w) { return static_cast<Window&&>(w); }
int main(int argc, char**) {
  const Window windows[] = {{2, "two && three"}, {1, "one"}, {3, "?"}};
  for (const auto& w : windows) {
    for (int pad = 0; pad < 2; ++pad) std::puts(verdict(w, pad));
  }
  const bool few = argc < 5 || small(argc);
  std::puts(few ? "few" : "many");
}
"""


def found(text):
    return [(one.text, one.dropped) for one in conditions.conditions_of(text)]


class Conditions(unittest.TestCase):
    def test_operands_whole_conditions_choices_and_returned_comparisons_are_found(self):
        self.assertEqual(found(PROGRAM), [
            ("w.stride == 2", True), ("pad == 0", True), ("w.stride > 2", False), ("n < 3", True),
            ("argc < 5", False), ("small(argc)", False), ("few", False)])

    def test_what_is_no_condition_at_run_time_is_left(self):
        for text in ("template <class T>\n  requires A<T> && B<T>\nvoid f();\n",
                     "void f() { if constexpr (a && b) g(); }\n",
                     "static_assert(a && b);\n",
                     "Tensor reshaped(Shape shape) && { return x; }\n",
                     "bool f() { return (is<Ops>(op) || ...); }\n",
                     "void f() { if (auto found = find(x)) g(); }\n",
                     "#define BOTH(a, b) ((a) && (b))\n",
                     "void f() { for (int i = 0; i < 3; ++i) g(\"a && b\"); }\n"):
            self.assertEqual(found(text), [], text)

    def test_operands_end_at_calls_templates_choices_and_labels(self):
        self.assertEqual(found("x = f(a, pair<int, int>(b) && c) ? d : elsewhere == 1 ? e : g;\n"),
                         [("f(a, pair<int, int>(b) && c)", False), ("pair<int, int>(b)", True), ("c", True),
                          ("elsewhere == 1", False)])
        self.assertEqual(found("switch (x) {\n  case A::B:\n    kind == 3 ? f() : g();\n}\n"), [("kind == 3", False)])
        self.assertEqual(found("if (const int n = f(); n > 2) g();\n"), [("n > 2", False)])

    def test_an_operand_begins_behind_a_block(self):
        self.assertEqual(found("for (auto& one : all) {\n  use(one);\n}\nfew ? f() : g();\n"), [("few", False)])
        self.assertEqual(found("x = Shape{1, 2}\n        == shape && y;\n"),
                         [("Shape{1, 2}\n        == shape", True), ("y", True)])

    def test_lines_keep_their_numbers(self):
        list_of = conditions.conditions_of(PROGRAM)
        text = conditions.instrumented(PROGRAM, list_of, 1)
        start, lines = "#line 1\n", PROGRAM.splitlines()
        self.assertEqual(len(text.partition(start)[2].splitlines()), len(lines))
        for one in list_of:
            self.assertIn(one.text.splitlines()[0], lines[one.line - 1])


class Switch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        source = folder / "program.cpp"
        source.write_text(conditions.instrumented(PROGRAM, conditions.conditions_of(PROGRAM), 10))
        cls.program = folder / "program"
        switch = SOURCES / "tests/mutation/switch.cpp"
        subprocess.run([COMPILER, "-std=c++20", "-I", str(SOURCES), str(source), str(switch), "-o", str(cls.program)],
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def output(self, **environment):
        done = subprocess.run([self.program], check=True, capture_output=True, text=True,
                              env={**os.environ, **environment})
        return done.stdout.split()

    def test_no_mutant_is_active_by_itself(self):
        self.assertEqual(self.output(), ["fast", "slow", "slow", "slow", "far", "far", "few"])

    def test_a_dropped_condition_holds_always_and_a_negated_one_where_it_did_not(self):
        self.assertEqual(self.output(TRIPTYCH_MUTANT="20"), ["fast", "slow", "fast", "slow", "fast", "far", "few"])
        self.assertEqual(self.output(TRIPTYCH_MUTANT="21"), ["slow", "slow", "fast", "slow", "fast", "far", "few"])
        self.assertEqual(self.output(TRIPTYCH_MUTANT="22"), ["fast", "fast", "slow", "slow", "far", "far", "few"])

    def test_values_that_conditions_had_are_recorded(self):
        path = pathlib.Path(self.folder.name) / "seen"
        self.output(TRIPTYCH_CONDITIONS=str(path))
        # The last operand is not evaluated behind argc < 5.
        self.assertEqual(list(path.read_bytes()[9:18]), [0, 3, 3, 3, 0, 2, 0, 2, 0])


if __name__ == "__main__":
    COMPILER, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
