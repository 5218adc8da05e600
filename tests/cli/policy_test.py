"""Every page has a Content-Security-Policy that allows its own script alone, and a CSV no formulas.

PAGES has a row for each command that writes a page."""
# SPDX-License-Identifier: Apache-2.0
import base64
import csv
import hashlib
import html.parser
import io
import re
import urllib.parse

from support import FEW, TINY, ProgramTest, main, make_data

EVIL = "=cmd|' C calc'!A0"
POLICY = (r"default-src 'none'; script-src 'sha256-([A-Za-z0-9+/=]{44})'( 'wasm-unsafe-eval')?; style-src 'unsafe-inline'; "
          r"img-src data:; base-uri 'none'; form-action 'none'")
PAGES = {
    "run": (["train", *FEW, "--steps", "2", "--out", "run"], "run/report.html"),
    "compare": (["compare", *FEW, "--epochs", "1", "--batch", "2", "--backends", "cpu,cpu=f32", "--contract", "bf16-exact",
                 "--out", "compare.html"], "compare.html"),
    "cross-validate": (["cross-validate", *TINY, "--synthetic-images", "4", "--folds", "2", "--epochs", "1", "--out", "folds"],
                       "folds/fold-1/report.html"),
    "reproduce": (["reproduce", "--claims", "bandwidth", "--quick", "--out", "claims.html"], "claims.html"),
    "array": (["page", "array", "--out", "array.html"], "array.html"),
    "gpu": (["page", "gpu", "--out", "gpu.html"], "gpu.html"),
    "collectives": (["page", "collectives", "--out", "collectives.html"], "collectives.html"),
}


class Reader(html.parser.HTMLParser):
    """Policies, scripts that run, handlers and addresses of a page, in the order of their places."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.policies, self.scripts, self.handlers, self.addresses, self.early = [], [], [], [], []
        self.within = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(found["content"])
        elif not self.policies and tag not in ("html", "head", "meta"):
            self.early.append(tag)
        if tag == "script":
            self.within = found.get("type", "text/javascript")
            if self.within == "text/javascript":
                self.scripts.append("")
        self.handlers += [name for name in found if name.startswith("on")]
        self.addresses += [found[name] for name in ("src", "href", "action") if name in found]

    def handle_endtag(self, tag):
        if tag == "script":
            self.within = None

    def handle_data(self, text):
        if self.within == "text/javascript":
            self.scripts[-1] += text


class Policies(ProgramTest):
    def test_every_page_allows_its_own_script_alone(self):
        for name, (command, file) in PAGES.items():
            with self.subTest(name):
                result = self.run_program(*command)
                page = Reader((self.folder / file).read_text(encoding="utf-8"))
                self.assertEqual(len(page.policies), 1, result.stderr)
                found = re.fullmatch(POLICY, page.policies[0])
                self.assertTrue(found, page.policies)
                self.assertEqual(len(page.scripts), 1)
                digest = hashlib.sha256(page.scripts[0].encode()).digest()
                self.assertEqual(found[1], base64.b64encode(digest).decode())
                self.assertEqual(found[2] is not None, name == "array")
                self.assertEqual((page.handlers, page.early), ([], []))
                for address in page.addresses:
                    self.assertRegex(address, r"^(#|data:)")


class Formulas(ProgramTest):
    def test_names_of_images_are_no_formulas_and_choose_the_same_images(self):
        data = make_data(self.folder / "data", [(16, 16)] * 4)
        for part in ("images", "masks"):
            (data / part / "00.png").rename(data / part / f"{EVIL}.png")
        self.succeed("train", *FEW, "--steps", "1", "--out", "run")
        self.succeed("evaluate", "run", "--data", "data", "--out", "judged")
        rows = csv.DictReader(io.StringIO((self.folder / "judged/images.csv").read_text()))
        self.assertEqual({row["image"] for row in rows}, {"01", "02", "03", "'" + EVIL})
        again = self.document("evaluate", "run", "--data", "data", "--list", "judged/images.csv")
        self.assertEqual({image["name"] for image in again["results"][0]["images"]},
                         {"01", "02", "03", EVIL})

    def test_tables_of_pages_have_no_formulas(self):
        self.succeed("train", *FEW, "--steps", "1", "--out", "run")
        text = (self.folder / "run/report.html").read_text()
        tables = re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)"', text)
        self.assertGreater(len(tables), 2)
        for table in tables:
            for row in csv.reader(io.StringIO(urllib.parse.unquote(table))):
                for cell in row:
                    self.assertNotRegex(cell, r"^[=+@\t\r].|^-[^\d]")


if __name__ == "__main__":
    main()
