"""Files of golden/, written by this program, are read with the values that they have. Another version is refused.

docs/reference/formats.md lists the formats. golden/README.md has the commands that wrote the files.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import shutil

from support import SOURCE, ProgramTest, main

GOLDEN = SOURCE / "tests/cli/golden"


def tensors_of(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"], content[begin + one["data_offsets"][0]:begin + one["data_offsets"][1]])
            for name, one in header.items()}


class Golden(ProgramTest):
    def setUp(self):
        super().setUp()
        self.golden = self.folder / "golden"
        shutil.copytree(GOLDEN, self.golden)

    def stored(self, name):
        return json.loads((GOLDEN / name).read_text())

    def test_a_run_is_resumed(self):
        before = self.stored("run/report.json")["results"][0]
        self.succeed("train", "--resume", "golden/run", "--epochs", 2, "--threads", 1, "--quiet")
        after = json.loads((self.golden / "run/report.json").read_text())["results"][0]
        self.assertEqual(after["losses"][:2], before["losses"])
        self.assertEqual(len(after["losses"]), 4)
        self.assertEqual(after["epochs"][0], before["epochs"][0])
        differing = {key for key in before["config"] if after["config"][key] != before["config"][key]}
        self.assertEqual(differing, {"epochs"})

    def test_weights_are_those_of_the_checkpoint(self):
        [checkpoint] = (GOLDEN / "run/checkpoint").glob("*.safetensors")
        stored = tensors_of(checkpoint)
        self.succeed("export", "golden/run", "--out", "weights.safetensors")
        weights = tensors_of(self.folder / "weights.safetensors")
        self.assertGreater(len(weights), 10)
        for name, tensor in weights.items():
            self.assertEqual(tensor, stored.get(f"estimated.{name}", stored[name]), name)

    def test_a_report_becomes_a_page(self):
        self.succeed("page", "golden/run", "--out", "page.html")
        page = (self.folder / "page.html").read_text()
        [report] = [line for line in page.splitlines() if '"schema"' in line and "environment" in line]
        begin = report.index("{")
        self.assertEqual(json.JSONDecoder().raw_decode(report[begin:])[0], self.stored("run/report.json"))

    def test_asynchronous_updates_are_replayed(self):
        config = self.stored("updates/options.json")
        self.succeed("train", *config, "--replay", "golden/updates", "--out", "again", "--quiet")
        self.assertEqual((self.folder / "again/updates.csv").read_text(), (GOLDEN / "updates/updates.csv").read_text())

    def test_machine_and_device_files(self):
        [shown] = self.document("machine", "show", "golden/machine.json")["results"]
        # A file from before the key: the default.
        self.assertEqual(shown["machine"], {**self.stored("machine.json"), "dataflows": "weight-stationary"})
        device = self.stored("device.json")
        rows = self.document("bench", "bandwidth", "--device", "golden/device.json", "--threads", 1)["results"]
        [row] = [row for row in rows if row["machine"] == device["name"]]
        self.assertEqual([level["copy"] and level["copy"]["value"] for level in row["levels"]],
                         [level["copy"]["value"] if "copy" in level else None for level in device["levels"]])

    def test_the_state_of_a_lab(self):
        seen = self.stored("lab/.lab.json")["results_seen"]
        self.expect_error(2, "lab", "predict", 7, "golden/lab", says=[f'a check at "{seen}"'])


class OtherVersions(ProgramTest):
    FILES = [("run/checkpoint/checkpoint-000002.json", 3, ["export", "golden/run", "--out", "w.safetensors"]),
             ("run/report.json", 1, ["page", "golden/run", "--out", "page.html"]),
             ("machine.json", 1, ["machine", "show", "golden/machine.json"]),
             ("device.json", 1, ["bench", "bandwidth", "--device", "golden/device.json"]),
             ("lab/.lab.json", 1, ["lab", "predict", "7", "golden/lab"])]

    def test_are_refused_with_file_versions_and_remedy(self):
        for name, schema, command in self.FILES:
            for other in (schema - 1, schema + 1, "1"):
                with self.subTest(file=name, schema=other):
                    shutil.rmtree(self.folder / "golden", ignore_errors=True)
                    shutil.copytree(GOLDEN, self.folder / "golden")
                    path = self.folder / "golden" / name
                    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": other}))
                    result = self.run_program(*command)
                    self.assertIn(result.returncode, (2, 4), result.stderr)
                    self.assertIn("schema", result.stderr)
                    if name != "machine.json":  # whose user is named by the option
                        self.assertIn(name.split("/")[-1], result.stderr)
                    if other != "1":
                        self.assertIn(f"this version reads schema {schema}", result.stderr)

    def test_a_version_is_required(self):
        for name, _, command in self.FILES:
            if name == "machine.json":  # written by hand: version 1 is the default
                continue
            with self.subTest(file=name):
                shutil.rmtree(self.folder / "golden", ignore_errors=True)
                shutil.copytree(GOLDEN, self.folder / "golden")
                path = self.folder / "golden" / name
                document = json.loads(path.read_text())
                del document["schema"]
                path.write_text(json.dumps(document))
                self.expect_error(2, *command, says=[name.split("/")[-1], 'no whole number "schema"'])


if __name__ == "__main__":
    main()
