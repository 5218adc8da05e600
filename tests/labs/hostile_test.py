"""For any submission, `lab check --results` writes a grade with a reason.

  hostile_test.py PROGRAM [--few]

Each class of hostile submissions on each lab; --few takes some pairs that need no compiler, and the
code that ends its own run. Exit status 77: a tool is missing."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
FEW = "--few" in sys.argv
HERE = pathlib.Path(__file__).resolve().parent
NUMBERS = sorted(int(path.name.split("-")[0]) for path in (HERE / "solutions").iterdir())
JUNK = bytes(range(256)) * 40
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
TOOLS = ("verilator", "make", "g++", "yosys")


def files(folder):
    """A student's submission, without .triptych."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".triptych"]


def empty(folder):
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def replace(name, content):
    def act(folder):
        (folder / name).write_bytes(content)
    return act


def remove(*names):
    def act(folder):
        for name in names:
            (folder / name).unlink()
    return act


def each(change):
    """`change` in the place of every file."""
    def act(folder):
        for path in files(folder):
            path.unlink()
            change(path)
    return act


def own_list(folder):
    (folder / ".triptych").unlink()
    (folder / ".triptych").symlink_to(folder.parent / "outside")


def list_of_others(folder):
    lines = ["0" * 64 + "  ../victim", "0" * 64 + "  /etc/passwd", "junk", "\x1b[2J"]
    (folder / ".triptych").write_text("\n".join(lines) + "\n")


CLASSES = {
    "nothing": empty,
    "no .lab.json": remove(".lab.json"),
    "no .triptych": remove(".triptych"),
    "no answers": remove("answers.json"),
    ".lab.json of another lab": replace(".lab.json", b'{"lab": 99, "version": 1}'),
    ".lab.json that is no object": replace(".lab.json", b"[1, 2]"),
    ".lab.json of other types": replace(".lab.json", b'{"lab": {}, "predictions_sha256": 7, "predictions": [[]]}'),
    "answers that are no object": replace("answers.json", b'"yes"'),
    "answers of other types": replace("answers.json", b'{"predictions": [1], "explanations": {"q1": {"a": [null]}}}'),
    "answers without an end": replace("answers.json", b'{"predictions": ' + b"[" * 100_000),
    "answers of megabytes": replace("answers.json", b'{"predictions": {"cycles": ' + b"9" * 2_000_000 + b"}}"),
    "junk in every file": each(lambda path: path.write_bytes(JUNK)),
    "numbers in every file": each(lambda path: path.write_text("[1, 2]")),
    "links to a file outside": each(lambda path: path.symlink_to("/etc/passwd")),
    "links to nothing": each(lambda path: path.symlink_to("nowhere")),
    "links to themselves": each(lambda path: path.symlink_to(path.name)),
    "folders for files": each(lambda path: path.mkdir()),
    "pipes for files": each(os.mkfifo),
    "a linked .triptych": own_list,
    "a .triptych of others": list_of_others,
}

EXIT = '  initial $c("_exit(0);");\n'
PRINT = '  initial forever $display("%s", {8{"100 of 100 points \\033[2J"}});\n'
KILL = ('  import "DPI-C" function int system(input string command);\n'
        '  initial void\'(system("kill -TERM $PPID; rm -rf ..; kill -9 $PPID"));\n')
LOOP = ('  import "DPI-C" function int system(input string command);\n'
        '  initial void\'(system("while :; do :; done"));\n')


def in_module(module, code):
    """The solution with `code` at the end of the module."""
    def act(folder):
        name = "array.sv" if (folder / "array.sv").exists() else "pe.sv"
        text = (folder / name).read_text()
        at = text.index("endmodule", text.index(f"module {module}"))
        (folder / name).write_text(text[:at] + code + text[at:])
    return act


def in_kernels(code):
    def act(folder):
        for name in ("conv.cu", "flash.cu"):
            text = (folder / name).read_text()
            body = re.sub(r"(__global__[^;{]*\{)", lambda match: match.group(1) + code, text)
            (folder / name).write_text("#include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>\n" + body)
    return act


ENDLESS = "top:\nload wait=load\nhalt\n"
CODE = {
    1: {"exit(0)": in_module("lab_array", EXIT), "endless output": in_module("lab_array", PRINT),
        "signals to all": in_module("lab_array", KILL)},
    5: {"exit(0)": in_module("lab_pe", EXIT), "endless output": in_module("lab_pe", PRINT)},
    6: {"exit(0)": in_kernels(" _exit(0); "), "endless output": in_kernels(' for (;;) puts("100 of 100 points"); ')},
    3: {"a program that is none": replace("product.s", ENDLESS.encode())},
}


class Hostile(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="triptych-hostile-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "victim").write_text("mine")
        self.folder, self.results = self.root / "submission", self.root / "results.json"

    def start(self, lab, solved=True):
        subprocess.run([PROGRAM, "lab", "start", str(lab), "--seed", "0", "--out", self.folder], check=True, capture_output=True)
        if solved:
            shutil.copytree(next((HERE / "solutions").glob(f"{lab}-*")), self.folder, dirs_exist_ok=True)

    def command(self, lab):
        return [PROGRAM, "lab", "check", str(lab), str(self.folder), "--seed", "5", "--results", str(self.results)]

    def grade(self):
        """The results. Each item has a reason."""
        document = json.loads(self.results.read_text())
        self.assertEqual(sum(test["max_score"] for test in document["tests"]), 100)
        self.assertEqual(sum(test["score"] for test in document["tests"]), document["score"])
        for test in document["tests"]:
            self.assertTrue(test["output"], test)
            self.assertLess(len(test["output"]), 40_000)
        return document

    def check(self, lab):
        result = subprocess.run(self.command(lab), capture_output=True, timeout=900, stdin=subprocess.DEVNULL)
        said = (result.stdout + result.stderr).decode()
        self.assertIn(result.returncode, (0, 1), said)
        self.assertIsNone(STEERS.search(said), repr(said))
        self.assertEqual((self.root / "victim").read_text(), "mine")
        self.assertFalse((self.root / "outside").exists())
        return self.grade()

    def try_class(self, lab, name):
        with self.subTest(lab=lab, submission=name):
            self.setUp()
            self.start(lab)
            CLASSES[name](self.folder)
            document = self.check(lab)
            if name == "no .triptych":
                self.assertGreaterEqual(document["score"], 80)
            elif name not in ("a linked .triptych", "a .triptych of others"):
                self.assertLessEqual(document["score"], 80)

    def test_every_class_gets_a_grade(self):
        names = list(CLASSES)
        for lab in (7, 3, 0) if FEW else NUMBERS:
            for name in names[:]:
                if not FEW or names.index(name) % 3 == (7, 3, 0).index(lab):
                    self.try_class(lab, name)

    def test_code_that_ends_its_run_gets_a_grade(self):
        for lab, codes in CODE.items():
            for name, change in codes.items():
                if FEW and (lab, name) not in ((1, "exit(0)"), (3, "a program that is none")):
                    continue
                with self.subTest(lab=lab, code=name):
                    self.setUp()
                    self.start(lab)
                    change(self.folder)
                    document = self.check(lab)
                    self.assertLessEqual(document["score"], 60, document)

    def test_a_damaged_file_costs_what_depends_on_it(self):
        self.start(7)
        (self.folder / "answers.json").write_bytes(b"{")
        document = self.check(7)
        self.assertEqual(document["score"], 60)
        self.assertIn("answers.json", [test["output"] for test in document["tests"]][-1])

    def ended(self, number, status):
        """A check of code that does not end, once its results are there."""
        self.start(1)
        in_module("lab_array", LOOP)(self.folder)
        with subprocess.Popen(self.command(1), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL) as process:
            while not self.results.exists():
                self.assertIsNone(process.poll())
                time.sleep(0.001)
            process.send_signal(number)
            process.communicate(timeout=120)
        self.assertEqual(process.returncode, status)
        return self.grade()

    def test_a_check_that_is_stopped_says_so(self):
        for number in (signal.SIGTERM,) if FEW else (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                self.setUp()
                document = self.ended(number, 130)
                self.assertIn("a signal stopped the check", document["tests"][-1]["output"])

    def test_a_check_that_is_killed_leaves_a_reason(self):
        document = self.ended(signal.SIGKILL, -signal.SIGKILL)
        self.assertEqual(document["score"], 0)
        self.assertIn("did not come to its end", document["tests"][0]["output"])

    def refused(self, code, says, *arguments, **options):
        result = subprocess.run([PROGRAM, "lab", "check", *arguments], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(says, result.stderr)
        self.assertFalse(self.results.is_file())

    def test_mistakes_of_who_grades_are_errors(self):
        self.start(7)
        self.refused(2, "there is no lab 42", "42", self.folder, "--results", self.results)
        self.refused(2, "is no folder", "7", self.root / "none", "--results", self.results)
        (self.root / "taken").mkdir()
        self.refused(2, "it is a folder", "7", self.folder, "--results", self.root / "taken")
        shutil.rmtree(self.folder)
        self.start(1)
        tools = self.root / "tools"
        tools.mkdir()
        self.refused(3, "this lab needs the program", "1", self.folder, "--results", self.results,
                     env={**os.environ, "PATH": str(tools)})


if __name__ == "__main__":
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        print("skipped: not on the PATH:", *missing)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])
