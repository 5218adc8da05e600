"""Several machines beside each other: `bench conv --backends` and `bench bandwidth`."""
# SPDX-License-Identifier: Apache-2.0
from support import ProgramTest, main

CONV = ["bench", "conv", "--shape", "4,4,8,8", "--repeats", "3"]


def seconds(time):
    return time["value"]


def break_even(batches, speedups):
    """The smallest batch from which on every speedup is above 1."""
    found = None
    for batch, speedup in reversed(list(zip(batches, speedups))):
        if speedup <= 1:
            break
        found = batch
    return found


class BatchSweep(ProgramTest):
    def sweep(self, *arguments):
        return self.document(*CONV, *arguments)["results"]

    def test_speedups_and_break_even_are_those_of_the_times(self):
        cpu, array = self.sweep("--backends", "cpu,systolic", "--machine", "mmu4", "--batch", "4,1,2")
        self.assertIsNone(cpu["break_even"])
        self.assertEqual([p["batch"] for p in array["points"]], [1, 2, 4])
        for field, of in (("speedup", "time"), ("speedup_with_transfers", "with_transfers")):
            for a, b in zip(cpu["points"], array["points"]):
                self.assertIsNone(a[field])
                self.assertAlmostEqual(b[field]["value"], seconds(a[of]) / seconds(b[of]))
                self.assertEqual(b[field]["of"], of)
                self.assertEqual(b[field]["kinds"], [a[of]["kind"], b[of]["kind"]])
        batches = [p["batch"] for p in array["points"]]
        for field, of in (("without_transfers", "speedup"),
                          ("with_transfers", "speedup_with_transfers")):
            expected = break_even(batches, [p[of]["value"] for p in array["points"]])
            self.assertEqual(array["break_even"][field], expected)
        self.assertEqual(array["break_even"]["largest_batch"], 4)

    def test_transfers_are_none_on_the_host_and_modelled_to_the_array(self):
        cpu, array = self.sweep("--backends", "cpu,systolic", "--link", "0.5,1e9")
        self.assertIsNone(cpu["points"][0]["transfers"])
        self.assertEqual(cpu["points"][0]["with_transfers"], cpu["points"][0]["time"])
        point = array["points"][0]
        copies = point["transfers"]
        # 4 channels of 64 positions: 16-bit in, beside the weights; 32-bit out.
        self.assertGreaterEqual(copies["bytes_in"], 2 * 4 * 64)
        self.assertEqual(copies["bytes_out"], 4 * 4 * 64)
        for way in ("in", "out"):
            expected = 0.5 + copies["bytes_" + way] / 1e9
            self.assertAlmostEqual(seconds(copies[way]), expected)
            self.assertEqual(copies[way]["kind"], "modelled")
        self.assertEqual(point["time"]["kind"], "simulated")
        together = seconds(point["time"]) + seconds(copies["in"]) + seconds(copies["out"])
        self.assertAlmostEqual(seconds(point["with_transfers"]), together)
        self.assertEqual(point["with_transfers"]["kind"], "modelled")

    def test_simulated_times_are_those_of_bench_itself(self):
        array = self.sweep("--backends", "cpu,systolic", "--batch", "2")[1]["points"][0]
        alone = self.document(*CONV, "--backend", "systolic", "--contract", "bf16", "--batch",
                              "2")["results"][0]
        self.assertEqual(array["time"], alone["median"])
        self.assertEqual(array["samples"], 1)
        self.assertEqual(array["simulated_by"], "twin")

    def test_published_machines_are_modelled_beside_them(self):
        cpu, gpu = self.sweep("--backends", "cpu", "--device", "h200", "--batch", "1,2")
        self.assertEqual((cpu["backend"], gpu["backend"]), ("cpu", "h200"))
        for point in gpu["points"]:
            self.assertEqual(point["time"]["kind"], "modelled")
            self.assertEqual(point["speedup"]["kinds"], ["measured", "modelled"])
            self.assertEqual(point["transfers"]["bytes_in"], point["batch"] * 4 * 4 * 64)
        self.expect_error(2, *CONV, "--backends", "cpu", "--device", "abacus", says="abacus")

    def test_planned_memory_stands_beside_the_peak_of_the_process(self):
        command = ["bench", "conv", "--shape", "8,8,64,64", "--batch", "1,4", "--repeats", "1", "--threads", "1"]
        header, _, *rows = self.succeed(*command).stdout.splitlines()[1:5]
        self.assertRegex(header, r"plan +process$")
        for row in rows:
            self.assertRegex(row, r"[KM]iB +[1-9]\d* MiB$")
        results = self.document(*command)["results"]
        for row in results:
            self.assertGreater(row["peak_memory_mib"], row["plan_memory_mib"])
        self.assertLessEqual(results[0]["peak_memory_mib"], results[1]["peak_memory_mib"])

    def test_a_layer_of_a_model_is_its_shape(self):
        row = self.document("bench", "conv", "--layer", "unet-s:down2.conv0", "--repeats", "1")
        self.assertEqual(row["results"][0]["name"], "conv/8>16@32x32k3")
        swept = self.document("bench", "conv", "--layer", "unet-s:head", "--repeats", "1",
                              "--backends", "cpu")["results"][0]
        self.assertEqual(swept["problem"], "conv/8>1@64x64k1")
        self.assertEqual(swept["layer"], "unet-s:head")
        self.assertEqual(swept["flops_per_image"], 2 * 8 * 64 * 64)

    def test_even_windows_keep_the_size(self):
        for data_pass in ("forward", "data", "weights"):
            row, = self.document("bench", "conv", "--shape", "2,3,8,8", "--window", "2", "--pass", data_pass,
                                 "--repeats", "1")["results"]
            flops = row["gflops"] * 1e9 * row["median"]["value"]
            self.assertAlmostEqual(flops, 2 * 4 * 2 * 3 * 64, places=3, msg=data_pass)

    def test_ranges_go_up(self):
        for arguments in (["matmul", "--sizes", "64..32"], ["--model", "unet-s", "--threads", "4..2"],
                          ["strategies", "--ranks", "4..2"]):
            self.expect_error(2, "bench", *arguments, says="ends below its begin")

    def test_a_wrong_layer_is_answered_with_those_there_are(self):
        for layer in ("unet-s:down9.conv0", "unet-s", "unet-s:up1.transpose"):
            self.expect_error(2, "bench", "conv", "--layer", layer,
                              says=["--layer", "down1.conv0", "bottom.conv1"])
        self.expect_error(2, "bench", "conv", "--layer", "unet-x:down1.conv0",
                          says=['"unet-x"', "unet-s"])
        self.expect_error(2, "bench", "conv", "--layer", "unet-s:down1.conv0", "--window", "1")

    def test_machines_that_have_no_times_say_why(self):
        cpu, emulated = self.sweep("--backends", "cpu,cuda-emulated")
        self.assertTrue(cpu["available"])
        self.assertFalse(emulated["available"])
        self.assertIn("emulation", emulated["reason"])
        self.assertNotIn("points", emulated)
        self.expect_error(3, *CONV, "--backends", "cuda-emulated,cpu", says="must begin with")
        self.expect_error(2, *CONV, "--backends", "cpu,abacus", says="abacus")
        self.expect_error(2, *CONV, "--backends", "cpu", "--backend", "cpu")
        for link in ("nowhere", "1e-5,", "x,1", "1,0"):
            self.expect_error(2, *CONV, "--backends", "cpu,systolic", "--link", link)

    def test_what_is_too_large_for_the_rtl_is_the_twins(self):
        small = ["--shape", "2,2,8,8", "--machine", "mmu4", "--simulate", "rtl", "--backends",
                 "cpu,systolic", "--repeats", "1"]
        result = self.run_program("bench", "conv", *small, "--json")
        if "no RTL" in result.stderr or result.returncode == 3:
            self.skipTest(result.stderr)
        large = ["--shape", "64,64,128,128", "--machine", "mmu16", "--simulate", "rtl",
                 "--backends", "cpu,systolic", "--repeats", "1", "--batch", "2"]
        point = self.document("bench", "conv", *large)["results"][1]["points"][0]
        self.assertEqual(point["simulated_by"], "twin")
        text = self.succeed("bench", "conv", *large).stdout
        self.assertIn("batch 2 is too large for the RTL", text)

    def test_the_table_says_where_it_breaks_even(self):
        text = self.succeed(*CONV, "--backends", "cpu,systolic,cuda-emulated", "--link", "1,1").stdout
        self.assertIn("with transfers never up to batch 1", text)
        self.assertIn("cuda-emulated: not here", text)


class Bandwidth(ProgramTest):
    def bandwidths(self, *arguments):
        results = self.document("bench", "bandwidth", *arguments)["results"]
        return {result["machine"]: result for result in results}

    def best(self, level):
        return max(level[f]["value"] for f in ("copy", "triad") if level[f] is not None)

    def test_ratios_are_those_of_the_levels(self):
        machines = self.bandwidths("--backends", "cpu,systolic", "--device", "h200,a100")
        self.assertEqual(set(machines), {"cpu", "systolic:mmu16", "h200", "a100", "survey"})
        for name, machine in machines.items():
            if name == "survey":
                continue
            memory = self.best(machine["levels"][-1])
            for level in machine["levels"]:
                if level["over_memory"] is None:
                    self.assertIsNone(level["copy"])
                    continue
                self.assertAlmostEqual(level["over_memory"]["value"], self.best(level) / memory)
            self.assertEqual(machine["on_chip_over_off_chip"], machine["levels"][0]["over_memory"])

    def test_each_machines_numbers_are_of_its_kind(self):
        machines = self.bandwidths("--backends", "cpu,systolic", "--device", "a100")
        self.assertEqual(machines["cpu"]["levels"][-1]["copy"]["kind"], "measured")
        self.assertEqual({level["copy"]["kind"] for level in machines["systolic:mmu16"]["levels"]},
                         {"simulated"})
        for figure in machines["survey"]["hbm"]:
            self.assertEqual(figure["kind"], "recorded")
        self.assertEqual(machines["survey"]["sram"]["value"], 19e12)

    def test_the_arrays_copies_do_not_beat_its_description(self):
        for machine, rows, bytes_per_element in (("mmu16", 16, 2), ("tpu-v1", 256, 1)):
            levels = self.bandwidths("--backends", "systolic", "--machine", machine)[
                "systolic:" + machine]["levels"]
            clock, row = 700e6, rows * bytes_per_element
            copy, triad = (levels[0][f]["value"] for f in ("copy", "triad"))
            # A row of the buffer and a row of 32-bit sums each cycle; triads read the sums as well.
            self.assertAlmostEqual(copy / (clock * (row + 4 * rows)), 1, places=2)
            self.assertAlmostEqual(triad / (clock * (row + 8 * rows)), 1, places=2)
            for field in ("copy", "triad"):
                self.assertLessEqual(levels[1][field]["value"], 34e9 * 1.001)
                self.assertGreater(levels[1][field]["value"], 34e9 * 0.5)

    def test_what_is_not_here_says_why(self):
        machines = self.bandwidths("--backends", "cuda-emulated")
        self.assertFalse(machines["cuda-emulated"]["available"])
        self.assertIn("emulation", machines["cuda-emulated"]["reason"])
        text = self.succeed("bench", "bandwidth", "--backends", "cuda-emulated").stdout
        self.assertIn("cuda-emulated: not here", text)
        self.expect_error(2, "bench", "bandwidth", "--device", "abacus", says="abacus")
        self.expect_error(2, "bench", "bandwidth", "--backends", "abacus", says="abacus")


if __name__ == "__main__":
    main()
