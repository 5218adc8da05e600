"""A call to the system that fails, once, while a run goes on: its checkpoints stay, and it goes on to the same bits.

A preloaded library (failing_io.cpp) fails the n-th of the calls that touch the run's folder: opens, reads, writes,
fsyncs, renames. TRIPTYCH_IO_FAULTS says how many are tried, else 9: 900 are the first 300 with each error.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import itertools
import json
import os
import shutil
import sys

from support import FEW, ProgramTest, main

SHIM = sys.argv.pop(3)
RUN = [*FEW, "--batch", "2", "--steps-per-epoch", "4", "--seed", "3", "--lr", "0.01", "--checkpoint-every", "1"]
FIRST = 300  # a load, a save and a half
SHORT = 0  # no error, but half of the bytes
ERRORS = [errno.EIO, errno.ENOSPC, SHORT]
#: Failures that an operation tells its user of: the file is wrong or cannot be used.
TOLD = 2


def faults(called):
    """(number of the call, error): those asked for, spread over the calls that are unlike the one before."""
    wanted = int(os.environ.get("TRIPTYCH_IO_FAULTS", "9"))
    if wanted >= FIRST * len(ERRORS):
        return list(itertools.product(range(1, FIRST + 1), ERRORS))
    new = [n for n in range(1, FIRST + 1) if n == 1 or called[n - 1] != called[n - 2]]
    return [(new[i * len(new) // wanted], ERRORS[i % len(ERRORS)]) for i in range(wanted)]


class Faults(ProgramTest):
    def go_on(self, name, **faults):
        """The run to its end, under the library."""
        folder = str(self.folder / name)
        environment = {**os.environ, "LD_PRELOAD": SHIM, "TRIPTYCH_FAULT_FOLDER": folder, **faults}
        return self.run_program("train", "--resume", folder, "--steps", "9", "--json", env=environment)

    def result(self, run):
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["results"][0]

    def test_one_failing_call_costs_no_checkpoint_and_no_bit(self):
        self.succeed("train", *RUN, "--steps", "4", "--out", "begun")
        log = self.folder / "calls"
        shutil.copytree(self.folder / "begun", self.folder / "whole")
        expected = self.result(self.go_on("whole", TRIPTYCH_FAULT_LOG=str(log)))
        called = [line.split()[1] for line in log.read_text().splitlines()]
        self.assertGreater(len(called), FIRST)
        self.assertLessEqual({"open", "openat", "pread", "write", "fsync", "renameat"}, set(called[:FIRST]))
        tries, refused = faults(called), 0
        for number, error in tries:
            name = f"{number}-{called[number - 1]}-{errno.errorcode.get(error, 'short')}"
            with self.subTest(name):
                shutil.copytree(self.folder / "begun", self.folder / name)
                tried = self.go_on(name, TRIPTYCH_FAULT_AT=str(number), TRIPTYCH_FAULT_ERROR=str(error))
                self.assertIn(tried.returncode, (0, TOLD), tried.stderr)
                if tried.returncode == 0:
                    self.assert_same_training(expected, self.result(tried))
                else:
                    refused += 1
                    self.assertIn(os.strerror(error), tried.stderr)
                    self.assertIn(name, tried.stderr, "it says which file")
                self.assert_same_training(expected, self.result(self.go_on(name)))
                shutil.rmtree(self.folder / name)
        self.assertGreater(refused, len(tries) // 4, "the faults did not reach the program")


if __name__ == "__main__":
    main()
