"""The GPU and its emulation from outside: what is there, what is not and why, counters, faults."""
# SPDX-License-Identifier: Apache-2.0
from support import FEW, TINY, ProgramTest, main

LESSONS = {"lesson-missing-barrier": "race", "lesson-divergent-barrier": "divergent barrier",
           "lesson-out-of-bounds": "out of bounds",
           "lesson-uninitialised": "uninitialised memory",
           "lesson-missing-lane": "missing lane"}


class GpuTest(ProgramTest):
    def backend(self, name):
        return next(entry for entry in self.document("devices")["results"]
                    if entry["backend"] == name)


class Devices(GpuTest):
    def test_both_are_listed_with_their_properties_or_the_reason(self):
        emulated = self.backend("cuda-emulated")
        self.assertTrue(emulated["available"])
        self.assertIn("threads", emulated["devices"][0]["properties"])
        gpu = self.backend("cuda")
        self.assertEqual(gpu["available"], bool(gpu["devices"]))
        text, doctor = (" ".join(self.succeed(name).stdout.split()) for name in ("devices", "doctor"))
        if not gpu["available"]:
            self.assertIn(f"cuda: not available: {gpu['reason']}", text)
            self.assertIn(gpu["reason"], doctor)

    def test_without_a_gpu_asking_for_it_is_an_error_with_the_reason(self):
        gpu = self.backend("cuda")
        if gpu["available"]:
            self.skipTest("there is a GPU")
        for command in (["train", *FEW, "--out", "a"], ["explain", *TINY], ["bench", *TINY],
                        ["bench", "matmul"], ["trace", *TINY], ["train", *FEW, "--fallback", "cpu"]):
            self.expect_error(3, *command, "--backend", "cuda", says=["cuda: ", gpu["reason"]])
        self.train(*FEW, "--steps", "1", "--out", "a")
        self.succeed("synthesize", "--out", "data", "--images", "2", "--size", "16")
        self.expect_error(3, "run", "a", "--input", "data/images", "--out", "b",
                          "--backend", "cuda", says=gpu["reason"])

    def test_ranks_over_nccl_need_a_build_with_it_and_a_gpu_each(self):
        gpu = self.backend("cuda")
        if gpu["available"]:
            self.skipTest("there is a GPU")
        built = any(library["name"] == "NCCL" and library["version"] for library in gpu.get("libraries", []))
        self.expect_error(3 if built else 4, "bench", "all-reduce", "--transport", "nccl",
                          says="nccl: " if built else "this build has no NCCL; install")
        self.expect_error(2, "train", *FEW, "--ranks", "2", "--transport", "nccl", says="--backend cuda")


class Emulated(GpuTest):
    def test_trains_to_the_same_bits_and_runs(self):
        options = [*FEW, "--steps", "3", "--contract", "bf16-exact"]
        one = self.train(*options, "--out", "a")
        other = self.train(*options, "--out", "b", "--backend", "cuda-emulated")
        self.assert_same_training(one, other)
        self.succeed("synthesize", "--out", "data", "--images", "2", "--size", "16")
        for out, backend in (("c", "cpu"), ("d", "cuda-emulated")):
            self.succeed("run", "a", "--input", "data/images", "--out", out,
                         "--backend", backend)
        for mask in (self.folder / "c").iterdir():
            self.assertEqual(mask.read_bytes(), (self.folder / "d" / mask.name).read_bytes())

    def test_stands_for_no_machine_so_that_all_leaves_it_out(self):
        results = self.document("train", *FEW, "--steps", "1", "--backends", "all",
                                "--contract", "bf16-exact", "--out", "a")["results"]
        backends = [result["backend"] for result in results]
        self.assertIn("cpu", backends)
        self.assertNotIn("cuda-emulated", backends)

    def test_named_beside_a_simulated_machine_it_does_not_take_that_ones_options(self):
        result = self.succeed("train", *FEW, "--steps", "1", "--contract", "bf16-exact", "--out", "a",
                              "--backends", "cpu,cuda-emulated,systolic", "--machine", "mmu4")
        self.assertIn("measured, of the emulation", result.stdout)
        self.expect_error(2, "explain", *TINY, "--backend", "cuda-emulated", "--machine", "mmu4",
                          says='no option "machine"')

    def test_explain_names_its_kernels(self):
        text = self.succeed("explain", *TINY, "--backend", "cuda-emulated").stdout
        self.assertIn("best kernel", text)


class Counters(GpuTest):
    def counters(self, kernel, *options):
        rows = self.document("bench", "matmul", "--backend", "cuda-emulated", "--kernel", kernel,
                             "--sizes", "64", *options)["results"]
        self.assertEqual([row["kernel"] for row in rows], kernel.split(","))
        return [row["counters"][0] for row in rows]

    def test_the_ladder_has_the_counts_of_its_closed_forms(self):
        naive, tiled, transposed, padded = self.counters("naive,tiled,tiled-transposed,tiled-padded",
                                                         "--source")
        lines = [line for line in naive["lines"] if line["lanes"] == 64 ** 3]
        self.assertEqual(sorted(line["sectors"] / line["requests"] for line in lines), [1, 32])
        for counters, wavefronts in ((tiled, 1), (transposed, 32), (padded, 1)):
            loads = [line["wavefronts"] / line["requests"] for line in counters["lines"]
                     if line["space"] == "shared" and line["access"] == "load"]
            self.assertEqual(max(loads), wavefronts)
            self.assertEqual(counters["barriers"], 4 * 2 * 2)
            self.assertEqual(counters["shared_bytes"] // 1024, 8)

    def test_the_table_has_a_line_per_kernel_and_size_and_no_time(self):
        text = self.succeed("bench", "matmul", "--backend", "cuda-emulated", "--kernel", "all",
                            "--sizes", "32,64").stdout
        self.assertIn("counted in one run, no times", text)
        for kernel in ("naive", "coalesced", "tiled", "tiled-padded", "register-tiled"):
            self.assertRegex(text, rf"matmul/32x32x32 +{kernel} ")
            self.assertRegex(text, rf"matmul/64x64x64 +{kernel} ")
        self.assertNotIn(" ms", text)

    def test_occupancy_is_of_the_instance_that_ran_and_says_what_limits_it(self):
        tiled, register_tiled = (
            {entry["compute_capability"]: entry for entry in counters["occupancy"]}
            for counters in self.counters("tiled,register-tiled"))
        self.assertEqual(list(tiled), ["8.0", "9.0"])
        for entry in (*tiled.values(), *register_tiled.values()):
            self.assertEqual(entry["warps"] % entry["blocks"], 0)
            self.assertLessEqual(entry["warps"], entry["max_warps"])
            self.assertEqual(entry["kind"], "modelled")
        # 32 warps a block: two of them are all that fit, if a thread has at most 32 registers.
        self.assertEqual(tiled["9.0"]["warps"], 64 if tiled["9.0"]["registers"] <= 32 else 32)
        self.assertIn("registers", register_tiled["9.0"]["limits"])

    def test_the_table_tells_occupancy_where_registers_are_known(self):
        emulated = ["--backend", "cuda-emulated"]
        text = self.succeed("bench", "matmul", *emulated, "--kernel", "hopper", "--contract", "bf16",
                            "--sizes", "128").stdout
        self.assertRegex(text, r"hopper +\d.* 384 +192\.1 KiB +\d+ +12/64 +registers, shared memory")
        self.assertIn("compute capability 9.0 holds (modelled)", text)
        text = self.succeed("bench", *TINY, *emulated).stdout
        self.assertRegex(text, r" conv +\d.* \d+/64 ")
        self.assertRegex(text, r" max_pool_groups +\d.* - +- +- *\n")

    def test_source_shows_the_lines(self):
        text = self.succeed("bench", "matmul", "--backend", "cuda-emulated", "--kernel", "naive",
                            "--sizes", "32", "--source").stdout
        self.assertRegex(text, r"matmul\.cu:\d+ +global load +\d+ +32\.00 +12\.5 +32\.00 +\S")

    def test_models_and_convolutions_are_counted_by_kernel(self):
        rows = self.document("bench", *TINY, "--backend", "cuda-emulated", "--mode", "train")["results"]
        self.assertGreater(len(rows[0]["counters"]), 5)
        self.succeed("bench", "conv", "--shape", "2,3,8,8", "--backend", "cuda-emulated")

    def test_attention_without_its_scores_in_memory_moves_less_than_with_them(self):
        rows = self.document("bench", "attention", "--backend", "cuda-emulated", "--kernel",
                             "materialised,flash", "--lengths", "128,256")["results"]
        moved = {}
        for row in rows:
            sectors = sum(counters["global"][access]["sectors"] for counters in row["counters"]
                          for access in ("load", "store"))
            moved[row["name"], row["kernel"]] = sectors
        for name in ("attention/1x128x64", "attention/1x256x64"):
            self.assertLess(2 * moved[name, "flash"], moved[name, "materialised"])
        text = self.succeed("bench", "attention", "--backend", "cuda-emulated", "--kernel", "all",
                            "--lengths", "64", "--causal").stdout
        self.assertRegex(text, r"attention/1x64x64/causal, materialised +.*softmax.* 4 ")
        self.assertRegex(text, r"attention/1x64x64/causal +flash_attention +1 ")

    def test_a_kernel_of_a_composite_is_refused_rather_than_ignored(self):
        self.expect_error(4, "bench", "attention", "--lengths", "8", "--kernel", "flashing",
                          says=['no kernel "flashing" for Attention'])
        self.expect_error(4, "bench", "attention", "--lengths", "8", "--kernel", "flash",
                          "--contract", "bf16-exact", says=["sums keys block by block"])
        self.expect_error(4, "bench", "attention", "--backend", "cuda-emulated", "--lengths", "8",
                          "--kernel", "flash", "--contract", "bf16-exact", says=["sums keys tile by tile"])

    def test_what_cannot_be_shown_is_refused(self):
        emulated = ["--backend", "cuda-emulated"]
        self.expect_error(2, "bench", *TINY, *emulated, "--layers", says="--layers: does not apply with --backend cuda-emulated")
        self.expect_error(2, "bench", "matmul", "--source", says="applies only with --backend cuda-emulated")
        self.expect_error(4, "bench", "matmul", *emulated, "--sizes", "8", "--kernel", "fast",
                          says=['no kernel "fast"', "naive"])

    def test_kernels_of_the_cpu_stand_beside_each_other_with_times(self):
        text = self.succeed("bench", "matmul", "--sizes", "16", "--kernel", "all", "--repeats", "1").stdout
        self.assertIn("% of best", text)
        self.assertIn("100.0", text)
        for kernel in ("naive", "blocked", "vectorised", "threaded", "eigen", "gemm"):
            self.assertRegex(text, rf"16x16x16 +{kernel} ")
        for column in ("% of peak", "L1 (modelled)", "memory (modelled)"):
            self.assertIn(column, text)

    def test_best_is_the_kernel_that_the_plan_takes(self):
        arguments = ["bench", "matmul", "--sizes", "16", "--kernel", "naive,best", "--repeats", "1"]
        naive, best = self.document(*arguments)["results"]
        self.assertEqual((naive["kernel"], best["kernel"]), ("naive", "gemm"))
        self.assertEqual([part["level"] for part in naive["traffic"]], ["L1", "L2", "memory"])
        self.assertLess(best["traffic"][0]["bytes"], naive["traffic"][0]["bytes"])
        self.assertEqual(best["peak"]["kind"], "measured")
        counted = self.document(*arguments[:-2], "--backend", "cuda-emulated")["results"]
        self.assertEqual(counted[1]["kernel"], "register-tiled")
        self.assertNotIn("peak", counted[0])

    def test_steps_of_the_ladder_say_what_they_refuse(self):
        self.expect_error(4, "bench", "matmul", "--sizes", "16", "--kernel", "eigen", "--contract",
                          "bf16-exact", says=['kernel "eigen"', "f32"])
        text = self.succeed("bench", "matmul", "--sizes", "16", "--kernel", "all", "--contract", "bf16-exact",
                            "--repeats", "1").stdout
        self.assertIn("threaded", text)
        self.assertNotIn("eigen", text)


class Check(GpuTest):
    def test_the_ladder_has_no_faults(self):
        text = self.succeed("check", "--kernel", "naive,tiled-padded").stdout
        self.assertRegex(text, r"MatMul naive: \d+ cases.*: nothing wrong")

    def test_each_lessons_mistake_is_found_at_its_line(self):
        for kernel, kind in LESSONS.items():
            with self.subTest(kernel):
                result = self.run_program("check", "--kernel", kernel)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stdout, rf"{kind} at backends/cuda/lessons/matmul_mistakes\.cu:"
                                 rf"\d+, block \(\d+, \d+, 0\), thread \(\d+, \d+, 0\) of {kernel}")

    def test_without_names_the_lessons_stay_out(self):
        result = self.succeed("check", "--op", "Softmax")
        self.assertIn("Softmax", result.stdout)
        self.assertNotIn("lesson", self.succeed("check", "--op", "MatMul").stdout)

    def test_the_results_of_another_backend_are_checked(self):
        text = self.succeed("check", "--backend", "cpu", "--op", "Softmax").stdout
        self.assertRegex(text, r"Softmax \w+: \d+ cases.*: nothing wrong")

    def test_unknown_names_are_answered_with_known_ones(self):
        self.expect_error(2, "check", "--kernel", "nave", says='did you mean "naive"?')
        self.expect_error(2, "check", "--op", "Softmx", says='did you mean "Softmax"?')
        self.expect_error(2, "check", "--backend", "cqu", says='did you mean "cpu"?')
        self.expect_error(4, "check", "--kernel", "lesson-missing-lane", "--contract", "bf16",
                          says=["no case of the suite", "under f32"])


if __name__ == "__main__":
    main()
