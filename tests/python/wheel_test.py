"""The wheel: built by pip from this repository, tried in fresh virtual environments.

  pytest wheel_test.py     with PyPI at hand; minutes, so that it is part of the long form

TRIPTYCH_PYTHONS: interpreters beside this one, such as "python3.12:/opt/python3.13/bin/python3".
"""
# SPDX-License-Identifier: Apache-2.0
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/install"))
from elf import Elf, files_below, foreign_places  # noqa: E402

MOST_BYTES = 20_000_000
SAMPLE = SOURCE / "tests/python/typed_use.py"


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def interpreters():
    """One of each version from 3.11 to 3.13: this one, those asked for, those on the path."""
    names = [sys.executable, *filter(None, os.environ.get("TRIPTYCH_PYTHONS", "").split(":"))]
    found = {}
    for name in [*names, "python3.11", "python3.12", "python3.13"]:
        try:
            asked = subprocess.run([name, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"],
                                   capture_output=True, text=True)
        except OSError:
            continue
        version = tuple(map(int, asked.stdout.split())) if asked.returncode == 0 else None
        if version and (3, 11) <= version <= (3, 13):
            found.setdefault(version, name)
    return found


INTERPRETERS = interpreters()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("wheel")


def fresh(work, interpreter, name):
    """Python of a new virtual environment."""
    folder = work / name
    run(interpreter, "-m", "venv", folder)
    return folder / "bin/python"


def build(work, interpreter, name, tree):
    """The wheel for an interpreter; what no Python changes is kept in the tree from one to the next."""
    python = fresh(work, interpreter, f"build-{name}")
    time = run("git", "-C", SOURCE, "log", "-1", "--format=%ct").strip()
    run(python, "-m", "pip", "wheel", "--no-deps", "-w", work / name, SOURCE,
        f"--config-settings=build-dir={work}/{tree}", env={**os.environ, "SOURCE_DATE_EPOCH": time})
    (wheel,) = (work / name).glob("triptych-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel_of(work):
    @functools.cache
    def wheel(version):
        return build(work, INTERPRETERS[version], f"wheel{version[0]}{version[1]}", "tree")

    return wheel


FIRST = min(INTERPRETERS)


def test_wheel_is_small_and_whole(wheel_of):
    wheel = wheel_of(FIRST)
    assert wheel.stat().st_size <= MOST_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name.split("/", 1)[1] for name in names if name.startswith("triptych/")}
    assert {"__init__.py", "py.typed", "ops.pyi", "_triptych.pyi"} <= inside
    assert any(name.startswith("_triptych.") and name.endswith(".so") for name in inside)
    assert any(name.endswith(".data/scripts/triptych") for name in names)
    for part in ("licenses/LICENSE", "licenses/NOTICE", "sboms/triptych.spdx.json"):
        assert any(name.endswith(f".dist-info/{part}") for name in names), part


def test_its_sbom_lists_what_the_wheel_holds(wheel_of):
    wheel = zipfile.ZipFile(wheel_of(FIRST))
    [name] = [name for name in wheel.namelist() if name.endswith("sboms/triptych.spdx.json")]
    packages = {package["name"] for package in json.loads(wheel.read(name))["packages"]}
    assert {"triptych", "pybind11", "nlohmann-json", "CLI11"} <= packages
    assert "Open MPI" not in packages  # pyproject.toml leaves it out


def test_its_binaries_are_hardened_and_load_nothing_from_the_current_directory(work, wheel_of):
    zipfile.ZipFile(wheel_of(FIRST)).extractall(work / "unpacked")
    files = list(files_below(work / "unpacked"))
    assert len(files) == 2, files
    for file in files:
        elf = Elf(file)
        assert foreign_places(elf) == [], file
        assert elf.has_read_only_relocations and elf.binds_at_start and not elf.has_executable_stack, file
        assert {"__stack_chk_fail", "__memcpy_chk"} <= elf.undefined, file


def test_wheel_is_reproducible(work, wheel_of):
    again = build(work, INTERPRETERS[FIRST], "again", "another-tree")
    digests = [hashlib.sha256(w.read_bytes()).hexdigest() for w in (wheel_of(FIRST), again)]
    assert digests[0] == digests[1]


def install(work, wheel, version, name, *packages):
    python = fresh(work, INTERPRETERS[version], name)
    run(python, "-m", "pip", "install", "-q", wheel, *packages)
    return python


def try_module(python, *files):
    """The module's own tests, on what was installed, without the compilers of this machine."""
    program = python.parent / "triptych"
    environment = {**os.environ, "TRIPTYCH_PROGRAM": str(program), "TRIPTYCH_PYBIND11": "2.12",
                   "PATH": f"{python.parent}:/usr/bin:/bin"}  # pyproject.toml asks for so new a pybind11
    environment.pop("PYTHONPATH", None)
    assert "triptych" in run(program, "--version")
    return run(python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
               *(SOURCE / "tests/python" / file for file in files), env=environment)


@pytest.mark.parametrize("numpy", ["numpy<2", "numpy>=2"])
@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_installed_wheel_passes_the_modules_tests(work, wheel_of, version, numpy):
    if version not in INTERPRETERS:
        pytest.skip(f"no Python {version[0]}.{version[1]} here; name one in TRIPTYCH_PYTHONS")
    if version == (3, 13) and numpy == "numpy<2":
        pytest.skip("NumPy 1 has no wheel for Python 3.13")
    name = f"try{version[0]}{version[1]}{numpy[5]}".replace("<", "1").replace(">", "2")
    python = install(work, wheel_of(version), version, name, numpy, "pytest", "ml_dtypes")
    machines = run(python, "-c", "import triptych; print(triptych.rtl_machines())")
    assert "'mmu4'" in machines and "'mmu16'" in machines  # without Verilator
    try_module(python, "ops_test.py", "graph_test.py", "machine_test.py", "trainer_test.py")


def test_types_are_checked(work, wheel_of):
    python = install(work, wheel_of(FIRST), FIRST, "types", "mypy", "pyright[nodejs]")
    environment = {**os.environ, "PYTHONPATH": ""}
    run(python, "-m", "mypy", "--strict", SAMPLE, env=environment)
    run(python, "-m", "mypy", "--strict", "-p", "triptych", env=environment)
    package = run(python, "-c", "import triptych; print(triptych.__path__[0])", env=environment).strip()
    for checked in (SAMPLE, package):
        run(python.parent / "pyright", "--level", "error", "--pythonpath", python, checked, env=environment)


def test_notebooks_run_in_jupyter(work, wheel_of):
    python = install(work, wheel_of(FIRST), FIRST, "jupyter", "pytest", "nbclient", "nbformat",
                     "ipykernel", "pandas")
    passed = try_module(python, "notebooks_test.py")
    assert "skipped" not in passed
