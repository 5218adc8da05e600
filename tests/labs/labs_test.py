"""One lab as its students meet it: the untouched skeleton, the solution, typical mistakes.

  labs_test.py PROGRAM NUMBER [--few]

wrong_NUMBER.py lists the mistakes; --few tries the first of them. The solution lies in solutions/.
Exit status 77: a tool that the lab needs is missing.
"""
# SPDX-License-Identifier: Apache-2.0
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import notebook as notebooks

PROGRAM, NUMBER = os.path.abspath(sys.argv[1]), int(sys.argv[2])
FEW = "--few" in sys.argv
JUNK = b"\x7fELF, cut short"
HERE = pathlib.Path(__file__).resolve().parent
SOLUTION = next((HERE / "solutions").glob(f"{NUMBER}-*"))
LAB = importlib.import_module(f"wrong_{NUMBER}")


def run(*arguments):
    return subprocess.run([PROGRAM, "lab", *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL)


class Lab(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="triptych-labs-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.folder = self.root / "mine"
        self.succeed("start", NUMBER, "--seed", "0", "--out", self.folder)

    def succeed(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, f"{arguments}\n{result.stdout}{result.stderr}")

    def solve(self):
        shutil.copytree(SOLUTION, self.folder, dirs_exist_ok=True)

    def check(self, full, *options):
        """Report of the folder; the exit status says whether it has all points."""
        result = run("check", NUMBER, self.folder, "--json", *options)
        self.assertEqual(result.returncode, 0 if full else 1, result.stdout + result.stderr)
        report = json.loads(result.stdout)["results"][0]
        self.assertEqual(report["points"], 100)
        self.assertEqual(report["earned"], sum(item["earned"] for item in report["items"]))
        for kind, points in {"exact": 60, "prediction": 20, "explanation": 20}.items():
            self.assertEqual(sum(i["points"] for i in report["items"] if i["kind"] == kind), points)
        return report

    def refused(self, *arguments, says):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def test_what_else_the_handout_offers_works(self):
        environment = {**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}"}
        (self.root / "triptych").symlink_to(PROGRAM)
        for command, status, says in getattr(LAB, "OFFERED", ()):
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, text=True,
                                  capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, status, f"{command}\n{said}")
            for part in says:
                self.assertIn(part, said, command)

    def predictions(self):
        return json.loads((SOLUTION / "answers.json").read_text())["predictions"]

    def predict(self, predictions):
        path = self.folder / "answers.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "predictions": predictions}))

    def test_predictions_of_another_type_are_not_committed(self):
        good = self.predictions()
        for name, value in good.items():
            for wrong in ("?", "maybe", True, 0 if isinstance(value, str) else str(value)):
                self.predict({**good, name: wrong})
                self.refused("predict", NUMBER, self.folder, says=[
                    f'the prediction "{name}" in answers.json is {json.dumps(wrong)}: give ',
                    '"yes" or "no"' if isinstance(value, str) else "a number"])
            self.predict({other: good[other] for other in good if other != name})
            self.refused("predict", NUMBER, self.folder, says=[f'the prediction "{name}"', "null"])
        self.predict(good)
        self.succeed("predict", NUMBER, self.folder)

    def test_the_untouched_skeleton_fails_cleanly(self):
        self.refused("check", NUMBER, self.folder, says=[
            f"triptych lab predict {NUMBER}", "--without-predictions", "lost for good"])
        report = self.check(False, "--without-predictions")
        self.assertEqual(report["earned"], 0, json.dumps(report, indent=1))
        for item in report["items"]:
            self.assertNotEqual(item["said"], "right")
            if item["kind"] == "prediction":
                self.assertIn("committed before the first check", item["said"])
            if item["kind"] == "explanation":
                self.assertIn("not answered yet", item["said"])
        self.predict(self.predictions())
        self.refused("predict", NUMBER, self.folder, says=["they no longer count"])
        if not FEW or NUMBER == 3:  # one rule for all labs, and the check of lab 3 compiles nothing
            self.check(False)  # nothing is left to lose

    def test_the_solution_has_all_points(self):
        self.solve()
        self.succeed("predict", NUMBER, self.folder)
        for seed in (1,) if FEW else (1, 2, 3, 2**31):
            report = self.check(True, "--seed", seed, "--results", self.root / "results.json")
            self.assertEqual(report["earned"], 100, json.dumps(report, indent=1))
            results = json.loads((self.root / "results.json").read_text())
            self.assertEqual(results["score"], 100)
            self.assertEqual(sum(test["max_score"] for test in results["tests"]), 100)
            self.assertTrue(all(test["status"] == "passed" for test in results["tests"]))

    def test_the_notebook_leads_to_all_points(self):
        shutil.rmtree(self.folder)
        self.succeed("start", NUMBER, "--seed", "0", "--out", self.folder, "--notebook")
        path = self.folder / "lab.ipynb"
        text = (self.folder / "README.md").read_text()
        handed = json.loads(path.read_text())
        words = "".join("".join(cell["source"]) + "\n" for cell in handed["cells"]).split()
        for word in text.replace("```sh", "").replace("```", "").split():  # nothing is left out
            self.assertIn(word, [*words, *(w.removeprefix("!") for w in words)])
        environment = {**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}"}
        (self.root / "triptych").symlink_to(PROGRAM)
        said, cells = [], notebooks.solved(handed, SOLUTION)
        notebooks.solve(self.folder, SOLUTION)
        for source, printed in notebooks.run(cells, self.folder, environment):
            notebooks.solve(self.folder, SOLUTION)  # a command may have begun a file anew
            said.append((source, printed))
        commits = [i for i, (source, _) in enumerate(said) if source == f"!triptych lab predict {NUMBER}"]
        self.assertEqual(len(commits), 1)
        self.assertIn('answers["predictions"]', said[commits[0] - 1][0])
        self.assertFalse(any("lab check" in source for source, _ in said[:commits[0]]))
        self.assertEqual(said[-1][0], f"!triptych lab check {NUMBER}")
        self.assertIn("100 of 100 points", said[-1][1])

    def spoil(self, edits):
        """Each file's edits: pairs of texts, the second in the place of the first, or the whole file."""
        for name, changes in edits.items():
            path = self.folder / name
            if isinstance(changes, str):
                path.write_text(changes)
                continue
            text = path.read_text()
            for before, after in changes:
                self.assertIn(before, text, name)
                text = text.replace(before, after)
            path.write_text(text)

    def test_each_mistake_costs_what_it_should(self):
        self.assertGreaterEqual(len(LAB.WRONG), 4)
        for name, edits, losses, says in LAB.WRONG[:2] if FEW else LAB.WRONG:
            with self.subTest(name):
                shutil.rmtree(self.folder)
                self.succeed("start", NUMBER, "--seed", "0", "--out", self.folder)
                self.solve()
                self.succeed("predict", NUMBER, self.folder)
                self.spoil(edits)
                report = self.check(False)
                lost = {i["id"]: i["points"] - i["earned"] for i in report["items"] if i["earned"] < i["points"]}
                said = "\n".join(i["said"] for i in report["items"] if i["earned"] < i["points"])
                self.assertEqual(lost, losses, said)
                for part in says:
                    self.assertIn(part, said)

    # Compiles the run time twice, which takes as long as all other tests. tests/unit/labs needs no compiler for it.
    @unittest.skipUnless(NUMBER == 1 and not FEW, "lab 1 stands for those whose answers Verilator compiles")
    def test_the_cache_keeps_whole_objects_of_verilators_run_time(self):
        self.solve()
        self.succeed("predict", NUMBER, self.folder)
        kept = self.root / "triptych" / "labs"
        with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.root)):
            self.check(True)
            objects = {path: path.read_bytes() for path in kept.iterdir()}
            self.assertEqual(sorted(path.name.split("-")[0] for path in objects), ["verilated", "verilated_threads"])
            next(iter(objects)).write_bytes(JUNK)
            self.check(True)
        self.assertEqual({path: path.read_bytes() for path in kept.iterdir()}, objects)


if __name__ == "__main__":
    missing = [tool for tool in LAB.TOOLS if not shutil.which(tool)]
    if missing:
        print("skipped: not on the PATH:", *missing)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])
