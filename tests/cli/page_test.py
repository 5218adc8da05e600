"""The page and the learning curves of a run: what is on them, where from, and what is refused."""
# SPDX-License-Identifier: Apache-2.0
import html.parser
import json
import re
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
        for section in ("run", "learning", "classes", "evaluation", "configuration", "loss", "validation", "quality",
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

    def test_an_evaluation_is_shown_with_its_worst_images(self):
        self.train(*TINY, "--data", "data", "--steps", "1", "--validation", "0.5", "--out", "run", *CPU)
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

    def test_the_page_of_the_array_is_one_file_or_what_it_needs_is_said(self):
        done = self.run_program("page", "array", "--out", "array.html")
        if done.returncode == 4:
            self.assertRegex(done.stderr, r"setup\.sh with\s+--web")
            self.assertFalse((self.folder / "array.html").exists())
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_one_file("array.html")

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

    def test_what_is_no_run_is_refused(self):
        self.expect_error(2, "page", says="a training run, or array, collectives, or gpu")
        self.expect_error(2, "page", "data", says="report.json")
        (self.folder / "data/report.json").write_text("{}")
        self.expect_error(2, "page", "data", says="no report of triptych train")


if __name__ == "__main__":
    main()
