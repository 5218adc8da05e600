"""Training on several ranks: the same parameters on all, resumed at another number, told what it costs."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re

from support import FEW, ProgramTest, checkpoints, main

RUN = ["train", *FEW, "--batch", "4", "--threads", "1", "--contract", "bf16-exact", "--order", "shard-tree"]


class RanksTest(ProgramTest):
    def run_with(self, ranks, steps, folder):
        return self.document(*RUN, "--ranks", ranks, "--steps", steps, "--out", folder)["results"][0]

    def test_two_ranks_train_and_say_what_they_send(self):
        process = self.succeed(*RUN, "--ranks", "2", "--steps", "3", "--out", "two")
        self.assertRegex(process.stderr, r"2 ranks of 1 thread, dp over threads, added shard-tree: \d+ collectives and [\d.]+ MiB sent")
        self.assertRegex(process.stderr, r"communication: .* on rank 0, .* of it exposed \(measured\), [\d.]+ % of the training")
        self.assertRegex(process.stderr, r"MiB of memory planned per rank\n")
        self.assertRegex(process.stderr, r"memory: \d+ MiB planned for rank 0; its process took [1-9]\d* MiB at most\n")
        self.assertNotIn("average", process.stderr)
        self.assert_exposed_is_a_part(process)

    def assert_exposed_is_a_part(self, process):
        units = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
        said = re.search(r"communication: ([\d.]+) (\w+) on rank 0, ([\d.]+) (\w+) of it exposed", process.stderr)
        whole, exposed = float(said[1]) * units[said[2]], float(said[3]) * units[said[4]]
        self.assertLessEqual(exposed, whole)
        self.assertGreater(exposed, 0)

    def test_averages_of_states_are_counted(self):
        process = self.succeed(*RUN[:-2], "--ranks", "2", "--steps", "4", "--strategy", "local-sgd:2", "--out", "local")
        said = re.search(r"1 collective and 0.00 MiB sent per rank and step, and ([\d.]+) MiB for an average of the "
                         r"states every 2 steps, ([\d.]+) per step; ", process.stderr)
        average, per_step = float(said[1]), float(said[2])
        self.assertAlmostEqual(average / 2, per_step, delta=0.01)
        gradients = self.succeed(*RUN[:-2], "--ranks", "2", "--steps", "1", "--out", "dp").stderr
        self.assertGreater(average, 1.9 * float(re.search(r"([\d.]+) MiB sent", gradients)[1]))  # and their moments
        self.assert_exposed_is_a_part(process)

    def test_one_rank_is_told_what_changes_nothing(self):
        for says, *options in (False,), (True, "--overlap"), (True, "--comm-timeout", "5"):
            process = self.succeed(*RUN, "--steps", "1", "--out", f"one{len(options)}", *options)
            self.assertEqual("one rank sends nothing" in process.stderr, says, options)

    def test_a_line_names_what_is_not_exact(self):
        line = "a step is not exactly that of one rank with the whole batch: batch normalisation"
        mlp = ["--model", "mlp", "--size", "16", "--synthetic-images", "8", "--validation", "0", *RUN[-6:]]
        for says, name, *options in ((True, "ranks", *RUN[1:], "--ranks", "2"),
                                     (True, "micro", *RUN[1:], "--accumulate", "2"),
                                     (False, "one", *RUN[1:]),
                                     (False, "rows", *mlp, "--batch", "4", "--ranks", "2", "--accumulate", "2")):
            process = self.succeed("train", *options, "--steps", "1", "--out", name)
            self.assertEqual(line in process.stderr, says, name)

    def test_ranks_are_in_the_report_and_losses_near_those_of_one(self):
        one, two = self.run_with(1, 4, "one"), self.run_with(2, 4, "two")
        self.assertEqual((one["ranks"], two["ranks"]), (1, 2))
        for a, b in zip(one["losses"], two["losses"]):
            self.assertAlmostEqual(a, b, delta=0.05)

    def test_a_run_goes_on_with_its_ranks_to_the_same_bits(self):
        whole = self.run_with(2, 4, "whole")
        self.run_with(2, 2, "part")
        rest = self.document("train", "--resume", "part", "--steps", "4")["results"][0]
        self.assert_same_training(whole, rest)
        self.succeed("train", "--resume", "part", "--steps", "5", "--ranks", "4")

    def test_a_batch_that_cannot_be_shared_is_refused(self):
        self.expect_error(2, *RUN, "--ranks", "3", "--steps", "1", "--out", "a",
                          says=["a batch of 4", "3 ranks", "--batch or --ranks"])
        self.expect_error(2, *RUN, "--ranks", "2", "--order", "any", "--steps", "1", says="--order")

    def test_shards_train_to_the_bits_of_replicas_and_resume_as_either(self):
        run = [*RUN[1:-1], "rank-ordered", "--ranks", "2"]
        replicas = self.train(*run, "--steps", "4", "--out", "dp")
        for stage in ("zero1", "zero2", "zero3"):
            shards = self.train(*run, "--steps", "4", "--strategy", stage, "--out", stage)
            self.assert_same_training(replicas, shards)
            self.assertEqual(replicas["epochs"][-1]["dice"], shards["epochs"][-1]["dice"])
        more = ["--steps", "6", "--ranks", "4"]
        self.assert_same_training(self.train("--resume", "dp", *more),
                                  self.train("--resume", "zero3", *more, "--strategy", "zero2"))

    def test_shards_of_the_batch_have_the_same_bits_at_any_number_of_ranks(self):
        run = [*RUN[1:], "--shards", "4", "--steps", "4"]
        one, two, four = (self.train(*run, "--ranks", n, "--out", f"s{n}") for n in (1, 2, 4))
        for other in (two, four):
            self.assert_same_training(one, other)
            self.assertEqual(one["epochs"][-1]["dice"], other["epochs"][-1]["dice"], "running statistics, too")
        self.train(*[*run[:-1], "2"], "--ranks", "1", "--out", "part")
        self.assert_same_training(one, self.train("--resume", "part", "--ranks", "4", "--steps", "4"))

    def test_strategies_and_meshes_agree(self):
        tree = self.train(*RUN[1:], "--ranks", "4", "--steps", "3", "--out", "tree")
        ordered = [*RUN[1:-1], "rank-ordered", "--ranks", "4", "--steps", "3"]
        for name, mesh in (("pipeline:2", "dp=2,pp=2"), ("ddp2d", "node=2,device=2")):
            self.assert_same_training(tree, self.train(*ordered, "--strategy", name, "--mesh", mesh, "--out", name))
        replicas = self.train(*ordered, "--out", "dp")
        for mesh in ("node=4,device=1", "node=1,device=4"):
            self.assert_same_training(replicas, self.train(*ordered, "--strategy", "ddp2d", "--mesh", mesh,
                                                           "--out", mesh))
        for name in ("zero1", "zero3", "tp"):
            self.expect_error(2, *RUN, "--strategy", name, "--ranks", "4", "--steps", "1", "--out", "x",
                              says="choose the order ring or rank-ordered")
        self.assert_same_training(replicas, self.train(*ordered, "--strategy", "ps-sync", "--out", "ps"))
        self.expect_error(2, "train", *ordered, "--mesh", "dp=4", "--out", "x", says="dp=2,pp=2")

    def test_layers_cut_in_parts_learn_the_same_and_resume_whole(self):
        one = self.run_with(1, 4, "one")
        for name, extra in (("tp", ["--ranks", "2"]), ("mesh", ["--ranks", "4", "--mesh", "dp=2,tp=2"])):
            parts = self.train(*RUN[1:-2], *extra, "--strategy", "tp", "--steps", "4", "--out", name)
            self.assertEqual(parts["parameters"], one["parameters"])
            for a, b in zip(one["losses"], parts["losses"]):
                self.assertAlmostEqual(a, b, delta=1e-3 if name == "tp" else 0.05)
        more = ["--steps", "6", "--ranks", "1"]
        self.train("--resume", "mesh", *more, "--strategy", "dp")

    def test_a_pipelines_cut_is_kept_with_the_run(self):
        run = [*RUN[1:-2], "--ranks", "2", "--strategy", "pipeline:2"]
        whole = self.train(*run, "--steps", "3", "--out", "whole")
        self.train(*run, "--steps", "2", "--out", "part")
        cut = checkpoints(self.folder / "part")[0]["run"]["config"]["cut"]
        self.assertEqual(len(cut), 2)
        self.assert_same_training(whole, self.train("--resume", "part", "--steps", "3"))
        self.assertEqual(checkpoints(self.folder / "part")[0]["run"]["config"]["cut"], cut)

    def test_asynchronous_updates_are_recorded_and_played_again(self):
        one = self.run_with(1, 6, "one")
        run = [*RUN[1:-2], "--steps", "6"]
        lone = self.train(*run, "--ranks", "2", "--strategy", "ps-async", "--out", "lone")
        self.assert_same_training(one, lone)  # a single worker has nobody to be late for
        for name in ("ps-async:2", "local-sgd-async:2"):
            run = [*RUN[1:-2], "--ranks", "3", "--strategy", name]
            first = self.train(*run, "--steps", "6", "--out", name)
            again = self.train(*run, "--steps", "6", "--out", f"{name}-again", "--replay", name)
            self.assert_same_training(first, again)
            records = [(self.folder / folder / "updates.csv").read_text() for folder in (name, f"{name}-again")]
            self.assertEqual(*records)
            self.assertEqual(records[0].splitlines()[0], "steps,ranks")
            # It goes on, and the whole record is played again from the start.
            longer = self.train("--resume", name, "--steps", "9")
            self.assert_same_training(longer, self.train(*run, "--steps", "9", "--out", f"{name}-9", "--replay", name))
        self.expect_error(2, "train", *run, "--steps", "6", "--out", "x", "--replay", "one", says="updates.csv")
        os.mkfifo(self.folder / "one/updates.csv")
        self.expect_error(2, "train", *run, "--steps", "6", "--out", "y", "--replay", "one", says="not a regular file")

    def test_local_sgd_goes_on_to_the_same_bits(self):
        run = [*RUN[1:], "--ranks", "2", "--strategy", "local-sgd:3"]
        whole = self.train(*run, "--steps", "5", "--out", "whole")
        self.train(*run, "--epochs", "1", "--out", "part")
        self.assert_same_training(whole, self.train("--resume", "part", "--steps", "5"))

    def test_a_simulated_interconnect_keeps_the_bits_and_tells_its_own_time(self):
        threads = self.run_with(2, 3, "threads")
        process = self.succeed(*RUN, "--ranks", "2", "--steps", "3", "--out", "simulated", "--transport", "simulated",
                               "--interconnect", "switch", "--link-bandwidth", "1e4", "--json")
        self.assert_same_training(threads, json.loads(process.stdout)["results"][0])
        slow = re.search(r"simulated interconnect: .* exposed communication \(([\d.]+) %\)", process.stderr)
        self.assertGreater(float(slow[1]), 50, "ten kilobytes per second are slower than any processor")
        self.expect_error(2, *RUN, "--ranks", "2", "--steps", "1", "--out", "x", "--transport", "simulated",
                          "--interconnect", "torus:3x2", says=["torus:3x2", "2 ranks"])


if __name__ == "__main__":
    main()
