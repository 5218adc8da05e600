#!/usr/bin/env python3
"""Runs the parts of a GPU session from what gpu_pack.py made; writes each result when it has it.

Called by gpu_session.sh, which says how.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_items
import gpu_pack
import gpu_report

HERE = pathlib.Path(__file__).resolve().parent
OLDEST_DRIVER = 580  # that runs programs of CUDA 13
KEPT_CHARACTERS = 4000
TESTS_RAN = re.compile(r"[1-9]\d* tests? from .* ran")


class Stop(Exception):
    """The session ends: its exit code and why."""

    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


def parse(arguments):
    class Parser(argparse.ArgumentParser):
        def error(self, message):
            raise Stop(2, f"{message}; see the head of gpu_session.sh")
    parser = Parser(prog="gpu_session.sh", add_help=False)
    parser.add_argument("--pack", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--as-built", action="store_true")
    parser.add_argument("--prebuilt", type=pathlib.Path)
    parser.add_argument("--part", action="append", choices=list(gpu_items.PARTS))
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if options.pack and (options.prebuilt or options.part or options.out):
        raise Stop(2, "--pack only makes the folder; leave out --prebuilt, --part and --out")
    return options


def run_silently(command):
    """Its output, or None where it is not there or failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def driver_version():
    """"580.65.06", or "" where there is no driver."""
    words = run_silently(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    if words is None:
        try:
            words = pathlib.Path("/proc/driver/nvidia/version").read_text()
        except OSError:
            words = ""
    found = re.search(r"\b(\d{3,}\.\d+(\.\d+)?)\b", words)
    return found[1] if found else ""


def torch_problem():
    """Why PyTorch cannot be a rival here; empty: it can."""
    code = "import torch; assert torch.cuda.is_available(), 'it finds no GPU'"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=60)
    except subprocess.TimeoutExpired:
        return "PyTorch does not start within a minute"
    return "" if done.returncode == 0 else f"PyTorch: {done.stderr.strip().splitlines()[-1]}"


def tool_problem(name):
    if name == "torch":
        return torch_problem()
    if shutil.which(name) or pathlib.Path(f"/usr/local/cuda/bin/{name}").exists():
        return ""
    package = {"ncu": "cuda-nsight-compute", "compute-sanitizer": "cuda-sanitizer"}[name]
    return f"there is no {name} (package {package})"


class Session:
    """One document, written anew before and after each item, so that none of it is ever lost."""

    def __init__(self, folder, out, parts):
        self.folder, self.parts = folder, parts
        self.pack = gpu_pack.read(folder)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpu_session."))
        self.problems = {}  # of tools, each asked once
        now = datetime.datetime.now(datetime.timezone.utc)
        self.document = {
            "schema": 2, "kind": "recorded", "date": now.isoformat(timespec="seconds"),
            "state": "running", "running": None, "parts": parts, "commit": self.pack["commit"],
            "architectures": self.pack["architectures"],
            "machine": {"gpu": None, "driver": driver_version(), "oldest_driver": OLDEST_DRIVER,
                        "host": platform.machine(), "system": platform.platform(),
                        "libc": " ".join(platform.libc_ver())},
            "bars": [], "items": []}
        out.mkdir(parents=True, exist_ok=True)
        self.path = out / f"gpu-{now:%Y-%m-%dT%H%M%S}-{''.join(parts)}.json"

    def write(self):
        text = json.dumps(self.document, indent=1) + "\n"
        unfinished = self.path.with_suffix(".tmp")
        unfinished.write_text(text)
        unfinished.replace(self.path)

    def close(self, state):
        self.document["state"] = state
        self.document["running"] = None
        self.document["bars"] = gpu_report.bars(self.document)
        self.write()
        shutil.rmtree(self.work, ignore_errors=True)

    def add(self, item, part, quiet=False, **fields):
        entry = {"name": item.name, "part": part, "command": " ".join(item.command), **fields}
        self.document["items"].append(entry)
        self.document["bars"] = gpu_report.bars(self.document)
        self.write()
        if "not_run" in entry:
            said = f"not run: {entry['not_run']}"
        else:
            said = f"{entry['seconds']:5.1f} s  exit {entry['exit_code']}"
        if not quiet:
            print(f"{part} {item.name:36} {said}", flush=True)
        return entry

    def command_of(self, item):
        places = {"triptych": [str(self.folder / "bin/triptych")],
                  "backend_test": [str(self.folder / "bin/backend_test")],
                  "torch_rivals": [sys.executable, "-B", str(HERE / "torch_rivals.py")]}
        words = []
        for word in item.command:
            words += places.get(word, [word.replace("WORK", str(self.work))])
        return words

    def environment_of(self, item):
        environment = {**os.environ, **item.environment,
                       "XDG_CACHE_HOME": str(self.work / "cache")}  # kernels are measured again
        if item.needs != "torch":
            places = [str(self.folder / "lib"), environment.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, places))
        environment["PATH"] = environment.get("PATH", "/usr/bin:/bin") + ":/usr/local/cuda/bin"
        return environment

    def run(self, item, part, seconds):
        """Runs it for at most so many seconds; 124 is its exit code where that was not enough."""
        self.document["running"] = item.name
        self.write()
        begin = time.monotonic()
        with open(self.work / "out", "w+", errors="replace") as out, \
                open(self.work / "err", "w+", errors="replace") as err:
            process = subprocess.Popen(self.command_of(item), stdout=out, stderr=err, text=True,
                                       env=self.environment_of(item), start_new_session=True)
            try:
                code = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                code = 124
            finally:
                end_group(process)
            elapsed = time.monotonic() - begin
            out.seek(0)
            err.seek(0)
            printed, errors = out.read(), err.read()
        if code == 0 and "backend_test" in item.command and not TESTS_RAN.search(printed):
            code, errors = 1, "no test has that name"
        self.document["running"] = None
        entry = {"seconds": round(elapsed, 2), "exit_code": code}
        try:
            entry["result"] = json.loads(printed)
        except ValueError:
            entry["printed"] = printed[-KEPT_CHARACTERS:] if item.needs != "torch" else printed
        if code != 0:
            entry["errors"] = errors[-KEPT_CHARACTERS:]
        return self.add(item, part, **entry)

    def problem_of(self, tool):
        if tool not in self.problems:
            self.problems[tool] = tool_problem(tool)
        return self.problems[tool]

    def run_part(self, part):
        left = gpu_items.PART_SECONDS
        done = {entry["name"] for entry in self.document["items"]}  # devices is
        for item in gpu_items.PARTS[part]():
            if item.name in done:
                continue
            begin = time.monotonic()
            problem = self.problem_of(item.needs) if item.needs else ""
            if not problem and left < 1:
                problem = f"the {gpu_items.PART_SECONDS} s of part {part} were over"
            if problem:
                self.add(item, part, not_run=problem)
            else:
                self.run(item, part, min(item.seconds, left))
            left -= time.monotonic() - begin

    def require_gpu(self):
        """Asks the program itself what it finds; Stop where that is no GPU it has kernels for."""
        devices = self.run(gpu_items.part_a()[0], "A", 60)
        if devices["exit_code"] != 0:
            raise Stop(4, f"the packed program does not run here: {devices['errors'].strip()}")
        cuda = next(entry for entry in devices["result"]["results"] if entry["backend"] == "cuda")
        machine = self.document["machine"]
        machine["libraries"] = cuda["libraries"]
        machine["environment"] = devices["result"]["environment"]
        machine["devices"] = cuda["devices"]
        driver = machine["driver"]
        if driver and int(driver.split(".")[0]) < OLDEST_DRIVER:
            raise Stop(3, f"its driver {driver} is older than {OLDEST_DRIVER}, the oldest that "
                       "CUDA 13 takes; install a newer driver")
        if not cuda["available"]:
            kernels = ", ".join(self.pack["architectures"])
            raise Stop(3, f"{cuda['reason']} (this folder has kernels for {kernels})")
        machine["gpu"] = cuda["devices"][0]["description"]
        machine["nvidia_smi"] = run_silently(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit",
             "--format=csv,noheader"])

    def skip_all(self, why):
        known = {entry["name"] for entry in self.document["items"]}
        for part in self.parts:
            for item in gpu_items.PARTS[part]():
                if item.name not in known:
                    self.add(item, part, quiet=True, not_run=why)


def end_group(process):
    """Ends the item and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def newer_libc_problem(pack):
    name, version = platform.libc_ver()
    if name != "glibc":
        return f"its C library is {name or 'unknown'}; the folder needs glibc {pack['glibc']}"
    if [int(n) for n in version.split(".")] < [int(n) for n in pack["glibc"].split(".")]:
        return f"its glibc {version} is older than {pack['glibc']}, which the folder needs"
    return ""


def prebuilt_folder(options):
    if options.prebuilt:
        return options.prebuilt.resolve()
    if (HERE.parent / "pack.json").exists():
        return HERE.parent
    if not driver_version():
        raise Stop(3, "there is no NVIDIA driver here; --pack makes a folder for another machine")
    build = (options.build or gpu_pack.ROOT / "build/gpu").resolve()
    gpu_pack.make(build / "pack", build)
    return build / "pack"


def hold(session):
    """Runs the parts and returns the exit code. The document is whole however it ends."""
    try:
        problem = newer_libc_problem(session.pack)
        if problem:
            raise Stop(4, problem)
        session.require_gpu()
        for part in session.parts:
            session.run_part(part)
    except Stop as stop:
        session.document["why"] = str(stop)
        session.skip_all(str(stop))
        session.close("not run")
        print(f"gpu_session: nothing was measured: {stop}", file=sys.stderr)
        return stop.code
    except KeyboardInterrupt:
        session.close("interrupted")
        print(f"gpu_session: interrupted; what is known is in {session.path}", file=sys.stderr)
        return 1
    session.close("finished")
    return gpu_report.tell(session.document)


def main(arguments):
    def interrupt(*_):
        raise KeyboardInterrupt
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, interrupt)
    try:
        options = parse(arguments)
        if options.pack:
            gpu_pack.make(options.pack, options.build or gpu_pack.ROOT / "build/gpu",
                          options.as_built)
            return 0
        folder = prebuilt_folder(options)
        out = options.out or (folder / "results" if folder == HERE.parent else
                              gpu_pack.ROOT / "experiments/recorded")
        session = Session(folder, out, sorted(set(options.part or gpu_items.PARTS)))
    except gpu_pack.Problem as problem:
        print(f"gpu_session: {problem}", file=sys.stderr)
        return 2
    except Stop as stop:
        print(f"gpu_session: {stop}", file=sys.stderr)
        return stop.code
    code = hold(session)
    print(session.path)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
