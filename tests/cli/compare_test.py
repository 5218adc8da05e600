"""`triptych compare`: one experiment on several machines, what it says of bits, times and absence."""
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import math
import os
import shlex
import statistics

from support import GREY, RGB, SOURCE, TINY, ProgramTest, main, make_data

try:
    import jsonschema
    VALIDATOR = jsonschema.Draft202012Validator(
        json.loads((SOURCE / "docs/reference/json.schema.json").read_text()))
except ImportError:
    VALIDATOR = None

FEW = [*TINY, "--synthetic-images", "5", "--epochs", "2"]
PUBLISHED = ["--figures", "i9-9900k"]  # without a device file each run measures this CPU for a second


class Compare(ProgramTest):
    def compare(self, *arguments, figures=PUBLISHED):
        """The results of a comparison, whose document is valid and lies beside the page."""
        document = self.document("compare", *FEW, *figures, *arguments)
        self.assertEqual(json.loads((self.folder / "report.json").read_text()), document)
        if VALIDATOR:
            errors = [f"{e.json_path}: {e.message}" for e in VALIDATOR.iter_errors(document)]
            self.assertEqual(errors, [])
        return document["results"]

    def machines(self, results):
        return {machine["name"]: machine for machine in results["machines"]}

    def here(self, results):
        return [machine for machine in results["machines"] if machine["available"]]

    def needs_rtl(self):
        listed = self.document("machine", "list")["results"]
        if not any(m["name"] == "mmu16-45nm" and m["rtl"] != "not built" for m in listed):
            self.skipTest("this build has no RTL")

    def test_all_machines_agree_on_every_bit(self):
        self.needs_rtl()
        results = self.compare("--backends", "cpu,cuda-emulated,systolic:twin,systolic:rtl")
        names = ["cpu", "cuda-emulated", "systolic (twin)", "systolic (RTL)"]
        self.assertEqual([machine["name"] for machine in self.here(results)], names)
        first = results["machines"][0]
        for machine in results["machines"]:
            for field in ("losses", "weights_sha256", "masks_sha256"):
                self.assertEqual(machine[field], first[field], machine["name"])
            self.assertEqual([m["different_pixels"] for m in machine["masks"]],
                             [0] * len(machine["masks"]))
        verdict = results["verdict"]
        self.assertTrue(verdict["identical"])
        self.assertEqual(verdict["machines"], names)
        self.assertIsNone(verdict["first_difference"])

    def test_speedups_and_rates_follow_from_the_raw_times(self):
        results = self.compare("--backends", "cuda-emulated,cpu,systolic,cpu=bf16", figures=())
        machines = self.machines(results)
        base = machines["cpu"]["times"]["epoch"]
        experiment = results["experiment"]
        images = (math.ceil(experiment["images"]["train"] / experiment["batch"])
                  * experiment["batch"])
        for machine in self.here(results):
            if machine["checks_bits_only"]:
                continue
            epoch = machine["times"]["epoch"]
            per_epoch = [entry["train_time"]["value"] for entry in machine["epochs"]]
            self.assertAlmostEqual(statistics.median(per_epoch), epoch["value"], places=12)
            self.assertAlmostEqual(machine["speedup"]["value"], base["value"] / epoch["value"])
            self.assertEqual(machine["speedup"]["kinds"], [base["kind"], epoch["kind"]])
            self.assertAlmostEqual(machine["times"]["image"]["value"], epoch["value"] / images)
            self.assertAlmostEqual(machine["throughput"]["value"] * epoch["value"], images)
            self.assertAlmostEqual(machine["flops_per_step"],
                                   sum(layer["flops"] for layer in machine["layers"]))
            for share in machine["utilisation"].values():
                self.assertAlmostEqual(share["value"], share["flops"] /
                                       (machine["times"]["step"]["value"] * share["peak"]["value"]))
        self.assertEqual(machines["cpu"]["speedup"]["value"], 1)
        self.assertEqual(machines["cpu"]["times"]["step"]["kind"], "measured")
        self.assertNotEqual(machines["systolic (twin)"]["times"]["step"]["kind"], "measured")

    def test_an_array_has_one_throughput_which_includes_its_host(self):
        array = self.machines(self.compare("--backends", "cpu,systolic"))["systolic (twin)"]
        trained = self.document("train", *FEW, "--backend", "systolic", "--machine", "mmu16-45nm",
                                "--contract", "bf16-exact", "--out", "run")["results"][0]
        for epoch in trained["epochs"]:
            self.assertAlmostEqual(epoch["images_per_second"] / array["throughput"]["value"], 1, places=6)
            self.assertEqual(epoch["train_time"]["kind"], "modelled")
        host = next(place for place in array["placement"] if place["device"] == "host")
        self.assertEqual(host["time"]["kind"], "modelled")
        self.assertAlmostEqual(host["time"]["value"], trained["host"]["time"]["value"])
        self.assertNotIn("cpu", [layer["device"] for layer in array["layers"]])

    def test_times_at_a_target_clock_say_so(self):
        closed = self.machines(self.compare("--backends", "cpu,systolic"))["systolic (twin)"]
        self.assertIn("500 MHz (closes in nangate45_typ)", closed["device"])
        self.assertFalse(closed["target_clock"])
        results = self.compare("--backends", "cpu,systolic", "--machine", "mmu16")
        self.assertTrue(self.machines(results)["systolic (twin)"]["target_clock"])
        self.assertTrue(any("target clock of 700 MHz" in note for note in results["notes"]))
        self.assertIn("at a target clock", (self.folder / "report.html").read_text())

    def test_a_machine_that_stands_in_shows_no_time(self):
        machine = self.compare("--backends", "cuda-emulated")["machines"][0]
        self.assertTrue(machine["checks_bits_only"])
        for field in ("times", "throughput", "speedup", "utilisation", "roofline"):
            self.assertIsNone(machine[field], field)
        self.assertEqual({layer["time"] for layer in machine["layers"]}, {None})
        self.assertEqual({epoch["train_time"] for epoch in machine["epochs"]}, {None})

    def test_another_contract_is_not_identical_and_the_first_node_is_named(self):
        results = self.compare("--backends", "cpu,cpu=f32")
        verdict = results["verdict"]
        self.assertFalse(verdict["identical"])
        self.assertFalse(verdict["weights"])
        self.assertEqual(verdict["different"], ["cpu (f32)"])
        difference = verdict["first_difference"]
        self.assertEqual(difference["machines"], ["cpu", "cpu (f32)"])
        self.assertEqual((difference["step"], difference["node"]), (1, "down1.conv0"))
        self.assertNotEqual(*difference["values"])
        self.assertIn("contracts differ", difference["why"])
        self.assertLessEqual(difference["different_elements"], difference["of"])
        text = self.succeed("compare", *FEW, *PUBLISHED, "--backends", "cpu,cpu=f32").stdout
        self.assertRegex(text, r"not identical: .*weights")
        self.assertIn('step 1, node "down1.conv0"', text)

    def test_machines_that_are_not_here_are_named_and_the_rest_goes_on(self):
        results = self.compare("--backends", "cpu,cuda,systolic")
        cuda = self.machines(results)["cuda"]
        if cuda["available"]:
            self.skipTest("there is a GPU here")
        self.assertTrue(cuda["reason"])
        self.assertTrue(any(note.startswith("no GPU here: ") for note in results["notes"]))
        self.assertEqual([m["name"] for m in self.here(results)], ["cpu", "systolic (twin)"])
        self.expect_error(3, "compare", *FEW, "--backends", "cpu,cuda", "--require", "--out",
                          "strict.html", says="no GPU here")
        self.expect_error(3, "compare", *FEW, "--backends", "cuda", says="no GPU here")
        self.assertFalse((self.folder / "strict.json").exists())

    def test_a_machine_that_cannot_run_the_experiment_is_absent_in_words(self):
        results = self.compare("--backends", "cpu,systolic", "--contract", "f32")
        machine = self.machines(results)["systolic (twin)"]
        self.assertFalse(machine["available"])
        self.assertIn("f32", machine["reason"] + machine["remedy"])
        self.assertTrue(any(note.startswith("systolic (twin) gave up: ") for note in results["notes"]))
        self.expect_error(4, "compare", *FEW, "--backends", "systolic", "--contract", "f32", says="f32")

    def test_operands_are_reused_more_the_nearer_the_memory(self):
        results = self.compare("--backends", "cpu,systolic,cuda-emulated")
        for machine in results["machines"]:
            reads = [level["reads_per_mac"]["value"] for level in machine["reuse"]]
            self.assertGreaterEqual(len(reads), 3, machine["name"])
            self.assertTrue(all(value > 0 for value in reads), machine["name"])
            energy = machine["energy"]
            for part in energy["parts"]:
                self.assertAlmostEqual(part["joule"], part["events"] * part["joule_per_event"])
            self.assertAlmostEqual(energy["per_image"]["value"],
                                   sum(part["joule"] for part in energy["parts"]))
            prices = {row["event"]: row["joule"] for row in results["energy_table"]}
            for part in energy["parts"]:
                self.assertEqual(part["joule_per_event"], prices[part["event"]])
        cpu = [level["reads_per_mac"]["value"] for level in results["machines"][0]["reuse"]]
        self.assertEqual(cpu, sorted(cpu, reverse=True))

    def test_the_energy_table_is_chosen(self):
        results = self.compare("--backends", "systolic", "--energy", "7nm")
        energy = results["machines"][0]["energy"]
        self.assertEqual(energy["table"], "7nm")
        price = {part["part"]: part["joule_per_event"] for part in energy["parts"]}
        self.assertAlmostEqual(price["multiply"] * 1e12, 0.21)
        self.assertLessEqual({"clock", "sum registers", "leakage of gates"}, set(price))

    def test_ceilings_come_from_a_device_file_where_one_is_given(self):
        results = self.compare("--backends", "cpu,systolic")
        cpu, array = results["machines"]
        self.assertEqual(cpu["roofline"]["source"], "device file i9-9900k")
        self.assertNotEqual(cpu["roofline"]["peak"]["kind"], "measured")
        self.assertEqual(array["roofline"]["source"], "machine description")
        self.assertEqual(array["roofline"]["peak"]["value"], 2 * 16 * 16 * 500e6)

    def test_masks_are_pictures_and_run_folders_are_kept_when_asked_for(self):
        results = self.compare("--backends", "cpu", "--runs", "runs", "--mask-pictures", "1")
        mask, = results["machines"][0]["masks"]
        for field in ("input_png", "truth_png", "prediction_png"):
            self.assertTrue(base64.b64decode(mask[field]).startswith(b"\x89PNG"))
        self.assertTrue((self.folder / "runs/cpu/losses.csv").exists())
        self.assertTrue((self.folder / "runs/cpu/checkpoint").exists())

    def test_images_are_shown_in_their_colours(self):
        kinds = {}
        for name, kind, channels in (("colours", RGB, "3"), ("greys", GREY, "1")):
            make_data(self.folder / name, [(16, 16)] * 5, kind)
            document = self.document("compare", *TINY, "--data", name, "--in-channels", channels, "--epochs", "1",
                                     *PUBLISHED, "--backends", "cpu", "--out", f"{name}.html")
            pictures = document["results"]["machines"][0]["masks"][0]
            kinds[name] = [base64.b64decode(pictures[f"{part}_png"])[25] for part in ("input", "truth", "prediction")]
        self.assertEqual(kinds, {"colours": [RGB, GREY, GREY], "greys": [GREY, GREY, GREY]})

    def test_notes_fit_the_terminal(self):
        text = self.succeed("compare", *FEW, *PUBLISHED, "--backends", "cpu,systolic:rtl,cuda",
                            env=os.environ | {"COLUMNS": "80"}).stdout
        notes = text[text.index("note: "):text.index("page: ")].splitlines()
        self.assertLessEqual(max(len(line) for line in notes), 80, text)

    def test_recorded_sessions_are_shown(self):
        self.assertEqual(self.compare("--backends", "cpu", "--recorded", "none")["recorded"], [])
        row = {"name": "unet-s, train", "kernel": "", "contract": "f32", "batch": 1, "gflops": 5.0,
               "median": {"value": 0.002, "unit": "s", "kind": "measured"}}
        session = {"schema": 2, "kind": "recorded", "date": "2026-01-02T03:04:05+00:00",
                   "commit": "abc", "machine": {"gpu": "NVIDIA X"}, "bars": [],
                   "items": [{"name": "step_unet_s", "seconds": 1, "exit_code": 0,
                               "result": {"results": [row]}}]}
        (self.folder / "recorded").mkdir()
        (self.folder / "recorded/gpu-x.json").write_text(json.dumps(session))
        without_gpu = {**session, "machine": {"gpu": None}}
        (self.folder / "recorded/gpu-none.json").write_text(json.dumps(without_gpu))
        recorded, = self.compare("--backends", "cpu", "--recorded", "recorded")["recorded"]
        self.assertEqual((recorded["machine"], recorded["file"]), ("NVIDIA X", "gpu-x.json"))
        self.assertEqual(recorded["results"][0]["value"]["value"], 0.002)
        self.assertEqual({r["value"]["kind"] for r in recorded["results"]}, {"recorded"})
        (self.folder / "recorded/gpu-y.json").write_text("{}")
        self.expect_error(2, "compare", *FEW, "--backends", "cpu", "--recorded", "recorded",
                          says="gpu-y.json")

    def test_the_schema_refuses_bare_numbers_and_missing_parts(self):
        if not VALIDATOR:
            self.skipTest("python3-jsonschema is missing")
        text = json.dumps(self.document("compare", *FEW, *PUBLISHED, "--backends", "cpu"))

        def refused(change):
            document = json.loads(text)
            change(document["results"])
            return not VALIDATOR.is_valid(document)
        self.assertFalse(refused(lambda results: None))
        self.assertTrue(refused(lambda r: r.pop("verdict")))
        self.assertTrue(refused(lambda r: r["machines"][0].pop("weights_sha256")))
        self.assertTrue(refused(lambda r: r["machines"][0]["times"].update(epoch=1.5)))
        self.assertTrue(refused(lambda r: r["machines"][0]["throughput"].pop("kind")))
        self.assertTrue(refused(lambda r: r["machines"][0]["speedup"].update(kinds=["measured"])))
        self.assertTrue(refused(lambda r: r["machines"][0]["layers"][0].update(time=1.5)))

    def test_wrong_names_cost_no_training(self):
        for backends, says in (("cpu,cpu", "names cpu twice"), ("abacus", '"abacus"'),
                               ("cpu:rtl", "cpu is not simulated"), ("cpu=f8", '"f8"'),
                               ("systolic:magic", "twin, rtl, both")):
            self.expect_error(2, "compare", *FEW, "--backends", backends, says=says)
        self.expect_error(2, "compare", *FEW, "--backends", "cpu", "--out", "x.json", says="--out")
        self.expect_error(2, "compare", *FEW, "--backends", "cpu", "--figures", "abacus",
                          says="abacus")
        self.expect_error(2, "compare", *FEW, "--backends", "cpu", "--out", "results/", says="it is a folder")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.compare("--backends", "cpu", "--runs", "runs")
        self.expect_error(2, "compare", *FEW, "--backends", "systolic,cpu", "--runs", "runs", "--out", "again.html",
                          says=["runs/cpu", "--runs"])
        self.assertFalse((self.folder / "runs/systolic-twin").exists(), "nothing was trained")

    def test_names_need_not_be_utf8(self):
        data = make_data(self.folder / "data", [(16, 16)] * 4)
        for folder in ("images", "masks"):
            for file in list((data / folder).iterdir()):
                os.rename(file, os.fsencode(data / folder) + b"/b\xe9ton" + os.fsencode(file.name))
        results = self.document("compare", *TINY, *PUBLISHED, "--data", "data", "--invert", "--epochs", "1", "--backends",
                                "cpu")["results"]
        self.assertIn("ton", results["machines"][0]["masks"][0]["image"])
        self.assertTrue((self.folder / "report.html").exists())

    def test_the_loss_has_its_name_and_the_command_can_be_typed_again(self):
        results = self.compare("--backends", "cpu", "--loss", "dice", "--runs", "it's here")
        self.assertEqual(results["experiment"]["loss"], "dice")
        page = (self.folder / "report.html").read_text()
        self.assertIn("Dice loss", page)
        self.assertNotIn("cross-entropy", page)
        command, = results["experiment"]["commands"]
        self.assertIn("it's here", shlex.split(command))


if __name__ == "__main__":
    main()
