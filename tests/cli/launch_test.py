"""Ranks as processes: the bits of threads, one verdict, the culprit's status, and nobody left behind."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import signal
import time
from xml.etree import ElementTree

from support import FEW, PROGRAM, ProgramTest, main, wait_for

RUN = ["train", *FEW, "--batch", "4", "--threads", "1", "--contract", "bf16-exact", "--order", "shard-tree"]


def ranks_in(folder):
    """Process numbers of the ranks that run in that folder, by rank."""
    found = {}
    for process in pathlib.Path("/proc").iterdir():
        try:
            if not process.name.isdigit() or os.readlink(process / "cwd") != os.path.realpath(folder):
                continue
            environment = dict(word.split(b"=", 1) for word in (process / "environ").read_bytes().split(b"\0")
                               if b"=" in word)
            if os.readlink(process / "exe") == os.path.realpath(PROGRAM):
                found[int(environment[b"OMPI_COMM_WORLD_RANK"])] = int(process.name)
        except (OSError, KeyError):
            continue
    return found


class LaunchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("mpirun") or self.run_program("bench", "all-reduce", "--transport", "mpi", "--bytes", "4",
                                                          "--repeats", "1").returncode == 4:
            self.skipTest("no MPI")

    def launch(self, ranks, *arguments):
        return self.run_program("launch", "-n", ranks, *arguments, "--transport", "mpi")

    def test_processes_train_to_the_bits_of_threads_and_go_on_at_another_number(self):
        threads = self.document(*RUN, "--ranks", "2", "--steps", "4", "--out", "threads")["results"][0]
        process = self.launch(2, *RUN, "--steps", "4", "--out", "mpi", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertIn("triptych launch: all 2 ranks are done", process.stderr)
        self.assertEqual(process.stderr.count("2 ranks of 1 threads"), 1, "rank 0 speaks for all")
        self.assert_same_training(threads, json.loads(process.stdout)["results"][0])
        more = self.launch(4, "train", "--resume", "mpi", "--steps", "5")
        self.assertEqual(more.returncode, 0, more.stderr)

    def test_sums_over_processes_are_right(self):
        rows = self.document("bench", "all-reduce", "--transport", "threads,mpi", "--ranks", "2,3", "--bytes",
                             "4KiB..64KiB", "--algorithm", "direct,ring,library", "--repeats", "3",
                             "--plot", "picture.svg")["results"]
        self.assertEqual(len(rows), 2 * 3 * (2 + 3), "threads have no library")
        self.assertTrue(all(row["right"] for row in rows))
        picture = ElementTree.parse(self.folder / "picture.svg")
        dots = [e for e in picture.iter() if e.tag.endswith("circle")]
        self.assertEqual(len(dots), len(rows) + 10, "one each, and one in the legend per series")

    def test_the_verdict_has_the_error_and_the_status_of_the_culprit(self):
        process = self.launch(2, *RUN, "--ranks", "3", "--steps", "1", "--out", "a")
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertRegex(process.stderr.splitlines()[-1], r"^triptych launch: --ranks 3, but 2 processes .*code 2\)")
        self.expect_error(2, "launch", "-n", "0", "devices", says="--ranks")

    def start_long(self):
        process = self.start("launch", "-n", "2", *RUN, "--steps", "1000000", "--out", "long", "--transport", "mpi",
                             "--comm-timeout", "1")
        wait_for((self.folder / "long/checkpoint/checkpoint.json").exists)
        time.sleep(0.2)
        return process

    def ends(self, process):
        _, errors = process.communicate(timeout=60)
        self.assertEqual(ranks_in(self.folder), {}, "no process is left")
        return errors

    def test_a_killed_rank_is_named(self):
        process = self.start_long()
        os.kill(ranks_in(self.folder)[1], signal.SIGKILL)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, errors)
        self.assertRegex(errors, r'triptych launch: rank 1 ended in all-reduce #\d+ "(gradients.bucket1|loss.average|go on)')

    def test_a_stopped_rank_is_named_after_the_deadline(self):
        process = self.start_long()
        os.kill(ranks_in(self.folder)[0], signal.SIGSTOP)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("triptych launch: rank 0 stopped answering for 1.0 s in all-reduce", errors)

    def test_ctrl_c_at_the_launcher_stops_all_ranks_after_a_checkpoint(self):
        process = self.start_long()
        process.send_signal(signal.SIGINT)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
        self.assertIn("go on with: triptych train --resume long", errors)


if __name__ == "__main__":
    main()
