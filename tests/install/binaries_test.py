"""Files that were built, installed or compiled by the program: nothing in them looks into the current directory, and the
defences of the compiler and the linker are really there.

  binaries_test.py PROGRAM SOURCE BUILD [arguments of unittest]

TRIPTYCH_HARDENED=1: it was built with TRIPTYCH_HARDEN.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

from elf import RELOCATABLE, Elf, files_below, foreign_places

PROGRAM, SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(SOURCE / "experiments/studies/rivals"))
import gpu_pack  # noqa: E402


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="triptych-binaries-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_command(self, *command, **options):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")

    def install(self):
        """The program as `cmake --install` leaves it."""
        self.run_command("cmake", "--install", BUILD, "--prefix", self.folder / "prefix", "--component", "program")
        return self.folder / "prefix"

    def expect_no_foreign_places(self, files):
        for file in files:
            with self.subTest(file=file.name):
                self.assertEqual(foreign_places(Elf(file)), [], file)


class SearchPaths(Folder):
    def test_the_reader_sees_each_foreign_place(self):
        source = self.folder / "empty.cpp"
        source.write_text("int one() { return 1; }\n")
        self.run_command("g++", "-shared", "-fPIC", source, "-o", "first.so")
        for path, expected in (("", []), ("/usr/lib", []), ("$ORIGIN/../lib", []), (":", ["", ""]), ("/usr/lib:", [""]),
                               ("lib", ["lib"]), (".:/usr/lib", ["."]), ("$ORIGINAL", ["$ORIGINAL"])):
            for tags in ("--enable-new-dtags", "--disable-new-dtags"):
                link = [f"-Wl,{tags},-rpath,{path}"] if path else []
                self.run_command("g++", "-shared", "-fPIC", source, *link, "-o", "second.so")
                self.assertEqual(foreign_places(Elf(self.folder / "second.so")), expected, path)
        self.run_command("g++", "-shared", "-fPIC", "-Wl,--no-as-needed", source, "./first.so", "-o", "third.so")
        self.assertEqual(foreign_places(Elf(self.folder / "third.so")), ["./first.so"])

    def test_nothing_built_looks_into_the_current_directory(self):
        files = list(files_below(BUILD))
        self.assertIn(PROGRAM, files)
        self.expect_no_foreign_places(files)

    def test_nothing_installed_looks_into_the_current_directory(self):
        files = list(files_below(self.install()))
        self.assertEqual([file.name for file in files], ["triptych"])
        self.expect_no_foreign_places(files)

    @unittest.skipUnless((BUILD / "tests/conformance/backend_test").exists(), "backend_test is not built")
    @unittest.skipIf(shutil.which("objdump") is None, "binutils are not installed")
    def test_nothing_packed_for_a_gpu_machine_looks_into_the_current_directory(self):
        with contextlib.redirect_stdout(io.StringIO()):
            gpu_pack.make(self.folder / "pack", BUILD, as_built=True)
        files = list(files_below(self.folder / "pack"))
        self.assertLessEqual({"triptych", "backend_test", "libcsv.so.3"}, {file.name for file in files})
        self.expect_no_foreign_places(files)

    @unittest.skipIf(shutil.which("g++") is None, "g++ is not installed")
    def test_a_kernel_does_not_look_into_the_current_directory(self):
        (self.folder / "twice.cu").write_text("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n")
        self.run_command(PROGRAM, "kernel", "build", "twice.cu", "--out", "twice.so")
        self.expect_no_foreign_places([self.folder / "twice.so"])

    @unittest.skipUnless(os.environ.get("TRIPTYCH_LONG") == "1", "a machine takes a minute: long form")
    def test_a_machine_does_not_look_into_the_current_directory(self):
        self.run_command(PROGRAM, "machine", "build", "mmu2", "--quick", "--force",
                         env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})
        files = list(files_below(self.folder / "cache"))
        self.assertEqual(len(files), 1, files)
        self.expect_no_foreign_places(files)


@unittest.skipUnless(os.environ.get("TRIPTYCH_HARDENED") == "1", "built without TRIPTYCH_HARDEN")
class Hardening(Folder):
    """The program, the installed program and the module have the same checks."""

    def products(self):
        return [PROGRAM, self.install() / "bin/triptych", *BUILD.glob("python/triptych/_triptych*.so")]

    def test_products_are_hardened(self):
        for file in self.products():
            with self.subTest(file=file):
                elf = Elf(file)
                self.assertTrue(elf.is_position_independent_program or file.suffix == ".so")
                self.assertTrue(elf.has_read_only_relocations)
                self.assertTrue(elf.binds_at_start)
                self.assertFalse(elf.has_executable_stack)
                self.assertIn("__stack_chk_fail", elf.undefined)
                self.assertIn("__memcpy_chk", elf.undefined)

    @unittest.skipUnless(platform.machine() == "x86_64", "CET is x86-64's")
    def test_each_object_is_marked_for_cet(self):
        """The linker marks a program only where the C library's own start files are marked, too."""
        objects = [file for file in BUILD.rglob("*.o") if "libtriptych_" not in file.name and
                   file.parent.name.startswith(("triptych", "Unity")) and "triptych_mmu_sim" not in str(file)]
        self.assertGreater(len(objects), 50)
        unmarked = [file for file in objects
                    if Elf(file).kind == RELOCATABLE and Elf(file).branch_protection != {"IBT", "SHSTK"}]
        self.assertEqual(unmarked, [])

    def test_loaders_check_their_indices(self):
        for library in ("core/io/libtriptych_io.a", "core/onnx/libtriptych_onnx.a"):
            archive = (BUILD / library).read_bytes()
            self.assertIn(b"_ZSt21__glibcxx_assert_fail", archive, library)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
