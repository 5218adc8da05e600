"""Budgets of code lines per directory, and headers that have one user.

budgets.txt states the most code lines that each directory may have; one_user_headers.txt lists the headers that may
have a single user. Both may only shrink: `budget_test.py SOURCE_DIR --lower` rewrites them after a reduction. A new
entry or a higher budget is an edit by hand, and its commit message states the benefit.
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
HERE = ROOT / "tests/architecture"
BUDGETS, HEADERS = HERE / "budgets.txt", HERE / "one_user_headers.txt"
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
#: Templates of generated files, which include headers, too.
USERS = SOURCES | {".in"}
PRODUCT = ["core", "backends", "systolic", "parallel", "experiments"]
#: Lines that may be left over before the budget must follow.
SLACK = 40
NO_CODE = re.compile(r"[{}()\[\];,]*|#.*|(inline )?namespace\b.*|using namespace\b.*|}  // namespace.*")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def code_lines(text):
    """Lines that hold code: no blank lines, comments, lone braces, preprocessor or namespace lines."""
    count, in_comment = 0, False
    for line in map(str.strip, text.splitlines()):
        if in_comment:
            in_comment = "*/" not in line
        elif line.startswith("/*"):
            in_comment = "*/" not in line
        elif not line.startswith("//") and not NO_CODE.fullmatch(line):
            count += 1
    return count


def files_below(folder, suffixes):
    return sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes and path.is_file())


def counted():
    """Code lines of each directory of the second level."""
    lines = collections.Counter()
    for top in PRODUCT:
        for path in files_below(top, SOURCES):
            parts = path.relative_to(ROOT).parts
            lines["/".join(parts[:2]) if len(parts) > 2 else top] += code_lines(path.read_text())
    return dict(sorted(lines.items()))


def entries(path):
    rows = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {row[0]: row[1:] for row in rows}


def one_user_headers():
    """Headers that no test and at most one product file includes, besides the source of the same name."""
    users, tested = collections.defaultdict(set), set()
    for top in PRODUCT:
        for path in files_below(top, USERS):
            for header in INCLUDE.findall(path.read_text()):
                users[header].add(path.relative_to(ROOT).as_posix())
    for path in files_below("tests", USERS) + files_below("docs", USERS):
        tested.update(INCLUDE.findall(path.read_text()))
    result = []
    for top in PRODUCT:
        for path in files_below(top, {".h"}):
            name = path.relative_to(ROOT).as_posix()
            others = {user for user in users[name] if user.rsplit(".", 1)[0] != name.rsplit(".", 1)[0]}
            if name not in tested and len(others) == 1:
                result.append(name)
    return result


class Budget(unittest.TestCase):
    def test_lines_without_code_do_not_count(self):
        self.assertEqual(code_lines("// a\n\n#include <b>\nnamespace c {\n{\n};\n/* d\ne */\n}  // namespace c\n"), 0)
        self.assertEqual(code_lines("int a;  // b\nif (a) {\n  f();\n}\n"), 3)

    def test_each_directory_keeps_its_budget(self):
        budgets, lines = entries(BUDGETS), counted()
        self.assertEqual(sorted(budgets), sorted(lines), "budgets.txt lists the directories that hold code")
        for folder, count in lines.items():
            with self.subTest(folder=folder):
                budget = int(budgets[folder][0])
                self.assertLessEqual(count, budget, f"{folder} is over its budget: remove code, or raise the budget "
                                     "in tests/architecture/budgets.txt and state the benefit in the commit")
                self.assertLessEqual(budget - count, SLACK, f"{folder} has shrunk: run "
                                     "python3 tests/architecture/budget_test.py . --lower")

    def test_a_header_has_two_users_or_a_test(self):
        allowed, found = set(entries(HEADERS)), set(one_user_headers())
        self.assertEqual(sorted(found - allowed), [], "move their content into the one source that includes them")
        self.assertEqual(sorted(allowed - found), [], "have more users or are gone: run "
                         "python3 tests/architecture/budget_test.py . --lower")


def lower():
    """Lowers budgets to the current numbers and drops headers that need no exception."""
    lines, headers = counted(), set(one_user_headers())
    budgets = [f"{folder} {min(int(row[0]), lines[folder])}" for folder, row in entries(BUDGETS).items()
               if folder in lines]
    for path, rows in ((BUDGETS, budgets), (HEADERS, [name for name in entries(HEADERS) if name in headers])):
        head = [line for line in path.read_text().splitlines() if line.startswith("#")]
        path.write_text("\n".join([*head, "", *rows]) + "\n")


if __name__ == "__main__":
    if "--lower" in sys.argv:
        lower()
    else:
        unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
