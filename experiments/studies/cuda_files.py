#!/usr/bin/env python3
"""Runs public CUDA programs with `triptych kernel run`, one after another, and prints a line for each.

    cuda_files.py TRIPTYCH SUITES [NAME...] [--seconds N] [--list FILE]

SUITES is a folder with clones of cuda-samples, gpu-rodinia and rocm-examples. A program runs in a copy of
its own folder. cuda_files.txt has the commands: a line of "FOLDER | words of kernel run", and for a program
with a module "FOLDER | words | SOURCE NAME". Without words a sample takes the files of its CMakeLists.txt.
A limit holds for processor time, and every result states its own.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

from cuda_files_data import inputs_of

WAIVED = 2  # the exit status of NVIDIA's samples that a device cannot run


def sources_of(folder):
    """The files of add_executable in a sample's CMakeLists.txt, that with main in front."""
    text = (folder / "CMakeLists.txt").read_text()
    text = re.sub(r"#[^\n]*", "", text)
    words = re.search(r"add_executable\s*\(([^)]*)\)", text).group(1).split()[1:]
    files = [word for word in words if re.search(r"\.(cu|cpp|cc|c|hip)$", word) and "$" not in word]
    return sorted(files, key=lambda file: "main(" not in (folder / file).read_text(errors="replace"))


def command_of(folder, words):
    """The words of kernel run, with the sources in front where they are not given."""
    options, _, arguments = words.partition(" -- ") if " -- " in f" {words} " else (words, "", "")
    options = shlex.split(options)
    if not any(re.search(r"\.(cu|cpp|hip|c)$", word) for word in options[:1]):
        files = sources_of(folder)
        options = files[:1] + [word for file in files[1:] for word in ("--source", file)] + options
    return options + ["--"] * bool(arguments) + shlex.split(arguments)


def limit(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def describe(run, result):
    """What became of a run, in words."""
    if result is None:
        text = (run.stderr or run.stdout).strip().splitlines()
        errors = [line for line in text if "error" in line] or text[-1:]
        return f"refused: {errors[0][:160]}" if errors else f"ends with status {run.returncode}"
    if result["stopped"]:
        finding = (result["findings"] or [{}])[-1]
        return f"stopped: {result['stopped']} {finding.get('line', '')} {finding.get('message', '')[:160]}"
    if result["status"] == WAIVED:
        return "waived"
    text = "runs" if result["status"] == 0 else f"ends with status {result['status']}"
    places = sorted({f"{pathlib.Path(each['file']).name}:{each['line']}" for each in result["findings"]})
    return text + (f", with findings at {', '.join(places)}" if places else "")


def measure(program, suites, folder, words, module, seconds):
    """(description, seconds of processor time)"""
    source = suites / folder
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary) / folder.split("/")[0]
        place = root.joinpath(*folder.split("/")[1:])
        shutil.copytree(source, place, symlinks=True)
        for name in ("Common", "External", "cuda/common", "cuda/util"):
            if (suites / folder.split("/")[0] / name).is_dir() and not (root / name).exists():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).symlink_to((suites / folder.split("/")[0] / name).resolve())
        samples = pathlib.Path(temporary) / "cuda-samples"
        if not (samples / "Common").exists():  # a program of another suite may use its headers
            samples.mkdir(exist_ok=True)
            (samples / "Common").symlink_to((suites / "cuda-samples" / "Common").resolve())
        for name, content in inputs_of(folder).items():
            place.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            place.joinpath(name).write_bytes(content.encode() if isinstance(content, str) else content)
        if folder.endswith("matrixMul_nvrtc"):
            (place / "cooperative_groups.h").touch()  # the sample looks for this file, which may be empty
        if module:
            subprocess.run([program, "kernel", "build", module[0], "--module", "--out", module[1], "--overwrite",
                            *module[2:]], cwd=place, check=True, capture_output=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            run = subprocess.run([program, "kernel", "run", "--json", *command_of(place, words)], cwd=place,
                                 capture_output=True, text=True, errors="replace", check=False,
                                 timeout=20 * seconds, preexec_fn=lambda: limit(seconds))
        except subprocess.TimeoutExpired:
            return "waits without an end", 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if run.returncode < 0:
        return f"does not end within {seconds} s of processor time", used
    try:
        result = json.loads(run.stdout)["results"][0]
    except (ValueError, KeyError, IndexError):
        result = None
    return describe(run, result), used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triptych")
    parser.add_argument("suites", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="ends of folders, or first words; all without names")
    parser.add_argument("--seconds", type=int, default=120, help="limit of processor time for a program")
    parser.add_argument("--list", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".txt"))
    options = parser.parse_args()
    program = str(pathlib.Path(options.triptych).resolve())
    for line in options.list.read_text().splitlines():
        folder, words, module = ([part.strip() for part in line.split("|")] + ["", ""])[:3]
        if not folder or folder.startswith("#"):
            continue
        if options.names and not any(folder.endswith(name) or words.startswith(name) for name in options.names):
            continue
        text, used = measure(program, options.suites.resolve(), folder, words, shlex.split(module), options.seconds)
        print(f"{folder} | {words} | {used:.0f} s | {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
