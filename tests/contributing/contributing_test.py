"""CONTRIBUTING.md, followed to the letter: its files, its lines in lists and its commands.

contributing_test.py SOURCE         looks whether its places exist, and whether lists and files agree
contributing_test.py SOURCE FOLDER  does what it says in a copy of the sources, kept in FOLDER, too
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1])
COPY = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None

# `path`, in the list `name`:      (the last part for lines only), and the fenced block behind it
STEP = re.compile(r"^(?:`(?P<path>[^`\n]+)`(?:, in the list `(?P<list>\w+)`)?:\n\n)?"
                  r"```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

# A list: where it stands, its name, a name's file, and the function that the file defines.
LISTS = [
    ("core/ops/CMakeLists.txt", "operators", "core/ops/{}.cpp", "add_{}_ops"),
    ("core/ops/CMakeLists.txt", "operators", "core/conformance/cases/{}_cases.cpp", "add_{}_cases"),
    ("backends/cpu/CMakeLists.txt", "kernels", "backends/cpu/kernels/{}.cpp", "add_{}_kernels"),
    ("backends/cuda/CMakeLists.txt", "kernels", "backends/cuda/kernels/{}.cu", "add_{}_kernels"),
    ("backends/systolic/CMakeLists.txt", "kernels", "backends/systolic/kernels/{}.cpp",
     "add_{}_kernels"),
    ("core/onnx/CMakeLists.txt", "translations", "core/onnx/translations/{}.cpp",
     "add_{}_translations"),
    ("backends/CMakeLists.txt", "backends", "backends/{0}/{0}_backend.cpp", "add_{}_backends"),
]


def steps():
    return list(STEP.finditer((SOURCE / "CONTRIBUTING.md").read_text()))


def find_list(text, name):
    """The match of a list in a CMakeLists.txt, whose group 1 are its lines."""
    return re.search(rf"^set\({name}\n(.*?)\)$", text, re.MULTILINE | re.DOTALL)


def names_in(path, name):
    lines = find_list((SOURCE / path).read_text(), name)[1].splitlines()
    return [line.strip() for line in lines if not line.strip().startswith("#")]


def source_files():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=SOURCE, capture_output=True, check=True)
    return {name for name in listed.stdout.decode().split("\0") if (SOURCE / name).is_file()}


class Contributing(unittest.TestCase):
    def test_names_places_that_exist(self):
        self.assertGreater(len(steps()), 10, "CONTRIBUTING.md looks different now")
        made = {step["path"] for step in steps() if step["path"] and not step["list"]}
        for step in steps():
            with self.subTest(step["path"]):
                if step["list"]:
                    self.assertIsNotNone(
                        find_list((SOURCE / step["path"]).read_text(), step["list"]))
                elif step["path"]:
                    self.assertFalse((SOURCE / step["path"]).exists())
        text = STEP.sub("", (SOURCE / "CONTRIBUTING.md").read_text())
        for path in re.findall(r"`((?:core|backends|cmake|tests|docs)/[\w/.-]+)`", text):
            self.assertTrue((SOURCE / path).exists() or path in made, path)

    def test_has_code_in_the_projects_format(self):
        found = subprocess.run(["bash", SOURCE / "tests/architecture/clang_14.sh", "clang-format"], capture_output=True, text=True)
        program = found.stdout.strip()
        if found.returncode != 0:
            self.skipTest(program)
        for step in steps():
            if step["language"] != "cpp":
                continue
            result = subprocess.run(
                [program, f"--assume-filename={SOURCE / step['path']}"], input=step["text"],
                capture_output=True, text=True, check=True)
            self.assertEqual(result.stdout, step["text"], step["path"])

    def test_every_line_of_a_list_has_its_file_and_every_file_its_line(self):
        for place, name, file, function in LISTS:
            names = names_in(place, name)
            self.assertEqual(len(names), len(set(names)), place)
            defined = re.compile(r"^void " + function.format(r"(\w+)") + r"\(", re.MULTILINE)
            pattern = file.replace("{0}", "*").replace("{}", "*")
            found = set()
            for path in SOURCE.glob(pattern):
                found |= {stem for stem in defined.findall(path.read_text())
                          if SOURCE / file.format(stem) == path}
            self.assertEqual(found, set(names), f"{place}, list {name}: each has {file}, which "
                                                f"defines {function.format('NAME')}")


@unittest.skipIf(COPY is None, "builds in the long form only")
class Followed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The copy as the sources are; what has not changed keeps its time, so that it is not built anew."""
        wanted = source_files()
        for name in wanted:
            target = COPY / name
            if not target.is_file() or target.read_bytes() != (SOURCE / name).read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(SOURCE / name, target)
                shutil.copymode(SOURCE / name, target)
        for folder, folders, files in os.walk(COPY):
            folders[:] = [one for one in folders if pathlib.Path(folder, one) != COPY / "build"]
            for one in files:
                path = pathlib.Path(folder, one)
                if str(path.relative_to(COPY)) not in wanted:
                    path.unlink()

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add_to_list(self, path, name, text):
        whole = path.read_text()
        end = find_list(whole, name).end(1)
        path.write_text(whole[:end] + "\n" + text.rstrip() + whole[end:])

    def run_commands(self, text):
        # The array's simulators take minutes to make, and nothing here asks them.
        text = re.sub(r"^(cmake --preset \w+)$", r"\1 -DTRIPTYCH_ENABLE_RTL=OFF", text, flags=re.MULTILINE)
        result = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", text], cwd=COPY, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "CCACHE_BASEDIR": str(COPY)})
        self.assertEqual(result.returncode, 0, result.stdout[-5000:])
        ran = re.findall(r"^\[  PASSED  \] (\d+) tests?\.", result.stdout, re.MULTILINE)
        self.assertEqual(len(ran), text.count("--gtest_filter"), result.stdout[-5000:])
        for count in ran:
            self.assertGreater(int(count), 0, "the filter of a command finds no test")

    def test_builds_and_passes(self):
        for step in steps():
            if step["list"]:
                self.add_to_list(COPY / step["path"], step["list"], step["text"])
            elif step["path"]:
                self.write(COPY / step["path"], step["text"])
            else:
                self.run_commands(step["text"])
        page = (COPY / "docs/reference/operators.md").read_text()
        heads, *rows = [line for line in page.splitlines() if line.startswith("| ")]
        self.assertIn("kernels on serial", heads)
        row = [line for line in rows if line.startswith("| CumSum |")]
        self.assertRegex("".join(row), r"\| yes \| lines \| lines \|")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
