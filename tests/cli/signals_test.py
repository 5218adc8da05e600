"""SIGINT, SIGTERM and SIGHUP end every command in order: exit code 130, no process, no temporary file."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import FEW, PROGRAM, ProgramTest, checkpoints, main, wait_for

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG = ["--steps", "1000000", "--steps-per-epoch", "1000000", "--threads", "1"]
ENDLESS = """__global__ void endless(int* x) {
  volatile int stay = 1;
  while (stay) x[0] += 1;
}
"""


def caught(process):
    """True when the process answers SIGTERM by a handler of its own."""
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return False
    mask = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(mask >> (signal.SIGTERM - 1) & 1)


def members(session):
    """The processes of a session that have not ended."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split() if process.name.isdigit() else None
        except OSError:
            continue
        if fields and int(fields[3]) == session and fields[0] != "Z":
            found.append(int(process.name))
    return found


class Signals(ProgramTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def begin(self, *arguments):
        environment = {**os.environ, "TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.folder / "cache")}
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                   start_new_session=True)

        def end():
            for member in members(process.pid):
                os.kill(member, signal.SIGKILL)
            process.communicate()
        self.addCleanup(end)
        return process

    def left(self):
        # Open MPI's own folder stays where mpirun was ended at once.
        return ([str(path) for path in self.temporary.iterdir() if not path.name.startswith("ompi.")] +
                [str(path) for path in self.folder.rglob("*.tmp")])

    def ends(self, process, code=130):
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, code, errors)
        wait_for(lambda: not members(process.pid))
        self.assertEqual(self.left(), [])
        return errors

    def stopped(self, *arguments, at_work=lambda process: True, numbers=SIGNALS):
        for number in numbers:
            with self.subTest(command=arguments[0], signal=number.name):
                process = self.begin(*arguments)
                wait_for(lambda: process.poll() is not None or (caught(process) and at_work(process)))
                process.send_signal(number)
                self.ends(process)
                for path in ("a", "lr.csv"):
                    shutil.rmtree(self.folder / path, ignore_errors=True)

    def has_temporaries(self, _):
        return any(self.temporary.iterdir())

    def compiles(self, process):
        return self.has_temporaries(process) and len(members(process.pid)) > 1

    def test_a_training_is_stopped_at_work_and_before(self):
        self.stopped("train", *FEW, *LONG, "--out", "a", "--checkpoint-every", "1",
                     at_work=lambda _: any(saved["step"] for saved in checkpoints(self.folder / "a")))
        self.stopped("train", "--synthetic-images", "100000", "--size", "256", "--out", "a", "--threads", "1")

    def test_other_trainings_are_stopped(self):
        self.stopped("find-lr", *FEW, "--trials", "100000", "--threads", "1", "--out", "lr.csv")
        self.stopped("cross-validate", *FEW, *LONG, "--out", "a", at_work=lambda _: (self.folder / "a/fold-1").exists())
        self.stopped("compare", *FEW, "--epochs", "100000", "--backends", "cpu", "--threads", "1", "--out", "page.html",
                     at_work=self.has_temporaries)
        self.assertFalse((self.folder / "page.html").exists())

    def test_measurements_are_stopped(self):
        self.stopped("bench", "--model", "unet-l", "--size", "1024", "--threads", "1")

    @unittest.skipIf(shutil.which("g++") is None, "g++ is not installed")
    @unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ, "kernels are not instrumented")
    def test_kernels_are_stopped_with_their_compiler(self):
        (self.folder / "endless.cu").write_text(ENDLESS)
        self.stopped("kernel", "build", "endless.cu", "--out", "endless.so", at_work=self.compiles)
        self.assertFalse((self.folder / "endless.so").exists())
        self.succeed("kernel", "build", "endless.cu", "--out", "endless.so")
        self.stopped("kernel", "run", "endless.so", "i32:1", "--grid", "1", "--block", "1", at_work=self.has_temporaries)

    @unittest.skipIf(shutil.which("verilator") is None, "Verilator is not installed")
    def test_builds_of_machines_are_stopped_with_their_tools(self):
        machine = json.loads(self.succeed("machine", "show", "mmu4").stdout)
        machine["buffer_rows"] *= 2
        (self.folder / "mine.json").write_text(json.dumps(machine))
        self.stopped("machine", "build", "mine.json", at_work=self.compiles)

    @unittest.skipIf(shutil.which("mpirun") is None, "mpirun is not installed")
    @unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ, "Open MPI leaks by design")
    def test_launched_ranks_are_stopped(self):
        command = ["launch", "-n", "2", "train", *FEW, *LONG, "--batch", "2", "--transport", "mpi", "--out", "a"]
        self.stopped(*command, "--checkpoint-every", "5", at_work=lambda _: checkpoints(self.folder / "a"))
        self.stopped(*command, at_work=self.has_temporaries, numbers=[signal.SIGTERM])
        process = self.begin(*command, "--accumulate", "1")
        wait_for(lambda: self.has_temporaries(process))
        ranks = lambda: [m for m in members(process.pid) if m != process.pid]
        wait_for(lambda: len(ranks()) > 2)
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        self.ends(process)

    def test_a_second_signal_ends_at_once_and_leaves_nothing(self):
        process = self.begin("train", "--synthetic-images", "8", "--size", "128", "--batch", "8", *LONG, "--out", "a",
                             "--checkpoint-every", "1")
        wait_for(lambda: any(saved["step"] for saved in checkpoints(self.folder / "a")))
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        self.ends(process)

    def test_a_program_that_ignores_a_closing_terminal_keeps_doing_so(self):
        for command in (["train", *FEW, *LONG, "--out", "a"], ["bench", "--model", "unet-l", "--size", "1024"]):
            process = subprocess.Popen(["nohup", PROGRAM, *command], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            wait_for(lambda: caught(process))
            process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            self.assertIsNone(process.poll(), command)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=120), 130)


if __name__ == "__main__":
    main()
