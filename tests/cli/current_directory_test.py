"""Nothing of the current directory is run: a stranger may have filled it."""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
import unittest

from support import FEW, PROGRAM, SOURCE, ProgramTest, main

sys.path.insert(0, str(SOURCE / "tests/install"))
from elf import Elf  # noqa: E402

TOOLS = ["g++", "c++", "clang++", "cc1plus", "as", "ld", "verilator", "make", "mpirun", "orted", "python3", "perl", "sh"]
KERNEL = "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n"


class CurrentDirectory(ProgramTest):
    """The directory holds libraries and programs that leave a file when somebody loads or runs them."""

    def setUp(self):
        super().setUp()
        self.trace = self.folder / "was-run"

    def expect_untouched(self, *arguments, **options):
        result = self.run_program(*arguments, **options)
        self.assertFalse(self.trace.exists(), f"{arguments}: {self.trace.exists() and self.trace.read_text()}")
        return result

    def plant_programs(self):
        for tool in TOOLS:
            file = self.folder / tool
            file.write_text(f"#!/bin/sh\necho $0 >> {self.trace}\n")
            file.chmod(0o755)

    @unittest.skipIf(shutil.which("g++") is None, "g++ is not installed")
    def test_a_library_of_a_needed_name_is_not_loaded(self):
        program = Elf(PROGRAM)
        functions = [name for name in program.undefined if name.startswith("csv_")]
        source = self.folder / "planted.cpp"
        source.write_text("#include <fstream>\n__attribute__((constructor)) static void run() "
                          f'{{ std::ofstream("{self.trace}") << "loaded"; }}\n' +
                          "".join(f'extern "C" void {name}() {{}}\n' for name in functions))
        planted = self.folder / "planted"
        planted.mkdir()
        subprocess.run(["g++", "-shared", "-fPIC", source, "-o", planted / "libcsv.so.3"], check=True)
        self.run_program("--version", env={**os.environ, "LD_LIBRARY_PATH": str(planted)})
        self.assertTrue(self.trace.exists(), "the planted library does not work")
        self.trace.unlink()
        for name in program.needed:
            shutil.copy(planted / "libcsv.so.3", self.folder / name)
        result = self.expect_untouched("--version")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_relative_element_of_the_path_is_passed_over(self):
        self.plant_programs()
        (self.folder / "twice.cu").write_text(KERNEL)
        subprocess.run(["./g++"], cwd=self.folder, check=True)
        self.assertTrue(self.trace.exists(), "the planted program does not work")
        self.trace.unlink()
        rest = os.environ["PATH"]
        commands = [["kernel", "build", "twice.cu", "--out", "twice.so", "--overwrite"], ["machine", "list"], ["doctor"],
                    ["launch", "-n", "2", "train", *FEW, "--steps", "1", "--batch", "2", "--transport", "mpi", "--out", "run"]]
        for path in (f":{rest}", f".:{rest}", f"{rest}:", "", ".", ":"):
            for command in commands:
                with self.subTest(path=path, command=command[0]):
                    self.expect_untouched(*command, env={**os.environ, "PATH": path})
            shutil.rmtree(self.folder / "run", ignore_errors=True)

    @unittest.skipUnless(all(map(shutil.which, ("verilator", "make", "g++"))), "verilator is missing")
    def test_a_module_that_is_missing_is_not_taken_from_it(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.succeed("machine", "rtl", "mmu_skew", "--out", "mine")
        module = self.folder / "mine/mmu_skew.sv"
        head, tail = module.read_text().rsplit("endmodule", 1)
        module.write_text(f"{head}  planted u_planted ();\nendmodule{tail}")
        (self.folder / "planted.sv").write_text("module planted;\nendmodule\n")
        result = self.run_program("machine", "build", "mmu2", "--rtl", "mine", "--quick", env=environment)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("Cannot find file containing module: 'planted'", result.stderr)


if __name__ == "__main__":
    main()
