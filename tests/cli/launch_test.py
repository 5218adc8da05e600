"""Ranks as processes: the bits of threads, one verdict, the culprit's status, and nobody left behind."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock
from xml.etree import ElementTree

from support import FEW, PROGRAM, ProgramTest, checkpoints, main, wait_for

RUN = ["train", *FEW, "--batch", "4", "--threads", "1", "--contract", "bf16-exact", "--order", "shard-tree"]

# An mpirun that starts its one rank and does not end with it.
HANGING = f"""#!{sys.executable}
import os, subprocess, sys, time
words = sys.argv[1:]
while "-x" in words:
    at = words.index("-x")
    name, _, value = words[at + 1].partition("=")
    os.environ[name] = value
    del words[at:at + 2]
program = next(i for i, word in enumerate(words) if word.startswith("/"))
subprocess.run(words[program:], env={{**os.environ, "OMPI_COMM_WORLD_RANK": "0"}})
time.sleep(1000)
"""


def environment_of(process):
    words = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def ranks_in(folder):
    """Process numbers of the ranks that run in that folder, by rank."""
    found = {}
    for process in pathlib.Path("/proc").iterdir():
        try:
            if not process.name.isdigit() or os.readlink(process / "cwd") != os.path.realpath(folder):
                continue
            if os.readlink(process / "exe") == os.path.realpath(PROGRAM):
                found[int(environment_of(process.name)["OMPI_COMM_WORLD_RANK"])] = int(process.name)
        except (OSError, KeyError):
            continue
    return found


class LaunchTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        bench = [PROGRAM, "bench", "all-reduce", "--transport", "mpi", "--bytes", "4", "--repeats", "1"]
        if not shutil.which("mpirun") or subprocess.run(bench, capture_output=True).returncode == 4:
            raise unittest.SkipTest("no MPI")

    def launch(self, ranks, *arguments):
        return self.run_program("launch", "-n", ranks, *arguments, "--transport", "mpi")

    def test_processes_train_to_the_bits_of_threads_and_go_on_at_another_number(self):
        threads = self.document(*RUN, "--ranks", "2", "--steps", "4", "--out", "threads")["results"][0]
        process = self.launch(2, *RUN, "--steps", "4", "--out", "mpi", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertIn("triptych launch: all 2 ranks are done", process.stderr)
        self.assertEqual(process.stderr.count("2 ranks of 1 thread,"), 1, "rank 0 speaks for all")
        self.assert_same_training(threads, json.loads(process.stdout)["results"][0])
        more = self.launch(4, "train", "--resume", "mpi", "--steps", "5")
        self.assertEqual(more.returncode, 0, more.stderr)
        # mpirun connects a rank to a pseudo terminal, also where its own output is a file.
        self.assertNotIn("\x1b", process.stderr + more.stderr + more.stdout)

    def test_overlapped_and_asynchronous_processes_have_the_bits_of_threads(self):
        pipeline = ["--strategy", "pipeline:2", "--order", "rank-ordered", "--steps", "3"]
        threads = self.train(*RUN[1:], "--ranks", "2", *pipeline, "--out", "pipeline")
        process = self.launch(2, *RUN, *pipeline, "--overlap", "--out", "overlap", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assert_same_training(threads, json.loads(process.stdout)["results"][0])
        server = ["--strategy", "ps-async:2", "--steps", "5"]
        process = self.launch(3, *RUN, *server, "--out", "server", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        again = self.train(*RUN[1:], "--ranks", "3", *server, "--out", "again", "--replay", "server")
        self.assert_same_training(again, json.loads(process.stdout)["results"][0])

    def start_unlike(self, first, second):
        """Two processes of one run, each with options of its own."""
        lines = (shlex.join([PROGRAM, "train", "--transport", "mpi", "--ranks", "2", *own]) for own in (first, second))
        # Not "mpirun -np 1 A : -np 1 B": with a colon, mpirun of Open MPI 5.0.7 ends by signal 11.
        choice = 'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec {}; else exec {}; fi'.format(*lines)
        return subprocess.run(["mpirun", "--oversubscribe", "-np", "2", "sh", "-c", choice], cwd=self.folder,
                              capture_output=True, text=True, timeout=120,
                              env=os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})

    def test_processes_that_were_started_otherwise_are_refused_before_the_first_step(self):
        new = [*RUN[1:], "--steps", "2", "--out", "unlike"]
        other = ["--augmentation", "none", "--synthetic-images", "9", "--lr", "0.5"]
        for options, says in ((other, ['augmentation: "flips" on rank 0, "none" there', "images: ", "learning_rate: "]),
                              (["--batch", "8"], ["batch: 4 on rank 0, 8 there"])):
            process = self.start_unlike(new, [*new, *options])
            self.assertEqual(process.returncode, 2, process.stderr)
            for words in ["rank 1 was started otherwise than rank 0", *says]:
                self.assertIn(words, process.stderr)
            self.assertFalse((self.folder / "unlike").exists())
        self.assertEqual(self.start_unlike(new, [*new, "--no-winograd"]).returncode, 0, "bits are the same everywhere")

    def test_a_process_with_an_older_checkpoint_is_refused(self):
        self.succeed(*RUN, "--ranks", "2", "--steps", "2", "--out", "old")
        shutil.copytree(self.folder / "old", self.folder / "new")
        self.succeed("train", "--resume", "new", "--steps", "3")
        process = self.start_unlike(["--resume", "new", "--steps", "4"], ["--resume", "old", "--steps", "4"])
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("step: 3 on rank 0, 2 there", process.stderr)

    def test_sums_over_processes_are_right(self):
        rows = self.document("bench", "all-reduce", "--transport", "threads,mpi", "--ranks", "2,3", "--bytes",
                             "4KiB..64KiB", "--algorithm", "direct,ring,library", "--repeats", "3",
                             "--plot", "picture.svg")["results"]
        self.assertEqual(len(rows), 2 * 3 * (2 + 3), "threads have no library")
        self.assertTrue(all(row["right"] for row in rows))
        picture = ElementTree.parse(self.folder / "picture.svg")
        marks = [e for e in picture.iter() if e.get("class", "").startswith("mark ")]
        self.assertEqual(len(marks), len(rows))
        lines = [e for e in picture.iter() if e.get("class") == "join"]
        self.assertEqual(len(lines), 2 * 10, "the fitted line of each series, and its sample in the legend")

    def test_the_verdict_has_the_error_and_the_status_of_the_culprit(self):
        process = self.launch(2, *RUN, "--ranks", "3", "--steps", "1", "--out", "a")
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertRegex(process.stderr.splitlines()[-1], r"^triptych launch: --ranks 3, but 2 processes .*code 2\)")
        self.expect_error(2, "launch", "-n", "0", "devices", says="--ranks")

    def start_long(self):
        process = self.start("launch", "-n", "2", *RUN, "--steps", "1000000", "--out", "long", "--transport", "mpi",
                             "--comm-timeout", "2")
        wait_for(lambda: checkpoints(self.folder / "long"))
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

    def test_a_rank_that_is_killed_before_the_group_starts_is_named(self):
        process = self.start("launch", "-n", "2", *RUN, "--steps", "1000000", "--out", "a", "--transport", "mpi")
        wait_for(lambda: len(ranks_in(self.folder)) == 2)
        ranks = ranks_in(self.folder)
        words = pathlib.Path(environment_of(ranks[1])["TRIPTYCH_LAST_WORDS"])
        wait_for(lambda: all((words / f"{rank}.process").exists() for rank in ranks))  # the first lines of main
        os.kill(ranks[1], signal.SIGKILL)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, errors)
        self.assertRegex(errors.splitlines()[-1], r"^triptych launch: rank(s 0,)? 1 ")

    def test_a_stopped_rank_is_named_after_the_deadline(self):
        process = self.start_long()
        os.kill(ranks_in(self.folder)[0], signal.SIGSTOP)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(errors, r"triptych launch: rank 0 stopped answering for [\d.]+ s in all-reduce")

    def start_elastic(self, ranks, *options):
        return self.start("launch", "--elastic", "-n", str(ranks), *RUN, "--steps-per-epoch", "1000000", *options,
                          "--out", "a", "--transport", "mpi", "--comm-timeout", "5")

    def step_of_checkpoint(self):
        saved = checkpoints(self.folder / "a")
        return saved[0]["step"] if saved else -1

    def end_rank(self, rank, ranks, number=signal.SIGKILL, steps=1):
        """Sends the signal to one of so many ranks, when they have trained on so far, and waits for the end of all."""
        while len(running := ranks_in(self.folder)) != ranks:
            time.sleep(0.1)
        before = max(0, self.step_of_checkpoint())
        wait_for(lambda: self.step_of_checkpoint() >= before + steps)
        if steps == 0:
            time.sleep(1)  # they have begun
        os.kill(running[rank], number)
        wait_for(lambda: not any(os.path.exists(f"/proc/{process}") for process in running.values()))

    def test_an_elastic_run_goes_on_with_the_ranks_that_are_left_to_the_same_bits(self):
        how = ["--shards", "4", "--steps", "600"]
        whole = self.document(*RUN, *how, "--steps-per-epoch", "1000000", "--out", "whole")["results"][0]
        process = self.start_elastic(4, *how, "--checkpoint-every", "20", "--json")
        self.end_rank(3, 4)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, r"triptych launch: .*\(exit code 137\); goes on with 2 of 4 ranks from step \d+0\n")
        self.assertEqual(errors.splitlines()[-1], "triptych launch: all 2 ranks are done (exit code 0)")
        self.assert_same_training(whole, json.loads(output)["results"][0])

    def test_an_elastic_run_ends_when_no_rank_is_left(self):
        process = self.start_elastic(3, "--batch", "6", "--steps", "1000000", "--checkpoint-every", "5",
                                     "--order", "ring")
        self.end_rank(0, 3, signal.SIGSTOP)
        self.end_rank(1, 2)
        self.end_rank(0, 1)
        errors = self.ends(process)
        verdicts = [line for line in errors.splitlines() if line.startswith("triptych launch: ")]
        self.assertEqual(len(verdicts), 3, errors)
        self.assertRegex(verdicts[0], r"rank 0 stopped answering for [\d.]+ s .*; goes on with 2 of 3 ranks from step \d+$")
        self.assertRegex(verdicts[1], r"\(exit code 137\); goes on with 1 of 2 ranks from step \d+$")
        self.assertRegex(verdicts[2], r"\(exit code 137\); it does not go on: no rank is left$")
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)

    def test_an_elastic_run_ends_when_it_gets_no_further(self):
        process = self.start_elastic(3, "--batch", "6", "--steps", "1000000", "--order", "ring")
        for ranks in (3, 2):
            self.end_rank(1, ranks, steps=0)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, errors)
        self.assertIn("goes on with 2 of 3 ranks from step 0\n", errors)
        self.assertRegex(errors.splitlines()[-1], "it does not go on: no checkpoint was written since .* step 0; .*every")

    def test_an_elastic_run_that_fails_by_itself_or_is_interrupted_does_not_go_on(self):
        elastic = ["launch", "--elastic", "-n", "2"]
        process = self.run_program(*elastic, *RUN, "--transport", "mpi", "--out", "a", "--batch", "3")
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertRegex(process.stderr, r"a batch of 3 cannot .*does not go on: no rank has died or stalled\n$")
        process = self.start_elastic(2, "--steps", "1000000", "--checkpoint-every", "5")
        wait_for(lambda: self.step_of_checkpoint() > 0)
        process.send_signal(signal.SIGINT)
        errors = self.ends(process)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
        self.assertNotIn("goes on with", errors)
        for arguments, says in [([*RUN, "--transport", "mpi"], "--out FOLDER"), ([*RUN, "--out", "b"], "--transport mpi"),
                                (["devices"], "goes with train"), (["train", "--step", "1"], "--step"),
                                ([*RUN, "--transport", "mpi", "--quiet"], "--out FOLDER")]:
            self.expect_error(2, *elastic, *arguments, says=says)

    def test_signals_to_the_launcher_stop_all_ranks_after_a_checkpoint(self):
        for number in (signal.SIGINT, signal.SIGUSR1):
            process = self.start_long()
            process.send_signal(number)
            errors = self.ends(process)
            self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
            self.assertEqual(errors.count("stopping after this step"), 1, "one rank speaks")
            self.assertIn("go on with: triptych train --resume long", errors)
            shutil.rmtree(self.folder / "long")

    def start_under_an_mpirun_that_hangs(self, *arguments):
        (self.folder / "mpirun").write_text(HANGING)
        (self.folder / "mpirun").chmod(0o755)
        with mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            return self.start("launch", "-n", "1", *RUN, *arguments)

    def test_an_mpirun_that_hangs_after_its_ranks_is_ended(self):
        process = self.start_under_an_mpirun_that_hangs("--steps", "1", "--out", "one")
        self.assertIn("triptych launch: all 1 ranks are done (exit code 0)", self.ends(process))
        self.assertEqual(process.returncode, 0)
        process = self.start_under_an_mpirun_that_hangs("--steps", "1000000", "--out", "long")
        wait_for(lambda: ranks_in(self.folder))
        process.send_signal(signal.SIGTERM)
        self.assertIn("(exit code 130)", self.ends(process))
        self.assertEqual(process.returncode, 128 + signal.SIGINT)


if __name__ == "__main__":
    main()
