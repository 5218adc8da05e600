"""The installed package: a consumer of each component with the packages of that component alone, and the plugins of the
guide, built outside the tree and loaded by the program and by Python.

  package_test.py PROGRAM SOURCE BUILD [arguments of unittest]
"""
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

from elf import Elf

PROGRAM, SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
CONSUMER = SOURCE / "tests/install/consumer"
GUIDE = SOURCE / "docs/guides/add-a-backend.md"
# Packages that each component may look for, and shared libraries that its consumer may load.
PACKAGES = {"core": {"fmt"}, "cpu": {"fmt", "hwy"}, "systolic": {"fmt", "ZLIB"}, "parallel": {"fmt", "MPI", "CUDAToolkit"}}
LIBRARIES = {"core": {"libfmt"}, "cpu": {"libfmt", "libhwy"}, "systolic": {"libfmt", "libz"}, "parallel": {"libfmt"}}
TARGETS = {"core": "nn", "cpu": "cpu;triptych::nn", "systolic": "systolic", "parallel": "strategies"}
SYSTEM = {"libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}
ALL_CASES = "TRIPTYCH_ALL_CASES" in os.environ
FEW = ["--model", "mlp", "--size", "16", "--synthetic-images", "4", "--batch", "2", "--threads", "1"]


def execute(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)


def setUpModule():
    global WORK, PREFIX
    WORK = pathlib.Path(tempfile.mkdtemp(prefix="triptych-package-"))
    unittest.addModuleCleanup(shutil.rmtree, WORK)
    PREFIX = WORK / "prefix"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", PREFIX], check=True, stdout=subprocess.DEVNULL)


def configure(source, build, **variables):
    definitions = [f"-D{name}={value}" for name, value in variables.items()]
    return execute("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   f"-DCMAKE_PREFIX_PATH={PREFIX}", *definitions)


def known_packages():
    [config] = PREFIX.rglob("TriptychConfig.cmake")
    return set(re.findall(r"find_dependency\((\w+)", config.read_text())) - {"Threads"}


class Components(unittest.TestCase):
    def succeed(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def build_and_run(self, build):
        self.succeed(execute("cmake", "--build", build))
        return self.succeed(execute(build / "consumer"))

    def test_a_program_of_everything_builds_and_runs(self):
        build = WORK / "everything"
        self.succeed(configure(CONSUMER, build, SOURCE="training.cpp",
                               LIBRARIES="triptych::backends;triptych::training;triptych::mmu_driver"))
        self.assertRegex(self.build_and_run(build), r"logits \[1, 1, 16, 16\]\n\d+ letters of configuration\n\d+ cycles")

    def test_a_component_needs_its_own_packages_alone(self):
        self.assertLessEqual({"TBB", "hwy", "PNG", "Protobuf", "Boost"}, known_packages())
        for component, own in PACKAGES.items():
            if not ALL_CASES and component in ("core", "parallel"):  # cpu and everything build their code, too
                continue
            with self.subTest(component):
                build = WORK / component
                without = {f"CMAKE_DISABLE_FIND_PACKAGE_{name}": "ON" for name in known_packages() - own}
                self.succeed(configure(CONSUMER, build, COMPONENT=component, SOURCE=f"{component}.cpp",
                                       LIBRARIES=f"triptych::{TARGETS[component]}", **without))
                self.build_and_run(build)
                loaded = {name.split(".so")[0] for name in Elf(build / "consumer").needed}
                self.assertLessEqual(loaded, LIBRARIES[component] | SYSTEM)

    def test_an_installation_has_no_libraries_of_the_program(self):
        names = {file.name for file in PREFIX.rglob("*.a")}
        self.assertIn("libtriptych_training.a", names)
        self.assertEqual(names & {"libtriptych_app.a", "libtriptych_labs.a", "libtriptych_compare.a"}, set())

    def test_a_missing_package_is_named(self):
        pairs = [("cpu", "hwy"), ("core", "fmt"), ("cuda", "TBB"), ("training", "PNG")]
        for component, package in pairs if ALL_CASES else pairs[:1]:
            with self.subTest(component):
                failed = configure(CONSUMER, WORK / f"without-{package}", COMPONENT=component,
                                   **{f"CMAKE_DISABLE_FIND_PACKAGE_{package}": "ON"})
                self.assertNotEqual(failed.returncode, 0)
                self.assertIn(package, failed.stderr)

    def test_an_unknown_component_is_answered_with_the_known_ones(self):
        failed = configure(CONSUMER, WORK / "unknown", COMPONENT="cores")
        self.assertNotEqual(failed.returncode, 0)
        self.assertRegex(" ".join(failed.stderr.split()),
                         "no component cores; it has: core, cpu, cuda, systolic, parallel, training")

    def test_the_installed_program_starts(self):
        self.assertIn("triptych", self.succeed(execute(PREFIX / "bin/triptych", "--version")))
        self.assertIn("mmu16", self.succeed(execute(PREFIX / "bin/triptych", "machine", "list")))


def files_of_guide():
    """The guide's files by name. A later block for the same file follows the earlier one."""
    files = {}
    for name, text in re.findall(r"^`([\w.]+)`[^`\n]*:\n\n```\w+\n(.*?)^```$", GUIDE.read_text(), re.M | re.S):
        files[name] = files.get(name, "") + text
    return files


class Plugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = WORK / "plugin"
        cls.folder.mkdir()
        files = files_of_guide()
        files["CMakeLists.txt"] += "triptych_add_plugin(wrong wrong_plugin.cpp)\n"
        for name, text in files.items():
            (cls.folder / name).write_text(text)
        shutil.copy(SOURCE / "tests/install/wrong_plugin.cpp", cls.folder)
        without = {f"CMAKE_DISABLE_FIND_PACKAGE_{name}": "ON" for name in known_packages() - {"fmt"}}
        for done in (configure(cls.folder, cls.folder / "build", **without), execute("cmake", "--build", cls.folder / "build")):
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
        cls.toy, cls.kernel, cls.wrong = (cls.folder / f"build/lib{name}.so" for name in ("toy", "not_kernel", "wrong"))

    def run_program(self, *arguments, plugin=None, environment=None):
        words = [*arguments, *(["--plugin", plugin] if plugin else [])]
        return execute(PROGRAM, *words, cwd=self.folder, env={**os.environ, **(environment or {})})

    def succeed(self, *arguments, **options):
        done = self.run_program(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def refused(self, *arguments, code=2, says, **options):
        done = self.run_program(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_the_guide_has_code_in_the_projects_format(self):
        found = subprocess.run(["bash", SOURCE / "tests/architecture/clang_14.sh", "clang-format"], capture_output=True, text=True)
        program = found.stdout.strip()
        if found.returncode != 0:
            self.skipTest(program)
        for name in ("toy.cpp", "not_kernel.cpp"):
            text = files_of_guide()[name]
            done = subprocess.run([program, f"--assume-filename={SOURCE / name}"], input=text, capture_output=True, text=True)
            self.assertEqual(done.stdout, text)

    def test_plugins_link_no_library_of_triptych_or_of_its_packages(self):
        for file in (self.toy, self.kernel):
            self.assertLessEqual({name.split(".so")[0] for name in Elf(file).needed}, SYSTEM)

    def test_the_backend_is_listed_only_with_its_plugin(self):
        backends = lambda **options: [entry["backend"] for entry in json.loads(self.succeed("devices", "--json", **options))["results"]]
        self.assertNotIn("toy", backends())
        self.assertEqual(backends(plugin=self.toy), backends() + ["toy"])

    def test_conformance_of_the_backend(self):
        document = json.loads(self.succeed("check", "--backend", "toy", "--json", plugin=self.toy))
        results = {(entry["op"], entry["kernel"]): entry for entry in document["results"]}
        self.assertEqual(set(results), {("Relu", "loop"), ("MatMul", "loops")})
        for entry in results.values():
            self.assertEqual(entry["findings"], [])
            self.assertGreater(entry["cases"], 2)
            self.assertGreater(entry["refused"], 0)

    def test_the_guide_shows_what_check_prints(self):
        self.assertIn(f"```\n{self.succeed('check', '--backend', 'toy', plugin=self.toy)}```\n", GUIDE.read_text())

    def test_conformance_finds_a_wrong_kernel(self):
        done = self.run_program("check", "--backend", "cpu", "--kernel", "wrong", "--json", plugin=self.wrong,
                                environment={"WRONG": "value"})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        [entry] = json.loads(done.stdout)["results"]
        self.assertEqual({finding["kind"] for finding in entry["findings"]}, {"wrong value"})

    def test_the_rest_is_refused_or_runs_on_the_fallback(self):
        self.refused("explain", "--model", "mlp", "--backend", "toy", code=4, plugin=self.toy,
                     says=["takes no transposed operand", "--fallback cpu"])
        text = self.succeed("explain", "--model", "mlp", "--backend", "toy", "--fallback", "cpu", plugin=self.toy)
        self.assertRegex(text, r"MatMul +toy +loops +")
        self.assertRegex(text, r"MatMul +cpu +gemm +.*kernel \"loops\": takes no transposed operand")

    def test_a_run_trains_and_resumes_with_the_plugin_only(self):
        train = ["train", *FEW, "--backend", "toy", "--fallback", "cpu", "--steps-per-epoch", "2", "--out", "run"]
        self.succeed(*train, "--steps", "2", plugin=self.toy)
        for file in (self.folder / "run").rglob("*.json"):
            self.assertNotIn("libtoy", file.read_text(), "a run does not say which code to load")
        resume = ["train", "--resume", "run", "--steps", "4"]
        self.refused(*resume, says=['unknown backend "toy"', "--plugin"])
        self.succeed(*resume, plugin=self.toy)

    def test_a_kernel_comes_before_those_of_its_backend(self):
        checked = lambda **options: [entry["kernel"] for entry in json.loads(
            self.succeed("check", "--backend", "cpu", "--op", "Not", "--json", **options))["results"]]
        own = checked()
        self.assertEqual(checked(plugin=self.kernel), ["mine", *own])

    def test_several_plugins_load_and_one_loads_once(self):
        text = self.succeed("check", "--backend", "toy", "--plugin", self.kernel, "--plugin", self.toy, plugin=self.toy)
        self.assertIn("Relu loop", text)

    def test_another_interface_is_refused_before_code_runs(self):
        content = self.wrong.read_bytes()
        mark = re.search(rb"triptych plugin interface (\S+ \([0-9a-f]{12}\))", content)
        own = mark[1].decode()
        other = own[:-13] + "0" * 12 + ")"
        changed = self.folder / "other.so"
        changed.write_bytes(content.replace(own.encode(), other.encode()))
        self.refused("devices", plugin=changed, environment={"WRONG": "abort"}, says=[f"interface {other}", f"has {own}", "--plugin"])
        done = self.run_program("devices", plugin=self.wrong, environment={"WRONG": "abort"})
        self.assertLess(done.returncode, 0, "the plugin's code would have ended the program")

    def test_wrong_files_are_refused(self):
        (self.folder / "note.txt").write_text("no library")
        (self.folder / "cut.so").write_bytes(b"\x7fELF triptych plugin interface ")
        for file, says in (("missing.so", "there is no plugin"), (".", "there is no plugin"), ("note.txt", "is not a plugin"),
                           (PROGRAM.parent.parent / "systolic/libtriptych_mmu_isa.a", "is not a plugin"), ("cut.so", "was built for interface")):
            with self.subTest(file):
                self.refused("devices", plugin=file, says=[says])

    def test_parts_that_do_not_fit_are_refused(self):
        for part, says in (("nothing", "no backend and no kernel"), ("backend", 'a backend "cpu" already'),
                           ("host", '"elsewhere" is not a backend'), ("target", 'for the backend "elsewhere"'), ("op", "Nott")):
            with self.subTest(part):
                self.refused("devices", plugin=self.wrong, environment={"WRONG": part}, says=[says])

    def test_a_name_without_a_folder_is_no_search(self):
        shutil.copy(self.toy, self.folder / "libsearched.so")
        away = {"LD_LIBRARY_PATH": str(self.folder)}
        done = execute(PROGRAM, "devices", "--plugin", "libsearched.so", cwd=WORK, env={**os.environ, **away})
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("there is no plugin", done.stderr)

    @unittest.skipUnless((BUILD / "python/triptych" / f"_triptych{sysconfig.get_config_var('EXT_SUFFIX')}").exists(),
                         "no module for this interpreter was built")
    @unittest.skipIf(importlib.util.find_spec("numpy") is None, "NumPy is not installed")
    def test_python_loads_it(self):
        code = ("import sys, numpy as np, triptych\n"
                "try: triptych.load_plugin('missing.so')\n"
                "except triptych.BadInput as error: print(error)\n"
                "for _ in range(2): triptych.load_plugin(sys.argv[1])\n"
                "print([d['backend'] for d in triptych.devices()][-1])\n"
                "y = triptych.ops.relu(np.float32([-1, 2]), backend='toy')\n"
                "print(y.value.tolist(), y.kernel)\n"
                "try: triptych.ops.exp(np.float32([1]), backend='toy')\n"
                "except triptych.Unsupported as error: print(error)\n")
        done = execute(sys.executable, "-B", "-c", code, self.toy, cwd=self.folder,
                       env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("there is no plugin", lines[0])
        self.assertEqual(lines[1:3], ["toy", "[0.0, 2.0] loop"])
        self.assertIn("no kernel for Exp", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
