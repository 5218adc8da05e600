"""The table of options (experiments/training/*_rows.cpp) alone spells an option or a field.

Another product file that does needs an entry in option_literals.txt. The list only shrinks: an entry without a
literal fails the test. Fields of one English word are left out, since reports have the same words.

Likewise a field of a report has one place that spells it: repeated_fields.txt lists the fields of several words that
C++ of experiments spells in several places, and how many.

    option_literals.py SOURCE_DIR [--write]
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
LIST = pathlib.Path(__file__).with_name("option_literals.txt")
REPEATED = pathlib.Path(__file__).with_name("repeated_fields.txt")
# Programs that start `triptych` or others as a user does, on a command line.
CALLERS = ("experiments/labs/", "experiments/studies/")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py", ".pyi"}


def table():
    """The names of options that are not every command's, and the fields of several words."""
    names, fields = set(), set()
    for path in sorted((SOURCE / "experiments/training").glob("*_rows.cpp")):
        text = path.read_text()
        for row in re.split(r"\{\.name = |\{\.member = ", text)[1:]:
            name = re.match(r'"(--[a-z-]+)"', row)
            if name and "group = Program" not in row.split("{.")[0]:
                names.add(name[1])
        fields |= {field.split(".")[-1] for field in re.findall(r'\.field = "([a-z0-9_.]+)"', text)}
    return names, {field for field in fields if "_" in field}


def literals(path, words):
    lines = (line.split("//")[0] for line in path.read_text().splitlines())
    return {text for line in lines for text in re.findall(r'["\']([a-z0-9_-]+)["\']', line)} & words


def found():
    names, fields = table()
    result = {}
    for folder in ("core", "backends", "systolic", "parallel", "experiments"):
        for path in sorted((SOURCE / folder).rglob("*")):
            name = path.relative_to(SOURCE).as_posix()
            if path.suffix not in SUFFIXES or name.startswith(CALLERS) or name.endswith("_rows.cpp"):
                continue
            # Below the training of runs, names are those of graphs and of files.
            words = names | fields if folder == "experiments" else names
            if used := literals(path, words):
                result[name] = used
    return result


def repeated():
    """Fields by the number of places that spell them. A source and its header are one place."""
    places = {}
    for path in sorted((SOURCE / "experiments").rglob("*")):
        if path.suffix in {".h", ".cpp"}:
            for line in path.read_text().splitlines():
                for field in re.findall(r'"([a-z][a-z0-9]*(?:_[a-z0-9]+)+)"', line.split("//")[0]):
                    places.setdefault(field, set()).add(path.with_suffix(""))
    return {field: len(found) for field, found in places.items() if len(found) > 1}


def listed_repeated():
    lines = [line.split() for line in REPEATED.read_text().splitlines() if line and not line.startswith("#")]
    return {field: int(count) for field, count in lines}


def listed():
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {name: set(words.split()) for name, words in (line.split(":", 1) for line in lines)}


def write(file, body):
    head = [line for line in file.read_text().splitlines() if line.startswith("#")]
    file.write_text("\n".join([*head, "", *body, ""]))


class OptionLiterals(unittest.TestCase):
    def test_the_table_is_read(self):
        names, fields = table()
        self.assertGreater(len(names), 70)
        self.assertGreater(len(fields), 20)
        self.assertTrue({"--ignore-label", "--link-latency", "--replay"} <= names)
        self.assertNotIn("--json", names)
        self.assertTrue({"cache_mib", "steps_per_epoch", "link_bytes_per_s"} <= fields)

    def test_no_second_file_spells_an_option_or_a_field(self):
        entries, now = listed(), found()
        for name in sorted(set(entries) | set(now)):
            with self.subTest(name):
                new = now.get(name, set()) - entries.get(name, set())
                self.assertEqual(new, set(), "use a row of experiments/training/run_options.h instead")
                gone = entries.get(name, set()) - now.get(name, set())
                self.assertEqual(gone, set(), f"remove these from {LIST.name}")

    def test_no_further_place_spells_a_field_of_a_report(self):
        entries, now = listed_repeated(), repeated()
        self.assertGreater(len(now), 10)
        for field in sorted(set(entries) | set(now)):
            with self.subTest(field):
                self.assertLessEqual(now.get(field, 0), entries.get(field, 0),
                                     "use the description of the record that has the field")
                self.assertGreaterEqual(now.get(field, 0), entries.get(field, 0), f"lower it in {REPEATED.name}: --write")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write(LIST, [f"{name}: {' '.join(sorted(words))}" for name, words in sorted(found().items())])
        write(REPEATED, [f"{field} {count}" for field, count in sorted(repeated().items())])
    else:
        unittest.main(argv=sys.argv[:1] + sys.argv[2:])
