"""Processes that misbehave at seeded points: every survivor names the same culprit, in time, and nobody stays."""
# SPDX-License-Identifier: Apache-2.0
#   mpi_faults_test.py PROGRAM MPIRUN...         what the suite runs
#   SCENES=200 mpi_faults_test.py ...            that many deaths, exits and stops
#   SEEDS=200 mpi_faults_test.py ...             seeds below that of processes that live on, and one that stalls
#   TRIPTYCH_TIMED=1 mpi_faults_test.py ...      judges how soon, too, which wants an idle machine
import os
import pathlib
import subprocess
import sys
import time
import unittest

PROGRAM, MPIRUN = sys.argv[1], sys.argv[2:]
SCENES = int(os.environ.get("SCENES", "9"))
SEEDS = int(os.environ.get("SEEDS", "24"))
STALLS = 40  # a seed of one that stalls
TIMED = "TRIPTYCH_TIMED" in os.environ
os.environ["TRIPTYCH_FAULTS_OF"] = str(os.getpid())  # marks the processes of this run, which inherit it
MARK = f"TRIPTYCH_FAULTS_OF={os.getpid()}".encode()
DEADLINE, BUSY = 1.0, 1.8  # faulty_transport.h
GRACE = float(os.environ.get("GRACE", "2.0"))  # 0.5, the promise, on a machine with a processor for each rank
BUSY_SEED = 2  # its culprit comes to the operation before which it is busy
DROP_SEED = 0  # two ranks
ENDS = {"kill": "exited on signal 9 (Killed)", "exit": "Exit code:    3"}  # in mpirun's words
NOTICED = 1 + GRACE  # seconds until a death is known to all


def play(ranks, *arguments):
    """Exit code, the lines of the ranks and the errors of mpirun. None of their processes may remain."""
    process = subprocess.run([*MPIRUN, str(ranks), PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                             timeout=120)
    lines = []
    for line in process.stdout.splitlines():
        words = line.split(" ", 8)
        if len(words) == 9:
            seed, rank, culprit, injection, injected, seconds, blamed, noticed_by, text = words
            lines.append({"seed": int(seed), "rank": int(rank), "culprit": int(culprit), "injection": injection,
                          "injected": injected == "1", "seconds": float(seconds), "blamed": int(blamed),
                          "noticed_by": int(noticed_by), "text": text})
    return process.returncode, lines, process.stderr


def running():
    """Numbers of this run's processes that have not ended."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            marked = MARK in pathlib.Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
            if marked and os.readlink(f"/proc/{number}/exe") == os.path.realpath(PROGRAM):
                found.append(int(number))
        except OSError:  # ended, or another user's
            continue
    return found


class MpiFaults(unittest.TestCase):
    def judge(self, line, lines):
        """One scene as one rank saw it."""
        injection, wrong = line["injection"], line["injection"] in ("wrong-order", "wrong-size")
        quiet = any(other["rank"] == line["culprit"] and not other["injected"] for other in lines)
        drops = injection in ("drop", "busy-drop")
        if drops:  # in the transport of the receiver
            quiet = not any(other["injected"] for other in lines)
        happened = wrong or not quiet
        if injection == "stall" and not TIMED:  # the others may come as late as the one that stalled
            happened = happened and any(other["text"] for other in lines)
        if not happened or injection in ("slow", "busy"):
            self.assertEqual(line["blamed"], -1, line)
            return
        if line["rank"] == line["culprit"] and injection in ("throw", "leave"):
            return
        self.assertEqual({other["text"] for other in lines if other["text"]}, {line["text"]}, "one fault for all")
        self.assertIn(line["culprit"], (line["blamed"], line["noticed_by"]) if wrong else (line["blamed"],), line)
        if drops:
            self.assertIn("sent a message that did not arrive", line["text"])
        if not TIMED:
            return
        stalls = injection in ("stall", "stop", "busy-stop")
        # The one that stalled is late itself.
        if not (stalls and line["rank"] == line["culprit"]):
            busy = BUSY if injection.startswith("busy-") else 0
            self.assertLess(line["seconds"], busy + DEADLINE + GRACE if stalls or drops else NOTICED, line)

    def test_processes_that_live_on(self):
        wanted = [*range(1, SEEDS), *([STALLS] if SEEDS <= STALLS else [])]
        for first in range(0, len(wanted), 60):
            seeds = wanted[first:first + 60]
            code, lines, _ = play(3, *seeds)
            self.assertEqual(code, 0)
            self.assertEqual(len(lines), 3 * len(seeds))
            for line in lines:
                with self.subTest(seed=line["seed"], rank=line["rank"]):
                    self.judge(line, [other for other in lines if other["seed"] == line["seed"]])

    def scene(self, injection, seed):
        """Words of the survivors of a process that ends or stops."""
        code, lines, errors = play(2 + seed % 3, injection, seed)
        self.assertNotEqual(code, 0)
        survivors = [line for line in lines if line["rank"] != line["culprit"]]
        # On a busy machine mpirun may be faster to see that the culprit has ended, and end the others.
        if TIMED or injection not in ENDS:
            self.assertGreater(len(survivors), 0)
        elif not survivors:
            self.assertIn(ENDS[injection], errors)
        for line in survivors:
            self.judge(line, lines)
        time.sleep(0.1)
        self.assertEqual(running(), [], "no process is left")
        return survivors

    def test_processes_that_die_or_stop(self):
        for seed in range(SCENES):
            injection = ("kill", "exit", "stop")[seed % 3]
            with self.subTest(seed=seed, injection=injection):
                self.scene(injection, seed)

    def test_a_process_that_stops_before_it_joins_ends_all(self):
        process = subprocess.Popen([*MPIRUN, "2", PROGRAM, "absent"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        while not (found := running()) and process.poll() is None:
            time.sleep(0.01)
        self.assertGreater(len(found), 0, "the processes of a run are found")
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("MPI did not start within 3.0 s: a process that mpirun has started is stopped", errors)
        for _ in range(100):  # mpirun does not wait for one that it has to kill
            if running():
                time.sleep(0.1)
        self.assertEqual(running(), [], "no process is left")

    def test_a_busy_process_is_waited_for(self):
        code, lines, _ = play(3, "busy", BUSY_SEED)
        self.assertEqual(code, 0)
        self.assertTrue(any(line["injected"] for line in lines))
        self.assertEqual([line["text"] for line in lines], 3 * [""])

    def test_a_process_that_stops_while_it_is_busy_is_named(self):
        for line in self.scene("busy-stop", BUSY_SEED):
            self.assertIn("when last heard of it was working", line["text"])

    def test_a_lost_message_is_named_after_an_earlier_wait(self):
        survivors = self.scene("busy-drop", DROP_SEED)
        self.assertIn("sent a message that did not arrive", survivors[0]["text"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
