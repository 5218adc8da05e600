"""Tests of a program without the parts that a build may leave out: their commands name the option that adds them."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from support import FEW, PROGRAM, main

BARE = os.path.abspath(sys.argv.pop(3))
UNSUPPORTED = 4
LEFT_OUT = {
    ("lab", "list"): "labs",
    ("lab", "check", "2", "--json"): "labs",
    ("kernel", "run", "scale.cu", "f32:4=0", "--grid", "1"): "kernels",
    ("check", "--kernel", "naive"): "counted",
    ("reproduce", "--quick", "--json"): "studies",
    ("bench", "strategies", "--ranks", "2"): "studies",
    ("bench", "bandwidth"): "studies",
    ("page", "gpu", "--out", "gpu.html"): "pages",
    ("page", "collectives"): "pages",
}


def run(program, *words):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=300)
        return result, os.listdir(folder)


class Parts(unittest.TestCase):
    def test_a_command_of_a_part_names_the_cmake_option(self):
        for words, part in LEFT_OUT.items():
            with self.subTest(words=words):
                result, files = run(BARE, *words)
                self.assertEqual(result.returncode, UNSUPPORTED, result.stderr)
                if "--json" in words:
                    self.assertIn(part, json.loads(result.stdout)["error"]["message"])
                else:
                    self.assertEqual(result.stdout, "")
                self.assertIn(f'this build has no part "{part}"', result.stderr)
                self.assertRegex(result.stderr, rf"cmake \S+ -DTRIPTYCH_PART_{part.upper()}=ON && "
                                                r"cmake --build \S+ --target triptych")
                self.assertEqual(files, [])

    def test_accesses_are_not_counted_without_the_part(self):
        words = ["bench", "matmul", "--backend", "cuda-emulated", "--sizes", "8", "--kernel", "naive", "--source"]
        result, _ = run(BARE, *words)
        self.assertEqual(result.returncode, UNSUPPORTED, result.stderr)
        self.assertIn("-DTRIPTYCH_PART_COUNTED=ON", result.stderr)

    def test_help_lists_the_commands_of_the_parts(self):
        full, _ = run(PROGRAM, "--help")
        bare, _ = run(BARE, "--help")
        self.assertEqual(bare.returncode, 0)
        names = json.loads(run(PROGRAM, "help", "--json")[0].stdout)["results"][0]["commands"]
        self.assertIn("lab", names)
        for name in names:
            self.assertRegex(bare.stdout, rf"(?m)^  {name}\b")
        self.assertIn('(part "labs", not in this build)', " ".join(bare.stdout.split()))
        self.assertNotIn("not in this build", full.stdout)

    def test_the_rest_computes_as_the_whole_program_does(self):
        words = ["train", *FEW, "--backend", "cuda-emulated", "--contract", "bf16-exact", "--steps", "2", "--seed", "1",
                 "--batch", "2", "--out", "run"]
        results = [run(program, *words)[0] for program in (PROGRAM, BARE)]
        for result in results:
            self.assertEqual(result.returncode, 0, result.stderr)
        weights = [re.findall(r"\b[0-9a-f]{12}\b", result.stdout) for result in results]
        self.assertEqual(len(weights[0]), 1, results[0].stdout)
        self.assertEqual(*weights)


if __name__ == "__main__":
    main()
