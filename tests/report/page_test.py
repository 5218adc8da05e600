"""Pages in a real Chromium: drawn at all widths, light and dark, on paper; nothing fetched, nothing complained of.

Called as: page_test.py RENDER_PAGE SOURCE_DIR. Screenshots go to the folder TRIPTYCH_SCREENSHOTS."""
# SPDX-License-Identifier: Apache-2.0
import csv
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/cli"))

import browser  # noqa: E402
import reports  # noqa: E402
import support  # noqa: E402

WIDTHS = (360, 800, 1400)
PREFIXES = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
            "P": 1e15, "E": 1e18, "%": 0.01, "×": 1}
# Look of every chart that shows now.
CHARTS = """[...document.querySelectorAll(".plot")].map(plot => {
  const svg = [...plot.querySelectorAll("svg.chart")].find(s => s.getBoundingClientRect().width > 0);
  if (!svg) return {id: plot.id, missing: plot.textContent};
  const box = svg.getBoundingClientRect();
  return {id: plot.id, left: box.left, right: box.right, height: box.height, text: svg.textContent,
          marks: svg.querySelectorAll(".mark").length,
          outside: [...svg.querySelectorAll("text")].filter(t => {
            const b = t.getBoundingClientRect(); return b.left < -0.5 || b.right > innerWidth + 0.5; })
            .map(t => t.textContent),
          smallest: Math.min(...[...svg.querySelectorAll("text")].map(t =>
            parseFloat(getComputedStyle(t).fontSize) * box.width / svg.viewBox.baseVal.width))};})"""
# Numbers that the page shows, with where they are from; those of pictures, too.
NUMBERS = """[...document.querySelectorAll("[data-path]")].map(e => ({
  text: e.tagName === "DATA" ? e.textContent : null, value: Number(e.dataset.value),
  path: e.dataset.path, over: e.dataset.over || null})).concat(
  [...document.querySelectorAll("[data-x-path]")].map(e => ({
  text: null, value: Number(e.dataset.xValue), path: e.dataset.xPath, over: e.dataset.xOver || null})))"""


def look_up(report, pointer):
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        report = report[int(token)] if isinstance(report, list) else report[token]
    return report


def shown_value(text):
    """The number that a text such as "1,234.5 ms" says, and by how much it may be rounded."""
    match = re.fullmatch(r"(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)(?:\u00a0?([%×]|[pnµmkMGTPE]?)(\S*))?", text)
    assert match, text
    digits, prefix, unit = match.group(1).replace(",", ""), match.group(2) or "", match.group(3) or ""
    if prefix and prefix not in "%×" and unit == "" and prefix in "m":
        prefix = ""
    scale = PREFIXES[prefix]
    decimals = len(digits.split("e")[0].partition(".")[2])
    return float(digits) * scale, 0.5001 * 10.0 ** -decimals * scale


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="triptych-page-"))
        cls.shots = pathlib.Path(os.environ.get("TRIPTYCH_SCREENSHOTS") or cls.folder)
        cls.browser = browser.Browser()
        cls.addClassCleanup(support.shutil.rmtree, cls.folder)
        cls.addClassCleanup(cls.browser.close)

    def render(self, name, report, suffix=".html"):
        source, page = self.folder / f"{name}.json", self.folder / f"{name}{suffix}"
        source.write_text(json.dumps(report))
        support.subprocess.run([support.PROGRAM, source, page], check=True)
        return page

    def open(self, page, width=1400, scheme="light", media="screen"):
        self.browser.media(media, scheme)
        self.browser.resize(width, phone=width < 500)
        self.browser.open(page)

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        fetched = [url for url in self.browser.requests if not url.startswith(("data:", "file:"))]
        self.assertEqual(fetched, [], "a page needs no network")
        self.assertEqual(len([url for url in self.browser.requests if url.startswith("file:")]), 1)

    def assert_drawn(self, width, at_least):
        charts = self.browser.run(CHARTS)
        self.assertGreaterEqual(len(charts), at_least)
        for chart in charts:
            with self.subTest(chart=chart["id"], width=width):
                self.assertNotIn("missing", chart)
                self.assertGreaterEqual(chart["left"], 0)
                self.assertLessEqual(chart["right"], width)
                self.assertGreater(chart["height"], 60)
                self.assertGreater(chart["marks"], 0)
                self.assertEqual(chart["outside"], [])
                self.assertGreater(chart["smallest"], 9.4, "pixels that a letter is high")
                self.assertNotRegex(chart["text"], r"\b(nan|inf)\b")
        return charts

    def test_every_chart_is_drawn_at_every_width_light_and_dark(self):
        for name, report, least in (("compare", reports.compare(), 10), ("different", reports.different(), 9),
                                    ("reproduce", reports.reproduce(), 2)):
            page = self.render(name, report)
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    self.open(page, width, scheme)
                    self.assert_quiet()
                    self.assert_drawn(width, least)
                    self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width,
                                     f"{name} at {width}: the page scrolls sideways")
                    self.browser.screenshot(self.shots / f"{name}-{width}-{scheme}.png")

    def test_dark_is_dark_and_the_button_changes_it(self):
        page = self.render("theme", reports.compare())
        light = """(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g);
                   return (+r + +g + +b) / 3 > 127; })()"""
        for scheme, expected in (("light", True), ("dark", False)):
            self.open(page, scheme=scheme)
            self.assertEqual(self.browser.run(light), expected)
        seen = [(self.browser.run("document.getElementById('theme').click()"), self.browser.run(light))[1]
                for _ in range(3)]
        self.assertEqual(seen, [True, False, False], "light, dark, as the system has it")

    def test_text_stands_out_from_its_ground(self):
        contrast = """(() => {
          const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
            if (c !== "rgba(0, 0, 0, 0)" && c !== "transparent") return c; } return "rgb(255, 255, 255)"; };
          let least = 99, where = "";
          for (const e of document.querySelectorAll("h1, h2, p, dt, dd, th, td, li, a, button, summary, svg text")) {
            if (!e.textContent.trim() || !e.getClientRects().length) continue;
            const style = getComputedStyle(e), color = e.namespaceURI.endsWith("svg") ? style.fill : style.color;
            const [a, b] = [light(color), light(ground(e))].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            if (ratio < least) { least = ratio; where = e.outerHTML.slice(0, 120); }
          } return [least, where]; })()"""
        page = self.render("contrast", reports.compare())
        for scheme in ("light", "dark"):
            self.open(page, scheme=scheme)
            least, where = self.browser.run(contrast)
            self.assertGreaterEqual(least, 4.5, f"{scheme}: {where}")

    def test_tooltips_follow_mouse_and_finger(self):
        page = self.render("tips", reports.compare())
        for width, act in ((1400, self.browser.point_at), (360, self.browser.touch)):
            for chart in ("times", "layers-cpu", "roofline-chart", "loss"):
                self.open(page, width)
                x, y, tip = self.browser.run(f"""(() => {{
                  const plot = document.getElementById("{chart}"); plot.scrollIntoView({{block: "center"}});
                  const svg = [...plot.querySelectorAll("svg.chart")].find(s => s.getBoundingClientRect().width);
                  const mark = svg.querySelectorAll(".mark")[2], b = (mark.querySelector(".hit") ||
                    mark.querySelector(".bar")).getBoundingClientRect();
                  return [b.left + b.width / 2, b.top + b.height / 2, mark.dataset.tip]; }})()""")
                self.browser.run("new Promise(done => setTimeout(done, 100))")
                act(x, y)
                shown = self.browser.run("""(() => { const tip = document.getElementById("tip");
                  const b = tip.getBoundingClientRect(); return tip.hidden ? null :
                  {text: tip.textContent, left: b.left, right: b.right, top: b.top}; })()""")
                self.assertIsNotNone(shown, f"{chart} at {width}")
                self.assertRegex(shown["text"], r"\d")
                if chart != "roofline-chart":  # there another point may lie as near
                    self.assertEqual(shown["text"], tip)
                self.assertGreaterEqual(shown["left"], 0)
                self.assertLessEqual(shown["right"], width)
                self.assertGreaterEqual(shown["top"], 0)
        self.browser.screenshot(self.shots / "tooltip-360.png", whole=False)

    def test_every_number_comes_from_the_report(self):
        for name, report, least in (("compare", reports.compare(), 2000), ("different", reports.different(), 900),
                                    ("reproduce", reports.reproduce(), 30)):
            self.open(self.render(name + "-numbers", report))
            embedded = self.browser.run("JSON.parse(document.getElementById('report').textContent)")
            self.assertEqual(embedded, json.loads(json.dumps(report)))
            numbers = self.browser.run(NUMBERS)
            self.assertGreater(len(numbers), least)
            for number in numbers:
                expected = look_up(report, number["path"])
                if number["over"]:
                    expected = expected / look_up(report, number["over"])
                self.assertAlmostEqual(number["value"], expected, delta=1e-12 * abs(expected), msg=str(number))
                if number["text"] is not None and number["text"] != "–":
                    value, rounding = shown_value(number["text"])
                    self.assertAlmostEqual(value, expected, delta=rounding, msg=str(number))
            loose = self.browser.run("""[...document.querySelectorAll("td.n, .panel dd, .big")].filter(
              e => /^[\\d.,]+(\\s|$)/.test(e.textContent.trim()) && !e.querySelector("[data-path]"))
              .map(e => e.outerHTML)""")
            self.assertEqual(loose, [], "numbers without a place in the report")

    def test_each_speedup_is_the_quotient_of_two_raw_times_with_both_kinds(self):
        report = reports.compare()
        self.open(self.render("speedups", report))
        machines = report["results"]["machines"]
        first = next(m for m in machines if m.get("times"))
        shown = self.browser.run("""[...document.querySelectorAll('data[data-path$="/speedup/value"]')].map(
          e => [e.dataset.path, Number(e.dataset.value),
                [...e.parentElement.querySelectorAll(".kind")].map(k => k.title)])""")
        self.assertEqual(len(shown), 6, "two machines, each in its panel, in a sentence and in the table")
        for path, value, kinds in shown:
            machine = machines[int(path.split("/")[3])]
            of = machine["speedup"]["of"]
            times = first["times"][of], machine["times"][of]
            self.assertAlmostEqual(value, times[0]["value"] / times[1]["value"], places=12)
            self.assertEqual(kinds, [time["kind"] for time in times])

    def test_a_machine_for_bits_shows_no_time(self):
        report = reports.compare()
        self.open(self.render("bits", report))
        paths = [number["path"] for number in self.browser.run(NUMBERS)]
        emulated = next(i for i, m in enumerate(report["results"]["machines"]) if m.get("checks_bits_only"))
        of_it = [path for path in paths if path.startswith(f"/results/machines/{emulated}/")]
        self.assertTrue(of_it)
        self.assertEqual([path for path in of_it if "time" in path or "throughput" in path or "speedup" in path], [])
        self.open(self.render("only-bits", reports.without_times(report)))
        self.assertIn("has a time", self.browser.run("document.getElementById('time').textContent"))

    def test_csv_files_hold_their_tables(self):
        self.open(self.render("csv", reports.compare()))
        links = self.browser.run("""[...document.querySelectorAll("a.csv")].map(a => ({name: a.download, href: a.href,
          rows: document.getElementById(a.download.slice(0, -4)).tBodies[0].rows.length}))""")
        self.assertGreaterEqual(len(links), 12)
        self.assertEqual(len({link["name"] for link in links}), len(links))
        for link in links:
            head, data = link["href"].split(",", 1)
            self.assertEqual(head, "data:text/csv;charset=utf-8")
            table = list(csv.reader(io.StringIO(urllib.parse.unquote(data))))
            self.assertEqual(len(table), link["rows"] + 1, link["name"])
            self.assertEqual({len(row) for row in table}, {len(table[0])}, link["name"])
        times = next(link for link in links if link["name"] == "times-table.csv")["href"].split(",", 1)[1]
        row = list(csv.DictReader(io.StringIO(urllib.parse.unquote(times))))[0]
        self.assertEqual(float(row["one epoch [s]"]), reports.compare()["results"]["machines"][0]["times"]["epoch"]["value"])
        self.assertEqual(row["one epoch kind"], "measured")

    def test_prints_in_light_with_short_tables_open(self):
        self.open(self.render("print", reports.compare()), scheme="dark")
        self.browser.media("print", "dark")
        state = self.browser.run("""(() => { window.dispatchEvent(new Event("beforeprint"));
          return {ground: getComputedStyle(document.body).backgroundColor,
            nav: getComputedStyle(document.querySelector("nav")).display,
            open: document.querySelectorAll("details[open]").length, charts: """ + CHARTS + "}; })()")
        self.assertEqual(state["ground"], "rgb(255, 255, 255)")
        self.assertEqual(state["nav"], "none")
        self.assertGreater(state["open"], 3)
        self.assertTrue(all(chart["marks"] for chart in state["charts"]))
        document = self.browser.pdf()
        (self.shots / "compare.pdf").write_bytes(document)
        self.assertTrue(document.startswith(b"%PDF"))
        self.assertLess(len(re.findall(rb"/Type\s*/Page\b", document)), 20)

    def test_hostile_names_stay_text(self):
        page = self.render("hostile", reports.different())
        self.open(page)
        self.assert_quiet()
        self.assertNotEqual(self.browser.run("document.title"), "broken")
        self.assertEqual(self.browser.run("document.querySelectorAll('main b, main script').length"), 0)
        said = self.browser.run("document.querySelector('.verdict').textContent")
        self.assertIn("Not identical", said)
        self.assertIn("</script><script>document.title='broken'</script>&\"'<b>", said)
        unknown = self.browser.run("""[...document.querySelectorAll("*")].filter(e => e instanceof HTMLUnknownElement ||
          (e.namespaceURI.endsWith("svg") && e.constructor === SVGElement)).map(e => e.tagName)""")
        self.assertEqual(unknown, [])

    def test_what_is_missing_is_said(self):
        self.open(self.render("nothing", reports.nothing()), 360)
        self.assert_quiet()
        for section in ("learning", "masks", "time", "layers", "placement", "roofline", "utilisation", "reuse",
                        "energy", "recorded", "experiment"):
            said = self.browser.run(f"document.querySelector('#{section} .missing')?.textContent || ''")
            self.assertGreater(len(said), 20, section)
        self.browser.screenshot(self.shots / "nothing-360.png")

    def test_is_built_for_keyboard_and_ear(self):
        self.open(self.render("access", reports.compare()))
        found = self.browser.run("""(() => { const all = s => [...document.querySelectorAll(s)];
          const ids = all("[id]").map(e => e.id);
          return {ids: ids.length - new Set(ids).size,
            levels: all("h1, h2, h3").map(e => Number(e.tagName[1])),
            captions: all("main .scroll table").every(t => t.caption && t.caption.textContent.trim()),
            scopes: all("thead th").every(h => h.scope === "col"),
            images: all("img").every(i => i.alt.trim()), charts: all("svg.chart").every(s => s.getAttribute("aria-label")),
            regions: all(".scroll, .masks").every(r => r.tabIndex === 0 && r.getAttribute("aria-label")),
            contents: all("nav a").every(a => document.getElementById(a.hash.slice(1))),
            lang: document.documentElement.lang, doctype: document.doctype.name, mode: document.compatMode}; })()""")
        self.assertEqual(found.pop("ids"), 0, "an id stands twice")
        levels = found.pop("levels")
        self.assertEqual(levels.count(1), 1)
        self.assertTrue(all(b - a <= 1 for a, b in zip(levels, levels[1:])), "a level of headings is skipped")
        self.assertEqual(found, {"captions": True, "scopes": True, "images": True, "charts": True, "regions": True,
                                 "contents": True, "lang": "en", "doctype": "html", "mode": "CSS1Compat"})

    def test_reads_without_its_script(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.open(self.render("still", reports.compare()))
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertGreater(self.browser.run("document.querySelectorAll('.mark title').length"), 500)
        self.assert_drawn(1400, 8)

    def test_a_chart_as_a_file_is_an_image(self):
        picture = self.render("chart", reports.reproduce(), ".svg")
        root = ElementTree.fromstring(picture.read_text())
        self.assertTrue(root.tag.endswith("svg"))
        (self.folder / "chart.html").write_text("<!doctype html><title>-</title><link rel=icon href='data:,'><img src='chart.svg'>")
        for scheme in ("light", "dark"):
            self.open(self.folder / "chart.html", 900, scheme)
            self.assertEqual(self.browser.complaints, [])
            self.assertEqual(self.browser.run("document.images[0].naturalWidth"), float(root.get("width")))
            self.browser.screenshot(self.shots / f"chart-{scheme}.png", whole=False)


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium here; apt-get install chromium")
        sys.exit(77)
    support.main()
