"""Common part of the tests of whole CUDA programs: `triptych kernel run` of the files in programs/."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import unittest

from support import SOURCE, ProgramTest

PROGRAMS = SOURCE / "tests" / "cli" / "programs"


@unittest.skipIf(shutil.which("g++") is None or shutil.which("clang++") is None,
                 "g++ or clang++ is not installed")
@unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ,
                 "kernels are not instrumented, and raise signals that a sanitizer takes for ours")
class FilesTest(ProgramTest):
    def program(self, name, *words, sources=()):
        """The document of a run without findings, and its counters by kernel."""
        options = [word for source in sources for word in ("--source", str(PROGRAMS / source))]
        result = self.document("kernel", "run", str(PROGRAMS / name), *words, *options)["results"][0]
        self.assertEqual((result["findings"], result["stopped"], result["status"]), ([], "", 0))
        return result, {each["kernel"]: each for each in result["kernels"]}

    def fault(self, name, *words):
        """The document of a run that a fault ends, and the fault."""
        run = self.run_program("kernel", "run", str(PROGRAMS / name), *words, "--json")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        result = json.loads(run.stdout)["results"][0]
        self.assertEqual(len(result["findings"]), 1)
        return result, result["findings"][0]

    def line_with(self, name, comment):
        """The number of the line that ends with this comment."""
        lines = (PROGRAMS / name).read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if line.endswith("// " + comment))
