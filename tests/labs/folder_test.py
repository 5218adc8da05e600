"""Labs of a directory (--labs): a copy of a shipped lab, and the example of the instructor's guide.

  folder_test.py PROGRAM
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
LABS = HERE / "../../experiments/labs"
GUIDE = HERE / "../../docs/hardware/labs.md"
SHIPPED = "7-bandwidth"


class Directory(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="triptych-labs-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.labs, self.folder = self.root / "labs", self.root / "mine"
        (self.labs / "graders").mkdir(parents=True)

    def run_lab(self, part, *arguments, environment=None):
        command = [PROGRAM, "lab", part, *map(str, arguments), "--labs", self.labs]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                              env={**os.environ, **(environment or {})})

    def results(self, status, part, *arguments):
        result = self.run_lab(part, *arguments, "--json")
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return json.loads(result.stdout)["results"]

    def copy_shipped(self):
        for end in ("json", "py"):
            shutil.copy(LABS / f"graders/{SHIPPED}.{end}", self.labs / "graders")
        shutil.copytree(LABS / "handouts" / SHIPPED, self.labs / "handouts" / SHIPPED)

    def solve(self):
        self.results(0, "start", 7, "--seed", "0", "--out", self.folder)
        shutil.copytree(HERE / "solutions" / SHIPPED, self.folder, dirs_exist_ok=True)
        self.results(0, "predict", 7, self.folder)

    def test_a_copy_of_a_shipped_lab_is_listed_handed_out_and_graded(self):
        self.copy_shipped()
        description = self.labs / f"graders/{SHIPPED}.json"
        description.write_text(description.read_text().replace("Bandwidth, batch, energy", "Mine"))
        [lab] = self.results(0, "list")
        self.assertEqual((lab["number"], lab["title"]), (7, "Mine"))
        self.solve()
        [report] = self.results(0, "check", 7, self.folder)
        self.assertEqual(report["earned"], 100, json.dumps(report, indent=1))
        grader = self.labs / f"graders/{SHIPPED}.py"
        grader.write_text(grader.read_text().replace('bottom["cycles"]', 'bottom["cycles"] + 1'))
        [report] = self.results(1, "check", 7, self.folder)
        self.assertEqual(report["earned"], 95)

    def test_the_letters_of_the_answers_follow_the_seed_of_the_folder(self):
        self.copy_shipped()
        canonical = json.loads((HERE / "solutions" / SHIPPED / "answers.json").read_text())["explanations"]
        texts = set()
        for seed in (5, 6):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.results(0, "start", 7, "--seed", seed, "--out", self.folder)
            orders = json.loads((self.folder / ".lab.json").read_text())["options"]
            self.assertEqual(set(orders), set(canonical))
            texts.add((self.folder / "README.md").read_text())
            translated = {name: "abcd"[orders[name].index(letter)] for name, letter in canonical.items()}
            self.assertNotEqual(translated, canonical)
            answers = self.folder / "answers.json"
            for given in (translated, canonical):
                answers.write_text(json.dumps({"predictions": {}, "explanations": given}))
                [report] = self.results(1, "check", 7, self.folder, "--without-predictions")
                right = {item["id"] for item in report["items"]
                         if item["kind"] == "explanation" and item["earned"] > 0}
                self.assertEqual(right, {name for name in canonical if given[name] == translated[name]})
            # The option that was right stands behind its new letter.
            wording = "its weights are fetched once for all rows"
            self.assertIn(f"({translated['q1']}) {wording}", " ".join(self.readme().split()))
        self.assertEqual(len(texts), 2)

    def readme(self):
        return (self.folder / "README.md").read_text()

    def test_the_example_of_the_guide(self):
        section = GUIDE.read_text().split("## Write a lab")[1].split("\n## ")[0]
        [code] = re.findall(r"```\n(from grading.*?)```", section, re.DOTALL)
        (self.labs / "graders/20-cache.py").write_text(code)
        (self.labs / "graders/20-cache.json").write_text(json.dumps({
            "schema": 1, "number": 20, "version": 1, "slug": "cache", "title": "Cache", "question": "why?",
            "yes_or_no": [], "explanations": [{"id": "q1", "points": 20, "key": "", "hint": "look again"}]}))
        handout = self.labs / "handouts/20-cache"
        handout.mkdir(parents=True)
        (handout / "README.md").write_text("# Cache\n")
        (handout / "answers.json").write_text('{"predictions": {"cycles_1": null}, "explanations": {"q1": null}}')
        (handout / "formulas.json").write_text('{"cycles": "m"}')
        self.results(0, "start", 20, "--seed", "0", "--out", self.folder)
        [report] = self.results(1, "check", 20, self.folder, "--without-predictions")
        self.assertEqual([item["points"] for item in report["items"]], [60, 20, 20])
        self.assertIn("count the tiles", report["items"][0]["said"])

    def test_a_machine_without_python_cannot_grade(self):
        self.copy_shipped()
        self.solve()
        (self.root / "bin").mkdir()
        result = self.run_lab("check", 7, self.folder, environment={"PATH": str(self.root / "bin")})
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("python3", result.stderr)

    def test_a_directory_without_labs_is_refused(self):
        result = self.run_lab("list")
        self.assertEqual(result.returncode, 2)
        self.assertIn("name a folder of labs", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
