"""The page and the learning curves of a run: what is on them, where from, and what is refused."""
# SPDX-License-Identifier: Apache-2.0
import html.parser
import json
import re
import struct
import xml.etree.ElementTree as ElementTree

from support import *

CPU = ["--threads", "1"]


class Reader(html.parser.HTMLParser):
    """What a page shows: ids of its elements, numbers with their pointers, addresses, its report."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.numbers, self.addresses, self.report, self.within = [], [], [], "", ""
        self.feed(text)
        self.report = json.loads(self.report)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.within = found.get("id", "") if tag == "script" else ""
        self.ids.append(found.get("id"))
        if "data-path" in found:
            self.numbers.append((found["data-path"], float(found["data-value"])))
        self.addresses += [found[key] for key in ("src", "href") if key in found]

    def handle_data(self, text):
        if self.within == "report":
            self.report += text


def look_up(report, pointer):
    for token in pointer.split("/")[1:]:
        report = report[int(token)] if isinstance(report, list) else report[token]
    return report


class Pages(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", [(20, 20), (16, 16), (16, 16), (16, 33)])

    def read(self, name):
        return Reader((self.folder / name).read_text())

    def assert_true_numbers(self, page):
        self.assertTrue(page.numbers)
        for pointer, value in page.numbers:
            self.assertEqual(value, look_up(page.report, pointer), pointer)

    def test_a_run_leaves_a_page_and_curves_made_from_its_report(self):
        run = self.train(*TINY, "--data", "data", "--epochs", "2", "--validation", "0.5", "--keep", "dice", "--out",
                         "run", *CPU)
        page = self.read("run/report.html")
        self.assertEqual(page.report, json.loads((self.folder / "run/report.json").read_text()))
        self.assert_true_numbers(page)
        for section in ("run", "learning", "classes", "predictions", "evaluation", "configuration", "loss", "validation", "quality",
                        "rate"):
            self.assertIn(section, page.ids)
        named = [name for name in page.ids if name]
        self.assertEqual(len(named), len(set(named)), named)
        self.assertTrue(all(address.startswith(("#", "data:")) for address in page.addresses), page.addresses)
        for epoch in run["epochs"]:
            self.assertEqual(len(epoch["classes"]), 1)
            self.assertAlmostEqual(epoch["classes"][0]["dice"], epoch["dice"])
            self.assertAlmostEqual(epoch["learning_rate"], run["learning_rate"])
        for name in ("loss.svg", "quality.svg"):
            self.assertTrue(ElementTree.parse(self.folder / "run" / name).getroot().tag.endswith("svg"))

    def test_a_run_shows_its_predictions_with_the_scores_of_each_image(self):
        make_data(self.folder / "more", [(16, 16)] * 10)
        run = self.train(*TINY, "--data", "more", "--steps", "2", "--validation", "0.6", "--mask-pictures", "2",
                         "--out", "run", *CPU)
        judged = run["evaluation"]
        scores = {image["name"]: image["dice"] for image in judged["images"]}
        self.assertEqual(len(scores), 6)
        self.assertAlmostEqual(judged["dice"], run["epochs"][-1]["dice"])
        self.assertEqual(sum(map(sum, judged["confusion"])), 6 * 16 * 16)
        text, page = (self.folder / "run/report.html").read_text(), self.read("run/report.html")
        self.assert_true_numbers(page)
        shown = [pointer for pointer, _ in page.numbers]
        for pointer in ("confusion/0/1", "images/5/dice", "brier"):
            self.assertIn(f"/results/0/evaluation/{pointer}", shown)
        self.assertTrue([pointer for pointer in shown if "/evaluation/calibration/" in pointer])
        pictured = re.findall(r'alt="input, truth and prediction of (\w+)"', text)
        files = {file.stem for file in (self.folder / "run/masks").iterdir() if not file.name.startswith(".")}
        self.assertEqual(set(pictured), files)
        self.assertEqual([scores[name] for name in pictured], sorted(scores[name] for name in pictured))
        self.assertLessEqual(set(sorted(scores, key=scores.get)[:2]), files, "the worst two are among the pictures")
        self.succeed("page", "run", "--out", "again.html")
        self.assertEqual(text, (self.folder / "again.html").read_text())

    def test_pictures_of_earlier_weights_are_removed(self):
        self.train(*TINY, "--data", "data", "--steps", "1", "--validation", "0.75", "--out", "run", *CPU)
        masks = self.folder / "run/masks"
        self.assertEqual(len(list(masks.glob("*.png"))), 3)
        self.train("--resume", "run", "--steps", "2", "--mask-pictures", "1", *CPU)
        self.assertLessEqual(len(list(masks.glob("*.png"))), 2)

    def test_the_title_has_no_path_of_the_user(self):
        self.train(*TINY, "--data", self.folder / "data", "--steps", "1", "--out", "run", *CPU)
        head = re.search(r"(?s)<header>.*?</header>", (self.folder / "run/report.html").read_text())[0]
        self.assertIn("· data ·", head)
        self.assertNotIn(str(self.folder), head)

    def test_an_evaluation_is_shown_with_its_worst_images(self):
        self.train(*TINY, "--data", "data", "--steps", "1", "--validation", "0.5", "--mask-pictures", "0", "--out", "run",
                   *CPU)
        self.succeed("evaluate", "run", "--out", "scores", "--worst", "2", "--regions", "1", *CPU)
        self.succeed("page", "run", "--evaluation", "scores", "--out", "page.html")
        page = self.read("page.html")
        self.assert_true_numbers(page)
        shown = [pointer for pointer, _ in page.numbers]
        for pointer in ("classes/0/boundary_f1", "pixel_accuracy", "calibration_error", "brier", "regions/v_rand",
                        "confusion/1/0", "images/1/dice", "images/0/regions/v_info"):
            self.assertIn(f"/evaluation/{pointer}", shown)
        worst = page.report["evaluation"]["worst"]
        self.assertEqual([each["dice"] for each in worst], sorted(each["dice"] for each in worst))
        self.assertEqual(len([a for a in page.addresses if a.startswith("data:image/png")]), 2)

    def test_without_validation_the_page_says_so(self):
        self.train(*FEW, "--steps", "1", "--validation", "0", "--out", "run", *CPU)
        self.assertIn("no validation images", (self.folder / "run/report.html").read_text())
        self.assertFalse((self.folder / "run/quality.svg").exists())

    def test_the_page_of_the_array_is_one_file(self):
        self.succeed("page", "array", "--out", "array.html")
        self.assert_one_file("array.html")

    def test_the_page_of_the_array_begins_with_a_program_and_its_arrays(self):
        text = ".input x address=0 type=bf16 shape=2x2\n.values x 9 9 9 9\n.input w address=8 type=int8 shape=3\n" \
               ".values w -1 0 1\n# </script> stays a comment\nhalt\n"
        (self.folder / "p.s").write_text(text)
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }".ljust(117) + b"\n"
        (self.folder / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
                                            struct.pack("<4f", 0.5, -1, float("inf"), 0.1))
        self.succeed("page", "array", "--program", "p.s", "--dram", "x=x.npy", "--out", "array.html")
        page = self.assert_one_file("array.html")
        given = json.loads(re.search(r'(?s)id="given">(.*?)</script>', page)[1])
        values = ".values x 9 9 9 9\n"
        self.assertEqual(given["text"], text.replace(values, "") + "\n.values x 0.5 -1\n.values x inf 0.100097656\n")
        (self.folder / "again.s").write_text(given["text"])
        self.succeed("mmu", "asm", "again.s")

    def test_a_program_that_the_page_of_the_array_cannot_run_is_refused(self):
        def refused(text, *says):
            (self.folder / "p.s").write_text(text)
            self.expect_error(2, "page", "array", "--program", "p.s", says=says)
        refused("halt wait=nobody\n", "p.s, line 1, column 11: no unit 'nobody': use load, weights, compute, store")
        refused(".input x address=0 type=f32 shape=2\nhalt\n", "p.s, line 1: the input 'x' has no file; give --dram x=FILE.npy, or lines .values x")
        self.expect_error(2, "page", "array", "--dram", "x.npy", says=["--program"])
        self.assertFalse((self.folder / "array.html").exists())

    def test_the_page_of_the_gpu_is_one_file_and_the_same_every_time(self):
        pages = []
        for name in ("gpu.html", "again.html"):
            self.assertEqual(self.run_program("page", "gpu", "--out", name).returncode, 0)
            pages.append(self.assert_one_file(name))
        self.assertEqual(*pages)

    def assert_one_file(self, name):
        text = (self.folder / name).read_text()
        self.assertLess(len(text), 2 << 20)
        self.assertEqual(re.findall(r"@(?:style|script|wasm)@|/\*(?:PALETTE|RECORD)\*/", text), [])
        self.assertEqual(re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*", text), [])
        return text

    def test_the_page_of_collectives_is_one_file_and_the_same_each_time(self):
        for name in ("one.html", "other.html"):
            self.succeed("page", "collectives", "--out", name)
        text = (self.folder / "one.html").read_text()
        self.assertEqual(text, (self.folder / "other.html").read_text())
        for mark in ("/*PALETTE*/", "/*STYLE*/", "/*REPORT*/", "/*SCRIPT*/"):
            self.assertNotIn(mark, text)
        self.assertEqual(re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*", text), [])

    def test_the_keyboard_reaches_every_scroll_region(self):
        self.train(*TINY, "--data", "data", "--epochs", "1", "--validation", "0.5", "--out", "run", *CPU)
        for name in ("array", "gpu", "collectives"):
            self.succeed("page", name, "--out", f"{name}.html")
        for file in ("run/report.html", "array.html", "gpu.html", "collectives.html"):
            text = (self.folder / file).read_text()
            text = text.replace('<div class="scroll-x"><div id="grid" tabindex="0"', "")  # which takes the keys itself
            regions = [dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
                       for tag in re.findall(r"<(?:div|pre)\b[^>]*>", text)
                       if re.search(r'^<pre id=|class="(?:scroll|scroll-x|masks)"', tag)]
            self.assertTrue(regions, file)
            for found in regions:
                self.assertEqual((found.get("tabindex"), found.get("role")), ("0", "region"), (file, found))
                self.assertTrue(found.get("aria-label"), (file, found))
            labels = [found["aria-label"] for found in regions]
            self.assertEqual(len(labels), len(set(labels)), (file, labels))

    def test_what_is_no_run_is_refused(self):
        self.expect_error(2, "page", says="a training run, or array, collectives, or gpu")
        self.expect_error(2, "page", "data", says="report.json")
        (self.folder / "data/report.json").write_text("{}")
        self.expect_error(2, "page", "data", says="no report of triptych train")


if __name__ == "__main__":
    main()
