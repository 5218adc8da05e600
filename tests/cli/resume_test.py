"""Runs that stop, break, are killed or resumed: nothing is lost, and the bits are the same."""
# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import os
import pty
import random
import resource
import signal
import time

from support import FEW, PROGRAM, ProgramTest, checkpoints, main, wait_for

# Four steps an epoch, on five generated images.
RUN = ["train", *FEW, "--batch", "2", "--steps-per-epoch", "4", "--seed", "3", "--lr", "0.01"]


class RunTest(ProgramTest):
    def begin(self, *options):
        return self.document(*RUN, *options)["results"][0]

    def resume(self, folder, *options):
        return self.document("train", "--resume", folder, *options)["results"][0]

    def flip_byte(self, path, position):
        content = bytearray(path.read_bytes())
        content[position] ^= 1
        path.write_bytes(content)

    def tensors(self, folder, step):
        return self.folder / folder / f"checkpoint/step-{step:09}.safetensors"


class Resuming(RunTest):
    def test_a_resumed_run_has_the_bits_of_one_that_was_never_interrupted(self):
        for optimizer, contract in itertools.product(("sgd", "adam"), ("f32", "bf16-exact")):
            with self.subTest(f"{optimizer} {contract}"):
                name = f"{optimizer}-{contract}"
                how = ["--optimizer", optimizer, "--contract", contract]
                whole = self.begin(*how, "--epochs", "3", "--out", f"{name}-whole")
                part = self.begin(*how, "--steps", "6", "--out", name)
                self.assertEqual(part["steps"], 6)
                self.assertEqual(part["losses"], whole["losses"][:6])
                rest = self.resume(name, "--epochs", "3")
                self.assert_same_training(whole, rest)
                self.assertEqual(rest["contract"], contract)
                self.assertEqual([e["epoch"] for e in rest["epochs"]], [1, 2, 3])
                for mine, other in zip(whole["epochs"], rest["epochs"]):
                    self.assertEqual((mine["loss"], mine["dice"]), (other["loss"], other["dice"]))

    def test_the_time_counts_all_steps_of_an_epoch_that_was_resumed(self):
        how = ["--backend", "systolic", "--machine", "mmu4", "--contract", "bf16-exact"]  # cycles, the same each time
        whole = self.begin(*how, "--epochs", "2", "--out", "whole")
        self.begin(*how, "--steps", "3", "--out", "part")
        self.resume("part", "--steps", "6")
        rest = self.resume("part", "--epochs", "2")
        self.assertAlmostEqual(rest["time"]["value"] / whole["time"]["value"], 1, places=9)
        for mine, other in zip(rest["epochs"], whole["epochs"]):
            self.assertAlmostEqual(mine["images_per_second"] / other["images_per_second"], 1, places=9)

    def test_a_cosine_goes_on_where_it_was(self):
        how = ["--schedule", "cosine", "--schedule-steps", "12"]
        whole = self.begin(*how, "--epochs", "3", "--out", "whole")
        self.begin(*how, "--steps", "6", "--out", "part")
        self.assert_same_training(whole, self.resume("part", "--epochs", "3"))
        constant = self.begin("--epochs", "3", "--out", "constant")
        self.assertEqual(whole["losses"][0], constant["losses"][0])
        self.assertNotEqual(whole["weights_sha256"], constant["weights_sha256"])
        self.expect_error(2, "train", "--schedule", "step", says="constant, cosine")

    def test_the_number_of_threads_does_not_change_a_bit(self):
        runs = [self.begin("--epochs", "2", "--threads", t, "--out", t) for t in ("1", "2", "3")]
        self.assert_same_training(runs[0], runs[1])
        self.assert_same_training(runs[0], runs[2])

    def test_checkpoints_come_as_often_as_asked(self):
        def steps(folder):
            return [saved["step"] for saved in checkpoints(self.folder / folder)]
        how = ["--steps-per-epoch", "100", "--steps", "8", "--checkpoint-every", "3"]
        whole = self.begin(*how, "--out", "a")
        self.assertEqual(steps("a"), [8, 6])
        self.assert_same_training(whole, self.resume("a", "--previous"))
        self.resume("a", "--steps", "15")
        self.assertEqual(steps("a"), [15, 12], "the run keeps it")
        self.resume("a", "--steps", "17", "--checkpoint-every", "1")
        self.assertEqual(steps("a"), [17, 16])
        # Ranks that are apart have nothing to save until they have met.
        whole = self.begin(*how, "--ranks", "2", "--strategy", "local-sgd:4", "--out", "b")
        self.assertEqual(steps("b"), [8, 4])
        self.assert_same_training(whole, self.resume("b", "--previous"))

    def test_another_seed_gives_other_weights(self):
        self.assertNotEqual(self.begin("--steps", "1", "--out", "a")["weights_sha256"],
                            self.begin("--steps", "1", "--out", "b", "--seed", "4")["weights_sha256"])

    def test_steps_and_epochs_both_limit_a_run(self):
        self.assertEqual(self.begin("--steps", "3", "--epochs", "9", "--out", "a")["steps"], 3)
        self.assertEqual(self.begin("--steps", "30", "--epochs", "1", "--out", "b")["steps"], 4)
        self.assertEqual(self.begin("--steps", "45", "--out", "c")["steps"], 45)

    def test_a_run_that_is_done_says_so_and_keeps_its_report(self):
        before = self.begin("--steps", "6", "--out", "a")
        self.assertIn("all 6 steps are done", self.succeed("train", "--resume", "a").stderr)
        after = self.resume("a")
        self.assert_same_training(before, after)
        self.assertEqual(after["epochs"][-1]["dice"], before["epochs"][-1]["dice"])

    def test_options_that_would_make_another_run_are_refused(self):
        self.begin("--steps", "1", "--out", "a")
        for option, value in [("--batch", "3"), ("--lr", "1"), ("--seed", "4"), ("--base", "4"),
                              ("--optimizer", "sgd"), ("--out", "b"), ("--augmentation", "all")]:
            self.expect_error(2, "train", "--resume", "a", option, value, says=[option, "leave it out"])
        # The options that apply are decided by the run's own transport and order where none is given.
        self.expect_error(2, "train", "--resume", "a", "--link-latency", "1", says="--transport simulated")
        self.expect_error(2, "train", "--resume", "a", "--shards", "4", says="--order shard-tree")
        self.expect_error(2, "train", "--resume", "a", "--contract", "bf16", says="--contract cannot change from f32 to bf16")

    def test_what_says_nothing_of_the_run_is_taken(self):
        self.begin("--steps", "1", "--out", "a")
        quiet = self.succeed("train", "--resume", "a", "--steps", "2", "--quiet", "--color", "never", "--overwrite")
        self.assertNotIn("epoch", quiet.stderr)
        self.assertIn("nodes of a step", self.succeed("train", "--resume", "a", "--steps", "3", "-v").stderr)

    def test_a_run_that_is_longer_than_asked_keeps_its_files(self):
        self.succeed(*RUN, "--epochs", "3", "--out", "a")
        before = {path: path.read_bytes() for path in (self.folder / "a").rglob("*") if path.is_file()}
        errors = self.succeed("train", "--resume", "a", "--epochs", "2").stderr
        self.assertRegex(errors, r"nothing is left to do: the run has \d+ steps, more than the \d+ asked for")
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "a").rglob("*") if path.is_file()}, before)

    def test_a_cosine_that_has_ended_does_not_go_on(self):
        how = [*RUN, "--schedule", "cosine"]
        self.succeed(*how, "--steps", "6", "--out", "a")
        before = {path: path.read_bytes() for path in (self.folder / "a").rglob("*") if path.is_file()}
        self.expect_error(2, "train", "--resume", "a", "--steps", "12",
                          says=["0 after step 6", "12 steps in all", "--init a"])
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        self.assertIn("all 6 steps are done", self.succeed("train", "--resume", "a").stderr)
        self.expect_error(2, *how, "--schedule-steps", "3", "--steps", "6", "--out", "b",
                          says=["0 after step 3", "--schedule-steps 6"])
        self.assertFalse((self.folder / "b/checkpoint").exists())

    def test_a_folder_that_holds_a_run_is_not_overwritten(self):
        before = self.begin("--steps", "1", "--out", "a")
        self.expect_error(2, *RUN, "--steps", "2", "--out", "a",
                  says=["holds a run already", "--resume a", "--out"])
        self.assert_same_training(before, self.resume("a"))

    def test_a_run_goes_on_from_another_folder(self):
        self.succeed("synthesize", "--out", "data", "--images", "4", "--size", "16")
        self.succeed(*RUN[:1], *FEW[:-2], "--data", "data", "--steps", "1", "--out", "a")
        (self.folder / "elsewhere").mkdir()
        self.folder /= "elsewhere"
        self.succeed("train", "--resume", "../a", "--steps", "2")

    def test_changed_training_images_are_noticed(self):
        self.succeed("synthesize", "--out", "data", "--images", "4", "--size", "16")
        self.succeed(*RUN[:1], *FEW[:-2], "--data", "data", "--steps", "1", "--out", "a")
        (self.folder / "data").rename(self.folder / "moved")
        self.expect_error(2, "train", "--resume", "a", "--epochs", "2", says=["data", "is not a folder"])
        self.succeed("train", "--resume", "a", "--epochs", "1", "--data", "moved")
        self.succeed("synthesize", "--out", "data", "--images", "4", "--size", "16", "--seed", "5")
        self.expect_error(2, "train", "--resume", "a", "--epochs", "2", says="not those of the run")


class Interruption(RunTest):
    LONG = ["--steps", "3000", "--steps-per-epoch", "500"]

    def stopped(self, number, *command):
        """Runs `command` until it has finished an epoch, sends it the signal."""
        process = self.start(*command)
        for line in process.stderr:
            if "epoch   1" in line:
                break
        process.send_signal(number)
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 130, errors)
        return errors

    def test_an_interrupted_run_says_how_to_go_on_and_goes_on_to_the_same_bits(self):
        whole = self.begin(*self.LONG, "--out", "whole")
        for number, name in ((signal.SIGINT, "int"), (signal.SIGTERM, "term"), (signal.SIGHUP, "hup"),
                             (signal.SIGUSR1, "usr1")):
            errors = self.stopped(number, *RUN, *self.LONG, "--out", name)
            self.assertIn("stopping after this step", errors)
            self.assertRegex(errors, rf"stopped after step \d+; go on with: triptych train "
                                     rf"--resume {name}\n")
            self.assertTrue((self.folder / name / "report.json").exists())
            rest = self.resume(name)
            self.assertTrue(rest["finished"])
            self.assert_same_training(whole, rest)

    def test_a_terminal_that_closes_leaves_a_checkpoint_with_the_same_bits(self):
        whole = self.begin(*self.LONG, "--out", "whole")
        try:
            process, terminal = pty.fork()
        except OSError as error:
            self.skipTest(f"no terminal to be had here: {error}")
        if process == 0:
            os.chdir(self.folder)
            os.execv(PROGRAM, [PROGRAM, *map(str, RUN), *self.LONG, "--out", "a"])
        text = b""
        while b"epoch   1" not in text:
            text += os.read(terminal, 4096)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 130)
        self.assert_same_training(whole, self.resume("a"))

    def test_two_programs_do_not_train_into_one_folder(self):
        first = self.start(*RUN, "--steps", "1000000", "--out", "a")
        wait_for(lambda: checkpoints(self.folder / "a"))
        self.expect_error(2, *RUN, "--out", "a", says="holds a run already")
        self.expect_error(2, "train", "--resume", "a", says="in use by another command")
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=120)
        self.assertEqual(first.returncode, 130)
        self.succeed("train", "--resume", "a", "--steps", "1")

    def test_kills_at_any_moment_leave_a_checkpoint_that_goes_on_to_the_same_bits(self):
        start = time.monotonic()
        self.begin("--steps", "4", "--out", "short")
        longest = 3 * (time.monotonic() - start) + 0.1
        delays = random.Random(1)
        run = self.folder / "a"
        resumed = 0
        for _ in range(60):
            if resumed == 10:
                break
            goes_on = bool(checkpoints(run))
            resumed += goes_on
            process = self.start(*(["train", "--resume", "a"] if goes_on else
                                   [*RUN, "--steps", "1000000", "--out", "a"]))
            time.sleep(delays.uniform(0, longest))
            process.kill()
            output, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, -signal.SIGKILL, output + errors)
            if goes_on:
                self.succeed("run", "a", "--input", "short/masks", "--out", "m")
        self.assertEqual(resumed, 10)
        steps = checkpoints(run)[0]["step"] + 6
        whole = self.begin("--steps", steps, "--out", "whole")
        self.assert_same_training(whole, self.resume("a", "--steps", steps))
        # A save that completes clears up after those that were killed.
        named = [saved["file"] for saved in checkpoints(run)]
        self.assertEqual(len(named), 2)
        kept = [p.name for p in (run / "checkpoint").iterdir() if p.suffix != ".json"]
        self.assertEqual(sorted(kept), sorted(named))


class Damage(RunTest):
    def test_a_folder_without_a_checkpoint_cannot_be_resumed(self):
        (self.folder / "empty").mkdir()
        for name in ("nowhere", "empty"):
            self.expect_error(2, "train", "--resume", name, says=[name, "no checkpoint", "triptych train"])

    def test_a_damaged_checkpoint_gives_way_loudly_to_the_one_before_it(self):
        whole = self.begin("--epochs", "3", "--out", "whole")
        for what, damage in (("SHA-256", lambda: self.flip_byte(newest, newest.stat().st_size // 2)),
                             ("JSON", lambda: (newest.parent / "checkpoint-000003.json").write_text("{"))):
            with self.subTest(what):
                self.begin("--epochs", "2", "--out", what)
                newest = self.tensors(what, 8)
                damage()
                result = self.succeed("run", what, "--input", "whole/masks", "--out", f"m{what}")
                self.assertRegex(result.stderr, rf"(?s)NOTE: the newest checkpoint is damaged: .*{what}.* step 4")
                result = self.succeed("train", "--resume", what, "--epochs", "3", "--json")
                self.assertIn("NOTE: the newest checkpoint is damaged", result.stderr)
                self.assert_same_training(whole, json.loads(result.stdout)["results"][0])
                self.assert_same_training(whole, self.resume(what))

    def test_without_a_good_checkpoint_both_are_named(self):
        self.begin("--epochs", "2", "--out", "a")
        for step in (4, 8):
            self.flip_byte(self.tensors("a", step), 300)
        self.expect_error(2, "train", "--resume", "a", says=["SHA-256", "step-000000008", "step-000000004"])
        self.tensors("a", 8).unlink()
        self.expect_error(2, "train", "--resume", "a", says=self.tensors("a", 8).name)

    def test_a_full_disk_stops_the_run_and_the_last_checkpoint_goes_on(self):
        whole = self.begin("--steps", "40", "--steps-per-epoch", "20", "--out", "whole")
        self.begin("--steps", "2", "--steps-per-epoch", "20", "--out", "a")
        largest = self.tensors("a", 2).stat().st_size + 8

        def limit_files():  # like a full disk, writing beyond it fails
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        self.expect_error(2, "train", "--resume", "a", "--steps", "40", preexec_fn=limit_files,
                  restore_signals=False,
                  says=[self.tensors("a", 20).name, "cannot write", "--resume a"])
        kept = {p.name for p in (self.folder / "a/checkpoint").iterdir() if p.suffix != ".json"}
        self.assertEqual(kept, {self.tensors("a", 0).name, self.tensors("a", 2).name})
        self.assert_same_training(whole, self.resume("a", "--steps", "40"))

    def test_an_output_folder_that_cannot_be_made_fails_before_the_work(self):
        (self.folder / "file").touch()
        for command in ([*RUN, "--steps", "1"], ["synthesize", "--images", "1"]):
            self.expect_error(2, *command, "--out", "file/below", says=["file", "Not a directory"])
        self.expect_error(2, *RUN, "--steps", "1", "--out", "file", says=["file", "Not a directory"])

    def test_a_loss_that_is_not_finite_names_its_node_and_keeps_the_checkpoint(self):
        self.expect_error(5, *RUN[:-2], "--lr", "1000", "--weight-decay", "1", "--optimizer", "sgd",
                  "--steps-per-epoch", "100", "--steps", "100", "--out", "a",
                  says=["not finite", 'from node "', "checkpoint of step 0", "--lr"])
        self.expect_error(5, "train", "--resume", "a", says="not finite")
        self.succeed("synthesize", "--out", "data", "--images", "1", "--size", "16")
        self.succeed("run", "a", "--input", "data/images", "--out", "m")


if __name__ == "__main__":
    main()
